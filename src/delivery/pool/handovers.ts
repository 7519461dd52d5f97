/** Changes that all delivery threads must have applied before the caller continues. */

/** A thread that has not answered by then may hang: the wait ends, ms. */
const DEADLINE_MS = 5000;

interface Handover {
  readonly missing: Set<number>;
  readonly resolve: () => void;
  readonly deadline: NodeJS.Timeout;
}

/** Numbers the handovers, and records which threads have not applied them. */
export class Handovers {
  readonly #open = new Map<number, Handover>();
  #last = 0;

  /** `done` resolves when all `threads` have applied handover `number` or have ended, after five seconds at the latest. */
  begin(threads: readonly number[]): { readonly number: number; readonly done: Promise<void> } {
    this.#last += 1;
    const number = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    const deadline = setTimeout(() => this.#end(number), DEADLINE_MS).unref();
    this.#open.set(number, { missing: new Set(threads), resolve, deadline });
    this.#settle();
    return { number, done: promise };
  }

  applied(thread: number, number: number): void {
    this.#open.get(number)?.missing.delete(thread);
    this.#settle();
  }

  /** A restarted thread gets the whole state anyway. */
  threadGone(thread: number): void {
    for (const { missing } of this.#open.values()) missing.delete(thread);
    this.#settle();
  }

  /** All waits end. */
  close(): void {
    for (const number of this.#open.keys()) this.#end(number);
  }

  #settle(): void {
    for (const [number, { missing }] of this.#open) if (missing.size === 0) this.#end(number);
  }

  #end(number: number): void {
    const handover = this.#open.get(number);
    if (handover === undefined) return;
    this.#open.delete(number);
    clearTimeout(handover.deadline);
    handover.resolve();
  }
}
