/** Admits new connections and streams one after the other, so that they do not delay running streams. */
import { addressOwner } from './client-address.ts';

/** Limit of waiting newcomers. */
const MAX_WAITING = 1024;
/** Main-thread time, ms, that newcomers may use at once after an idle period. */
const BURST_MS = 2;
/** Share of the main thread's time that newcomers may use in the long run. */
const SHARE = 0.3;
/** Maximum run of waiting newcomers, ms; sockets are served after each run. */
const STRETCH_MS = 1;
/** Maximum debt, ms: a newcomer that took longer was itself delayed. */
const MAX_DEBT_MS = 12;

/** Something that begins: a connection, a publication, a stream. */
export interface Newcomer {
  /** Address of the client; an IPv6 /64 counts as one address. Empty: started by the server. */
  readonly client: string;
  /** Does the expensive part. */
  readonly enter: () => void;
  /** `enter` threw after it had waited. */
  readonly failed: (error: unknown) => void;
  /** There is no room to wait in. May be called before `take` returns. */
  readonly refused: (reason: string) => void;
}

/** The turns, as the code that admits clients sees them. */
export type Turns = Pick<NewcomerTurns, 'take' | 'leave'>;

/** For programs without a server: everything enters at once. */
export const NO_TURNS: Turns = { take: ({ enter }) => enter(), leave: () => undefined };

/**
 * Gives newcomers a share of the main thread. A single newcomer enters at once. In a flood the addresses take turns; when the queue is
 * full, the address with the most waiting newcomers loses its last one. A run lasts a few milliseconds at most. The owner closes it.
 */
export class NewcomerTurns {
  /** Newcomers that found no room since the start. */
  refused = 0;
  readonly #now: () => number;
  /** Waiting newcomers by owner, in the order of their turns; no list is empty. */
  readonly #waiting = new Map<string, Newcomer[]>();
  readonly #onRefused: (client: string) => void;
  #size = 0;
  /** Time used beyond the share so far, ms. */
  #debt = 0;
  #earnedAt: number;
  #timer: NodeJS.Timeout | undefined;

  /** `now`: a monotonic clock, ms, that advances during a callback. `onRefused`: a newcomer of this address was refused. */
  constructor({
    now = () => performance.now(),
    onRefused = () => undefined,
  }: { now?: () => number; onRefused?: (client: string) => void } = {}) {
    this.#now = now;
    this.#onRefused = onRefused;
    this.#earnedAt = now();
  }

  /** Newcomers that wait. */
  get size(): number {
    return this.#size;
  }

  /** Calls `enter` at once when there is time, and passes on its exception; otherwise later, or never. */
  take(newcomer: Newcomer): void {
    if (this.#size === 0 && this.#earn() < BURST_MS) this.#run(newcomer.enter);
    else this.#enqueue(newcomer);
  }

  /** The newcomer no longer wants to enter. Idempotent. */
  leave(newcomer: Newcomer): void {
    const owner = addressOwner(newcomer.client);
    const line = this.#waiting.get(owner);
    const at = line?.indexOf(newcomer) ?? -1;
    if (line !== undefined && at >= 0) this.#remove(owner, line, at);
  }

  /** Removes all waiting newcomers. Idempotent. */
  close(): void {
    this.#waiting.clear();
    this.#size = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #enqueue(newcomer: Newcomer): void {
    const owner = addressOwner(newcomer.client);
    if (this.#size >= MAX_WAITING && !this.#makeRoom(owner)) {
      this.#refuse(newcomer);
      return;
    }
    const line = this.#waiting.get(owner);
    if (line === undefined) this.#waiting.set(owner, [newcomer]);
    else line.push(newcomer);
    this.#size += 1;
    this.#schedule();
  }

  /** Drops the last newcomer of the longest list; returns false if that list belongs to `owner`. */
  #makeRoom(owner: string): boolean {
    let [longest, most] = [owner, this.#waiting.get(owner)?.length ?? 0];
    for (const [other, { length }] of this.#waiting) if (length > most + 1) [longest, most] = [other, length];
    const line = this.#waiting.get(longest);
    const last = line?.at(-1);
    if (longest === owner || line === undefined || last === undefined) return false;
    this.#remove(longest, line, line.length - 1);
    this.#refuse(last);
    return true;
  }

  #refuse({ client, refused }: Newcomer): void {
    this.refused += 1;
    this.#onRefused(client);
    refused(`${MAX_WAITING} newcomers are waiting already, and those of this address are too many of them`);
  }

  #remove(owner: string, line: Newcomer[], at: number): void {
    line.splice(at, 1);
    this.#size -= 1;
    if (line.length === 0) this.#waiting.delete(owner);
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#size === 0) return;
    const wait = Math.max(0, this.#earn() - BURST_MS) / SHARE;
    this.#timer = setTimeout(() => this.#work(), Math.ceil(wait));
  }

  #work(): void {
    this.#timer = undefined;
    const from = this.#now();
    while (this.#size > 0 && this.#earn() < BURST_MS && this.#now() - from < STRETCH_MS) {
      const newcomer = this.#next();
      if (newcomer === null) break;
      try {
        this.#run(newcomer.enter);
      } catch (error) {
        newcomer.failed(error);
      }
    }
    this.#schedule();
  }

  /** The next newcomer of the address whose turn it is; the address then moves behind all others. */
  #next(): Newcomer | null {
    for (const [owner, line] of this.#waiting) {
      this.#waiting.delete(owner);
      const first = line.shift();
      if (line.length > 0) this.#waiting.set(owner, line);
      if (first === undefined) continue;
      this.#size -= 1;
      return first;
    }
    return null;
  }

  #run(enter: () => void): void {
    const from = this.#now();
    try {
      enter();
    } finally {
      this.#debt = Math.min(MAX_DEBT_MS, this.#earn() + this.#now() - from);
    }
  }

  /** The remaining debt. */
  #earn(): number {
    const now = this.#now();
    this.#debt = Math.max(0, this.#debt - (now - this.#earnedAt) * SHARE);
    this.#earnedAt = now;
    return this.#debt;
  }
}
