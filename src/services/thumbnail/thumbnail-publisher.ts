/** The thumbnail publisher: serves the newest image of outbound streams through the egress threads. */
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, Publisher } from '../../core/publishing.ts';
import type { EgressPort } from '../../delivery/outlet/messages.ts';
import { type ThumbnailSettings, ThumbnailStream } from './thumbnail-stream.ts';

export class ThumbnailPublisher implements Publisher<ThumbnailSettings> {
  readonly kind = PublisherKind.THUMBNAIL;
  readonly #egress: EgressPort;

  constructor(egress: EgressPort) {
    this.#egress = egress;
  }

  /** Images are in no playlist. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream, settings: ThumbnailSettings): ThumbnailStream {
    return new ThumbnailStream(stream, settings, this.#egress);
  }
}
