/** An admission with a time limit. */
import type { Clock } from '../util/clock.ts';
import type { Admitted, Passed } from './access-check.ts';

/** Interval of the wall clock checks, ms: the clock may be set, and a timer cannot run for a month. */
const LOOK_MS = 60_000;
const OVER = 'the time that it was given is over';

/** Has a timer from `begin` until its limit or `close`, if it has a limit. */
export class AdmissionLease implements Admitted {
  readonly admitted = true;
  #expiresAt = Number.POSITIVE_INFINITY;
  #reason = OVER;
  #newUrl: string | undefined;
  #ticket: number | undefined;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown, what: string) => void;
  /** Null while there are none: most admissions have none. */
  #onClosed: (() => void)[] | null = null;
  #watches: NonNullable<Passed['watch']>[] | null = null;
  #grant: string | undefined;
  #ended = false;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** `onFault` is called with exceptions of the owner's callbacks in a timer, and of checks at the end. */
  constructor(clock: Clock, onFault: (error: unknown, what: string) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
  }

  get expiresAt(): number {
    return this.#expiresAt;
  }

  get grant(): string | undefined {
    return this.#grant;
  }

  get newUrl(): string | undefined {
    return this.#newUrl;
  }

  get ticket(): number | undefined {
    return this.#ticket;
  }

  /** Adds the result of one more check: the smallest limit applies, and the last of the values that can be used only once. */
  limit({ expiresAt, expiry = OVER, newUrl, ticket, closed, grant, watch }: Passed): void {
    if (closed !== undefined) this.#whenClosed(closed);
    if (watch !== undefined) {
      this.#watches ??= [];
      this.#watches.push(watch);
    }
    this.#grant ??= grant;
    this.#newUrl = newUrl ?? this.#newUrl;
    this.#ticket = ticket ?? this.#ticket;
    if (expiresAt >= this.#expiresAt) return;
    this.#expiresAt = expiresAt;
    this.#reason = expiry;
  }

  begin(onExpired: (reason: string) => void): void {
    if (this.#closed) return;
    const end = (reason: string): void => {
      if (this.#closed || this.#ended) return;
      this.#ended = true;
      this.#guarded('the end of a session whose time is over', () => onExpired(reason));
    };
    for (const watch of this.#watches ?? []) this.#whenClosed(watch(end));
    if (this.#expiresAt === Number.POSITIVE_INFINITY) return;
    const look = (): void => {
      this.#timer = null;
      if (this.#closed) return;
      const left = this.#expiresAt - this.#clock.now();
      if (left > 0) this.#wait(look, left);
      else end(this.#reason);
    };
    this.#wait(look, Math.max(0, this.#expiresAt - this.#clock.now()));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#onClosed === null) return;
    for (const closed of this.#onClosed) this.#guarded('the end of an admission', closed);
  }

  #whenClosed(closed: () => void): void {
    this.#onClosed ??= [];
    this.#onClosed.push(closed);
  }

  /** The other listeners are still called. */
  #guarded(what: string, action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#onFault(error, what);
    }
  }

  /** Does not keep the process alive: a stopping server ends its sessions itself. */
  #wait(look: () => void, ms: number): void {
    this.#timer = setTimeout(look, Math.min(ms, LOOK_MS));
    this.#timer.unref();
  }
}
