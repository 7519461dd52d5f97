/**
 * Requests that wait for media: with one timer, removed when their client leaves. All rooms of a thread together hold at most
 * `DeliveryLimits.waiting`: the router takes back the request after that, and refuses it. A room may hold fewer.
 */
import type { DeliveryExchange, ViewContext } from './view.ts';

/** One held request. */
export interface Waiter {
  readonly exchange: DeliveryExchange;
  /** Answers and returns true if the awaited media is ready. */
  attempt(): boolean;
  /** Answers after the timeout, or because the media will not come. */
  giveUp(): void;
}

interface Entry {
  readonly waiter: Waiter;
  readonly deadline: number;
}

/** Waiting requests. Most have the same time limit, so the oldest expires first; some have waited elsewhere before. */
export class WaitingRoom {
  readonly #context: ViewContext;
  readonly #capacity: number;
  readonly #entries = new Set<Entry>();
  #cancelTimer: (() => void) | null = null;
  #timerAt = 0;
  /** The deadline of the newest entry. */
  #latest = 0;
  /** The entries are in the order of their deadlines. */
  #sorted = true;

  /** `capacity`: of this room, where it is smaller than that of the thread. */
  constructor(context: ViewContext, capacity = Number.POSITIVE_INFINITY) {
    this.#context = context;
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Lets `waiter` wait for at most `ms`, with the time it has waited elsewhere. False: the room has a capacity and is full. */
  add(waiter: Waiter, ms: number): boolean {
    if (this.#entries.size >= this.#capacity) {
      this.#context.noteOverload();
      return false;
    }
    const left = ms - waiter.exchange.heldFor;
    if (left <= 0) {
      waiter.giveUp();
      return true;
    }
    const deadline = this.#context.now() + left;
    const entry = { waiter, deadline };
    if (this.#entries.size === 0) this.#sorted = true;
    else if (deadline < this.#latest) this.#sorted = false;
    this.#latest = deadline;
    this.#entries.add(entry);
    waiter.exchange.onAbort(() => this.#entries.delete(entry));
    if (this.#cancelTimer === null || deadline < this.#timerAt) this.#startTimer(deadline);
    return true;
  }

  /** Media has arrived: answers every waiter that can be answered. Throws a waiter's exception after all were tried. */
  retry(): void {
    this.#each(this.#entries, (waiter) => waiter.attempt());
  }

  /** Answers all waiting requests. Exceptions are thrown after the last one. */
  close(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#each([...this.#entries], sendAway);
  }

  /** A request is removed when `action` answers it. If `action` throws, the request is answered with 500 and the others continue. */
  #each(entries: Iterable<Entry>, action: (waiter: Waiter) => boolean): void {
    const faults: unknown[] = [];
    for (const entry of entries) {
      const { waiter } = entry;
      try {
        if (waiter.exchange.done || action(waiter)) this.#entries.delete(entry);
      } catch (error) {
        faults.push(error);
        this.#entries.delete(entry);
        waiter.exchange.respond(500, [], []);
      }
    }
    if (faults.length > 0) throw faults[0];
  }

  #startTimer(deadline: number): void {
    this.#cancelTimer?.();
    this.#timerAt = deadline;
    this.#cancelTimer = this.#context.schedule(Math.max(1, deadline - this.#context.now()), () => {
      this.#cancelTimer = null;
      this.#sweep();
    });
  }

  #sweep(): void {
    const now = this.#context.now();
    const late: Entry[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries) {
      if (entry.deadline <= now) late.push(entry);
      else next = Math.min(next, entry.deadline);
      if (this.#sorted && entry.deadline > now) break;
    }
    if (next !== Number.POSITIVE_INFINITY) this.#startTimer(next);
    this.#each(late, sendAway);
  }
}

function sendAway(waiter: Waiter): boolean {
  waiter.giveUp();
  return true;
}
