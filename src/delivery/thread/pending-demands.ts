/** Requests for missing streams, held until the main thread knows whether an origin has them. */
import type { WantedStream } from '../../core/origins.ts';
import { streamKey } from '../../core/stream-address.ts';
import type { StreamPresence } from '../../core/unknown-stream.ts';
import type { FromThread } from '../thread-protocol.ts';

/** Called once with the result. */
export type DemandListener = (found: StreamPresence) => void;

/** One per thread. `close` reports to all listeners that nothing was found; idempotent. */
export class PendingDemands {
  readonly #post: (message: FromThread) => void;
  readonly #limit: number;
  /** By number of the question; all requests for one stream share a question. */
  readonly #questions = new Map<number, { readonly key: string; readonly listeners: Set<DemandListener> }>();
  readonly #byStream = new Map<string, number>();
  #origins: ReadonlySet<string> = new Set();
  #lastQuestion = 0;
  /** Requests held. */
  #waiting = 0;

  /** `limit`: held requests. */
  constructor(post: (message: FromThread) => void, limit: number) {
    this.#post = post;
    this.#limit = limit;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Names of the virtual hosts that have origins. */
  setOrigins(vhosts: ReadonlySet<string>): void {
    this.#origins = vhosts;
  }

  hasOrigins(vhost: string): boolean {
    return this.#origins.has(vhost);
  }

  /** Asks for `wanted`. Returns a function that removes `listener`, or null: too many requests are held. */
  ask(wanted: WantedStream, listener: DemandListener): (() => void) | null {
    if (this.#waiting >= this.#limit) return null;
    const key = streamKey(wanted);
    const listeners = this.#questions.get(this.#byStream.get(key) ?? 0)?.listeners ?? this.#question(wanted, key);
    listeners.add(listener);
    this.#waiting += 1;
    return () => {
      if (listeners.delete(listener)) this.#waiting -= 1;
    };
  }

  /** The answer of the main thread; a found stream was announced before. */
  answered(question: number, found: StreamPresence): void {
    const asked = this.#questions.get(question);
    if (asked === undefined) return;
    this.#questions.delete(question);
    this.#byStream.delete(asked.key);
    this.#waiting -= asked.listeners.size;
    for (const listener of asked.listeners) listener(found);
    asked.listeners.clear();
  }

  /** Every later result is negative. */
  close(): void {
    for (const question of [...this.#questions.keys()]) this.answered(question, false);
  }

  #question(wanted: WantedStream, key: string): Set<DemandListener> {
    this.#lastQuestion += 1;
    const listeners = new Set<DemandListener>();
    this.#questions.set(this.#lastQuestion, { key, listeners });
    this.#byStream.set(key, this.#lastQuestion);
    this.#post({ type: 'demand', question: this.#lastQuestion, wanted });
    return listeners;
  }
}
