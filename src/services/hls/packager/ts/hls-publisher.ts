/** The HLS publisher of version 3 playlists and MPEG-TS segments (RFC 8216). */
import { defaultPlaylist } from '../../../../core/default-playlist.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import type { Playlist } from '../../../../core/playlist.ts';
import type { PublishableStream, Publisher } from '../../../../core/publishing.ts';
import { addressOf } from '../../../../core/stream-address.ts';
import type { EgressPort } from '../../../../delivery/outlet/messages.ts';
import type { Track } from '../../../../media/track.ts';
import { DvrStorage } from '../../dvr/dvr-storage.ts';
import type { HlsSettings } from '../../wire/settings.ts';
import type { StreamFollower } from '../stream-follower.ts';
import { HlsStream } from './hls-stream.ts';
import { isServableInTs } from './variants.ts';

const DEFAULT_PLAYLIST_NAME = 'hls_default';
const DEFAULT_PLAYLIST_FILE = 'playlist';

/**
 * Registered in the core, which attaches streams and closes them. `follower` hears of every stream; the publisher itself has nothing to
 * close.
 */
export class HlsPublisher implements Publisher<HlsSettings> {
  readonly kind = PublisherKind.HLS;
  readonly #egress: EgressPort;
  readonly #follower: StreamFollower | null;
  readonly #storage: DvrStorage;

  constructor(egress: EgressPort, follower: StreamFollower | null = null, storage: DvrStorage = new DvrStorage()) {
    this.#egress = egress;
    this.#follower = follower;
    this.#storage = storage;
  }

  /** First video and first audio that can be served, as `ts:playlist.m3u8`. */
  defaultPlaylist(tracks: readonly Track[], settings: HlsSettings): Playlist | null {
    if (!settings.createDefaultPlaylist) return null;
    return defaultPlaylist(tracks, isServableInTs, {
      name: DEFAULT_PLAYLIST_NAME,
      fileName: DEFAULT_PLAYLIST_FILE,
      options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true },
    });
  }

  attach(stream: PublishableStream, settings: HlsSettings): HlsStream {
    const address = addressOf(stream);
    return new HlsStream({
      stream,
      settings,
      egress: this.#egress,
      storage: this.#storage,
      onStart: (started) => this.#follower?.streamStarted(started, address, settings),
      onClose: (closed) => this.#follower?.streamClosed(closed, address),
    });
  }
}
