/** The LL-HLS publisher: packages outbound streams into CMAF and serves them through the egress threads. */
import { defaultPlaylist } from '../../../../core/default-playlist.ts';
import { PublisherKind } from '../../../../core/kinds.ts';
import type { Playlist } from '../../../../core/playlist.ts';
import type { PublishableStream, Publisher } from '../../../../core/publishing.ts';
import { addressOf } from '../../../../core/stream-address.ts';
import type { EgressPort } from '../../../../delivery/outlet/messages.ts';
import type { Track } from '../../../../media/track.ts';
import { DvrStorage } from '../../dvr/dvr-storage.ts';
import type { LlhlsSettings } from '../../wire/settings.ts';
import type { StreamFollower } from '../stream-follower.ts';
import { isServableInFmp4 } from './codec-support.ts';
import { LlhlsStream } from './llhls-stream.ts';

const DEFAULT_FILE_NAME = 'llhls';
const DEFAULT_NAME = 'llhls_default';
const ABSOLUTE_PATHS = -1;

/**
 * Registered in the core, which attaches streams and closes them. `follower` hears of every stream; the publisher itself has nothing to
 * close.
 */
export class LlhlsPublisher implements Publisher<LlhlsSettings> {
  readonly kind = PublisherKind.LLHLS;
  readonly #egress: EgressPort;
  readonly #follower: StreamFollower | null;
  readonly #storage: DvrStorage;

  constructor(egress: EgressPort, follower: StreamFollower | null = null, storage: DvrStorage = new DvrStorage()) {
    this.#egress = egress;
    this.#follower = follower;
    this.#storage = storage;
  }

  /** First servable video and audio as `llhls.m3u8`. */
  defaultPlaylist(tracks: readonly Track[], settings: LlhlsSettings): Playlist | null {
    if (!settings.createDefaultPlaylist) return null;
    return defaultPlaylist(tracks, isServableInFmp4, {
      name: DEFAULT_NAME,
      fileName: DEFAULT_FILE_NAME,
      options: { webrtcAutoAbr: false, hlsChunklistPathDepth: ABSOLUTE_PATHS, enableTsPackaging: false, enableSubtitles: true },
    });
  }

  attach(stream: PublishableStream, settings: LlhlsSettings): LlhlsStream {
    const address = addressOf(stream);
    return new LlhlsStream({
      stream,
      settings,
      egress: this.#egress,
      storage: this.#storage,
      onStart: (started) => this.#follower?.streamStarted(started, address, settings),
      onClose: (closed) => this.#follower?.streamClosed(closed, address),
    });
  }
}
