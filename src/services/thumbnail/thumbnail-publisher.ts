/** The thumbnail publisher: serves the newest image of outbound streams through the delivery threads. */
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, Publisher } from '../../core/publishing.ts';
import type { FeedOpener } from '../../delivery/feed/messages.ts';
import { type ThumbnailSettings, ThumbnailStream } from './thumbnail-stream.ts';

export class ThumbnailPublisher implements Publisher<ThumbnailSettings> {
  readonly kind = PublisherKind.THUMBNAIL;
  readonly #delivery: FeedOpener;

  constructor(delivery: FeedOpener) {
    this.#delivery = delivery;
  }

  /** Images are in no playlist. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream, settings: ThumbnailSettings): ThumbnailStream {
    return new ThumbnailStream(stream, settings, this.#delivery);
  }
}
