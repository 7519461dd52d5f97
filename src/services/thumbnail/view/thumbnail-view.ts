/** Answers requests for thumbnails in a delivery thread. */

import { ErrorTexts, respondText } from '../../../delivery/feed/error-texts.ts';
import type { Span } from '../../../delivery/feed/messages.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../../../delivery/feed/view.ts';
import { WaitingRoom } from '../../../delivery/feed/waiting-room.ts';
import { ImageKind, type ThumbnailUpdate } from '../wire/updates.ts';

const NAME = /^thumb\.(jpg|png|webp)$/;
/** How long a request may wait for the first image. */
const FIRST_IMAGE_MS = 5000;
const MAX_WAITING = 1000;
/** A client counts as a viewer for this long after each image: pages that show images request the next within seconds. */
const VIEWER_MS = 10_000;

const TYPES: Readonly<Record<ImageKind, string>> = {
  [ImageKind.JPG]: 'image/jpeg',
  [ImageKind.PNG]: 'image/png',
  [ImageKind.WEBP]: 'image/webp',
};
// The address stays while the image changes.
const NO_CACHE = 'Cache-Control: no-cache, no-store';
const ERROR_HEADERS = ['Content-Type: text/html', NO_CACHE];

const encoder = new TextEncoder();

/** A request before the first image waits for it, for a limited time. `close` answers waiting requests. */
export class ThumbnailView implements DeliveryView {
  readonly #context: ViewContext;
  readonly #waiting: WaitingRoom;
  readonly #images = new Map<ImageKind, readonly Span[]>();
  /** Null until the stream has started. */
  #kinds: readonly ImageKind[] | null = null;

  constructor(_settings: unknown, context: ViewContext) {
    this.#context = context;
    this.#waiting = new WaitingRoom(context, MAX_WAITING);
  }

  update(payload: unknown): void {
    // Both ends are ours: payloads of this feed are made by ThumbnailStream only.
    const update = payload as ThumbnailUpdate;
    if (update.type === 'kinds') {
      this.#kinds = update.kinds;
      for (const kind of this.#images.keys()) if (!update.kinds.includes(kind)) this.#images.delete(kind);
    } else {
      this.#images.set(update.kind, update.spans);
    }
    this.#waiting.retry();
  }

  handle(exchange: DeliveryExchange): boolean {
    const kind = NAME.exec(exchange.file)?.[1] as ImageKind | undefined;
    if (kind === undefined) return false;
    if (this.#kinds === null) refuse(exchange, 'The stream has not started');
    else if (!this.#answer(exchange, kind)) this.#wait(exchange, kind);
    return true;
  }

  close(): void {
    this.#waiting.close();
    this.#images.clear();
    this.#kinds = null;
  }

  /** Returns false while the first image is still to come. */
  #answer(exchange: DeliveryExchange, kind: ImageKind): boolean {
    const spans = this.#images.get(kind);
    if (spans !== undefined) {
      if (!this.#context.countViewer(exchange, VIEWER_MS)) respondText(exchange, 401, ErrorTexts.SENT_AWAY);
      else exchange.respondSpans(200, [`Content-Type: ${TYPES[kind]}`, NO_CACHE], spans);
      return true;
    }
    if (this.#kinds?.includes(kind) === true) return false;
    refuse(exchange, `There is no thumbnail image: the output profile has no image encode for ${kind}`);
    return true;
  }

  #wait(exchange: DeliveryExchange, kind: ImageKind): void {
    const giveUp = (): void => refuse(exchange, 'There is no thumbnail image');
    const waiter = { exchange, attempt: () => this.#answer(exchange, kind), giveUp };
    if (!this.#waiting.add(waiter, FIRST_IMAGE_MS)) exchange.respond(503, ['Content-Type: text/html', NO_CACHE, 'Retry-After: 1'], []);
  }
}

function refuse(exchange: DeliveryExchange, reason: string): void {
  exchange.respond(404, ERROR_HEADERS, [encoder.encode(reason)]);
}
