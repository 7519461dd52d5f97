/** Answers requests for thumbnails in an egress thread. */
import type { Span } from '../../delivery/outlet/messages.ts';
import type { DeliveryExchange, OutletView, ViewContext } from '../../delivery/outlet/view.ts';
import { WaitingRoom } from '../../delivery/outlet/waiting-room.ts';
import { PictureKind, type ThumbnailUpdate } from './updates.ts';

const NAME = /^thumb\.(jpg|png|webp)$/;
/** How long a request may wait for the first frame. */
const FIRST_PICTURE_MS = 5000;
const MAX_WAITING = 1000;

const TYPES: Readonly<Record<PictureKind, string>> = {
  [PictureKind.JPG]: 'image/jpeg',
  [PictureKind.PNG]: 'image/png',
  [PictureKind.WEBP]: 'image/webp',
};
// The address stays while the frame changes.
const NO_CACHE = 'Cache-Control: no-cache, no-store';
const ERROR_HEADERS = ['Content-Type: text/html', NO_CACHE];

const encoder = new TextEncoder();

/** A request that comes before the first frame waits for it, a while at most. `close` answers those that wait. */
export class ThumbnailView implements OutletView {
  readonly #waiting: WaitingRoom;
  readonly #pictures = new Map<PictureKind, readonly Span[]>();
  /** Null until the stream has started. */
  #kinds: readonly PictureKind[] | null = null;

  constructor(_settings: unknown, context: ViewContext) {
    this.#waiting = new WaitingRoom(context, MAX_WAITING);
  }

  update(payload: unknown): void {
    // Both ends are ours: payloads of this outlet are made by ThumbnailStream only.
    const update = payload as ThumbnailUpdate;
    if (update.type === 'kinds') {
      this.#kinds = update.kinds;
      for (const kind of this.#pictures.keys()) if (!update.kinds.includes(kind)) this.#pictures.delete(kind);
    } else {
      this.#pictures.set(update.kind, update.spans);
    }
    this.#waiting.retry();
  }

  handle(exchange: DeliveryExchange): boolean {
    const kind = NAME.exec(exchange.file)?.[1] as PictureKind | undefined;
    if (kind === undefined) return false;
    if (this.#kinds === null) refuse(exchange, 'The stream has not started');
    else if (!this.#answer(exchange, kind)) this.#wait(exchange, kind);
    return true;
  }

  close(): void {
    this.#waiting.close();
    this.#pictures.clear();
    this.#kinds = null;
  }

  /** Returns false while the first frame is still to come. */
  #answer(exchange: DeliveryExchange, kind: PictureKind): boolean {
    const spans = this.#pictures.get(kind);
    if (spans !== undefined) {
      exchange.respondSpans(200, [`Content-Type: ${TYPES[kind]}`, NO_CACHE], spans);
      return true;
    }
    if (this.#kinds?.includes(kind) === true) return false;
    refuse(exchange, `There is no thumbnail image: the output profile has no image encode for ${kind}`);
    return true;
  }

  #wait(exchange: DeliveryExchange, kind: PictureKind): void {
    const giveUp = (): void => refuse(exchange, 'There is no thumbnail image');
    const waiter = { exchange, attempt: () => this.#answer(exchange, kind), giveUp };
    if (!this.#waiting.add(waiter, FIRST_PICTURE_MS)) exchange.respond(503, ['Content-Type: text/html', NO_CACHE, 'Retry-After: 1'], []);
  }
}

function refuse(exchange: DeliveryExchange, reason: string): void {
  exchange.respond(404, ERROR_HEADERS, [encoder.encode(reason)]);
}
