/** The common part of both publishers: they make packaged streams, and one default playlist for streams that have none. */
import { type DefaultChoice, defaultPlaylist } from '../../../core/default-playlist.ts';
import type { PublisherKind } from '../../../core/kinds.ts';
import type { Playlist } from '../../../core/playlist.ts';
import type { PublishableStream, Publisher } from '../../../core/publishing.ts';
import { addressOf, type StreamAddress } from '../../../core/stream-address.ts';
import type { FeedOpener } from '../../../delivery/feed/messages.ts';
import type { Track } from '../../../media/track.ts';
import { DvrStorage } from '../dvr/dvr-storage.ts';
import type { PackagingSettings } from '../wire/settings.ts';
import type { PackagedStream, PackagedStreamOptions } from './packaged-stream.ts';
import type { SegmentSource } from './segment-observer.ts';

/** Observers of the streams of a publisher. */
export interface StreamFollower {
  /** It has tracks and playlists. */
  streamStarted(stream: SegmentSource, address: StreamAddress, settings: PackagingSettings): void;
  streamClosed(stream: SegmentSource, address: StreamAddress): void;
}

/**
 * Registered in the core, which attaches streams and closes them. `follower` is notified of every stream; the publisher itself has nothing
 * to close.
 */
export abstract class PackagingPublisher<Settings extends PackagingSettings, Stream extends PackagedStream<Settings>>
  implements Publisher<Settings>
{
  abstract readonly kind: PublisherKind;
  readonly #delivery: FeedOpener;
  readonly #follower: StreamFollower | null;
  readonly #storage: DvrStorage;

  constructor(delivery: FeedOpener, follower: StreamFollower | null = null, storage: DvrStorage = new DvrStorage()) {
    this.#delivery = delivery;
    this.#follower = follower;
    this.#storage = storage;
  }

  /** The video and the audio that most players take; where players choose by codec, other audio codecs behind it. */
  defaultPlaylist(tracks: readonly Track[], settings: Settings): Playlist | null {
    return settings.createDefaultPlaylist ? defaultPlaylist(tracks, this.choice, this.ownPlaylist) : null;
  }

  attach(stream: PublishableStream, settings: Settings): Stream {
    const address = addressOf(stream);
    return this.open({
      stream,
      settings,
      delivery: this.#delivery,
      storage: this.#storage,
      onStart: (started) => this.#follower?.streamStarted(started, address, settings),
      onClose: (closed) => this.#follower?.streamClosed(closed, address),
    });
  }

  protected abstract readonly ownPlaylist: Omit<Playlist, 'renditions'>;
  protected abstract readonly choice: DefaultChoice;
  protected abstract open(options: PackagedStreamOptions<Settings>): Stream;
}
