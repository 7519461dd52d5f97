/** The LL-HLS publisher: packages outbound streams into CMAF and serves them through the delivery threads. */
import type { DefaultChoice } from '../../../../core/default-playlist.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import { AudioCodec } from '../../../../media/codec.ts';
import type { LlhlsSettings } from '../../wire/settings.ts';
import type { PackagedStreamOptions } from '../packaged-stream.ts';
import { PackagingPublisher } from '../packaging-publisher.ts';
import { LlhlsStream } from './llhls-stream.ts';
import type { PartTimeliness } from './part-timeliness.ts';
import { isServableInFmp4 } from './track-packager.ts';

const ABSOLUTE_PATHS = -1;

/** Its default playlist is `llhls.m3u8`. */
export class LlhlsPublisher extends PackagingPublisher<LlhlsSettings, LlhlsStream> {
  /** Checks the timeliness of parts. */
  timeliness: PartTimeliness | null = null;
  override readonly kind = PublisherKind.LLHLS;
  protected override readonly choice: DefaultChoice = {
    canServe: isServableInFmp4,
    // Not every player decodes Opus in fMP4.
    isCommon: ({ type, codec }) => type === 'video' || codec === AudioCodec.AAC,
    everyAudioCodec: true,
  };
  protected override readonly ownPlaylist = {
    name: 'llhls_default',
    fileName: 'llhls',
    options: { webrtcAutoAbr: false, hlsChunklistPathDepth: ABSOLUTE_PATHS, enableTsPackaging: false, enableSubtitles: true },
  };

  protected override open(options: PackagedStreamOptions<LlhlsSettings>): LlhlsStream {
    return new LlhlsStream({ ...options, ...(this.timeliness !== null && { timeliness: this.timeliness }) });
  }
}
