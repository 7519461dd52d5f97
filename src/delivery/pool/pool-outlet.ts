/** Main-thread side of one outlet. */
import type { Outlet, OutletOpener, Span } from '../outlet/messages.ts';
import type { ToThread } from '../thread-protocol.ts';
import type { ArenaWriter } from './shared-arena.ts';

/** Options of an outlet, as `OutletOpener` has them. */
export type OutletRequest = Parameters<OutletOpener['openOutlet']>[0];

/** The pool as an outlet sees it. */
export interface OutletOwner {
  post(message: ToThread): void;
  outletClosed(outlet: PoolOutlet): void;
}

/** Made by the pool, closed by the publisher whose stream it is; `close` may be called twice. */
export class PoolOutlet implements Outlet {
  readonly id: number;
  readonly request: OutletRequest;
  /** When somebody without a session was last served of it, monotonic ms. */
  readAt = Number.NEGATIVE_INFINITY;
  readonly #writer: ArenaWriter;
  readonly #owner: OutletOwner;
  /** Threads that serve somebody of it. */
  readonly #attendants = new Set<number>();
  #closed = false;

  constructor(id: number, request: OutletRequest, writer: ArenaWriter, owner: OutletOwner) {
    this.id = id;
    this.request = request;
    this.#writer = writer;
    this.#owner = owner;
    owner.post(this.#opening());
  }

  get attended(): boolean {
    return this.#attendants.size > 0;
  }

  /** A thread serves somebody of it, or nobody any more. */
  attend(thread: number, wanted: boolean): void {
    const before = this.attended;
    if (wanted) this.#attendants.add(thread);
    else this.#attendants.delete(thread);
    if (!before && wanted && !this.#closed) this.request.onAttended?.();
  }

  /** Tells a thread that starts everything it must know. */
  *replay(): Iterable<ToThread> {
    yield this.#opening();
    for (const payload of this.request.snapshot()) yield { type: 'outlet-update', outlet: this.id, payload };
  }

  update(payload: unknown): void {
    if (!this.#closed) this.#owner.post({ type: 'outlet-update', outlet: this.id, payload });
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
    this.#owner.post({ type: 'outlet-close', outlet: this.id });
    this.#writer.close();
    this.#owner.outletClosed(this);
  }

  #opening(): ToThread {
    const { kind, address, crossDomains, settings } = this.request;
    return { type: 'outlet-open', outlet: this.id, kind, address, crossDomains, settings };
  }
}
