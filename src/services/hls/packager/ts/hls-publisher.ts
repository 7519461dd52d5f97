/** The HLS publisher of version 3 playlists and MPEG-TS segments (RFC 8216). */
import type { DefaultChoice } from '../../../../core/default-playlist.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import type { HlsSettings } from '../../wire/settings.ts';
import type { PackagedStreamOptions } from '../packaged-stream.ts';
import { PackagingPublisher } from '../packaging-publisher.ts';
import { HlsStream } from './hls-stream.ts';
import { isServableInTs } from './variants.ts';

/** Its default playlist is `ts:playlist.m3u8`. */
export class HlsPublisher extends PackagingPublisher<HlsSettings, HlsStream> {
  override readonly kind = PublisherKind.HLS;
  protected override readonly choice: DefaultChoice = { canServe: isServableInTs };
  protected override readonly ownPlaylist = {
    name: 'hls_default',
    fileName: 'playlist',
    options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true },
  };

  protected override open(options: PackagedStreamOptions<HlsSettings>): HlsStream {
    return new HlsStream(options);
  }
}
