/** Main-thread side of one feed. */
import type { DeliveryFeed, FeedOpener, Span } from '../feed/messages.ts';
import type { SessionSighting, ToThread } from '../thread-protocol.ts';
import type { ArenaWriter } from './shared-arena.ts';

/** Options of a feed, as `FeedOpener` has them. */
export type FeedRequest = Parameters<FeedOpener['openFeed']>[0];

/** The pool as a feed sees it. */
export interface FeedOwner {
  post(message: ToThread): void;
  feedClosed(feed: PoolFeed): void;
}

/** Made by the pool, closed by the publisher whose stream it is; `close` may be called twice. */
export class PoolFeed implements DeliveryFeed {
  readonly id: number;
  readonly request: FeedRequest;
  /** Time of the last answer to a reader without a session, monotonic ms. */
  readAt = Number.NEGATIVE_INFINITY;
  readonly #writer: ArenaWriter;
  readonly #owner: FeedOwner;
  /** Threads with viewers of the feed. */
  readonly #watchers = new Set<number>();
  #closed = false;

  constructor(id: number, request: FeedRequest, writer: ArenaWriter, owner: FeedOwner) {
    this.id = id;
    this.request = request;
    this.#writer = writer;
    this.#owner = owner;
    owner.post(this.#opening());
  }

  get watched(): boolean {
    return this.#watchers.size > 0;
  }

  /** A reader without a session read from it at `now`, monotonic ms. */
  wasRead(now: number): void {
    this.readAt = now;
  }

  /** The fields of a log line about a session. */
  fieldsOf({ session, remoteAddress }: SessionSighting): object {
    const { vhost, app, stream } = this.request.address;
    return { vhost, app, stream, publisher: this.request.kind, session, peer: remoteAddress };
  }

  /** `wanted`: whether the thread has viewers of this feed. */
  setWatched(thread: number, wanted: boolean): void {
    const before = this.watched;
    if (wanted) this.#watchers.add(thread);
    else this.#watchers.delete(thread);
    if (!before && wanted && !this.#closed) this.request.onWatched?.();
  }

  /** The whole state for a thread that starts. */
  *replay(): Iterable<ToThread> {
    yield this.#opening();
    for (const payload of this.request.snapshot()) yield { type: 'feed-update', feed: this.id, payload };
  }

  update(payload: unknown): void {
    if (!this.#closed) this.#owner.post({ type: 'feed-update', feed: this.id, payload });
  }

  store(chunks: readonly Uint8Array[]): readonly Span[] {
    return this.#writer.store(chunks);
  }

  read(spans: readonly Span[]): readonly Uint8Array[] {
    return this.#writer.read(spans);
  }

  release(spans: readonly Span[]): void {
    this.#writer.release(spans);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#owner.post({ type: 'feed-close', feed: this.id });
    this.#writer.close();
    this.#owner.feedClosed(this);
  }

  #opening(): ToThread {
    const { kind, address, crossDomains, settings } = this.request;
    return { type: 'feed-open', feed: this.id, kind, address, crossDomains, settings };
  }
}
