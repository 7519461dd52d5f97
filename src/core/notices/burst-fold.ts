/** Makes sums of notices that come in floods, so that they neither push out the rare ones nor cost by the piece. */
import type { Clock } from '../../util/clock.ts';
import { type StreamAddress, streamKey } from '../stream-address.ts';
import type { Notice, RefusalNotice, SessionNotice } from './notice.ts';

/** This many sessions per second are posted one by one; the rest of the second is summed up. */
const MAX_SESSIONS = 200;
const MAX_REFUSALS = 50;
const SECOND_MS = 1000;
/** Limit of sums per second: sessions of further streams share one sum. */
const MAX_SUMS = 50;

type Sum = Extract<SessionNotice, { type: 'session.summary' }> | RefusalNotice;

/** State of one limit: of sessions or of refusals. */
interface Window {
  readonly most: number;
  since: number;
  told: number;
}

/** Sums are passed to `tell` at the end of their second. */
export class BurstFold {
  /** Notices that became part of a sum. */
  folded = 0;
  readonly #clock: Clock;
  readonly #tell: (notice: Notice) => void;
  readonly #windows = {
    sessions: { most: MAX_SESSIONS, since: Number.NEGATIVE_INFINITY, told: 0 },
    refusals: { most: MAX_REFUSALS, since: Number.NEGATIVE_INFINITY, told: 0 },
  } satisfies Record<string, Window>;
  #sums = new Map<string, Sum>();
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(clock: Clock, tell: (notice: Notice) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** True if `notice` becomes part of a sum; all others are posted as they are. */
  takes(notice: Notice): boolean {
    if (this.#closed) return false;
    switch (notice.type) {
      case 'session.started':
      case 'session.ended':
        if (this.#hasRoom(this.#windows.sessions)) return false;
        this.#addSession(notice, notice.type === 'session.started');
        break;
      case 'refusal.counted':
        if (this.#hasRoom(this.#windows.refusals)) return false;
        this.#addRefusal(notice);
        break;
      default:
        return false;
    }
    this.folded += 1;
    this.#timer ??= setTimeout(() => this.#flush(), SECOND_MS).unref();
    return true;
  }

  /** Posts the open sums; later notices are posted one by one. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#flush();
  }

  #hasRoom(window: Window): boolean {
    const now = this.#clock.monotonic();
    if (now - window.since >= SECOND_MS) {
      window.since = now;
      window.told = 0;
    }
    window.told += 1;
    return window.told <= window.most;
  }

  #addSession({ vhost, app, stream }: StreamAddress, starts: boolean): void {
    const key = this.#roomFor(`session ${streamKey({ vhost, app, stream })}`, 'session');
    const sum = this.#sums.get(key);
    const { started, ended } = sum?.type === 'session.summary' ? sum : { started: 0, ended: 0 };
    const place = key === 'session' ? {} : { vhost, app, stream };
    this.#sums.set(key, { type: 'session.summary', ...place, started: started + Number(starts), ended: ended + Number(!starts) });
  }

  #addRefusal({ direction, protocol, reason, count }: RefusalNotice): void {
    // The server defines these words, so there are few.
    const key = `refusal ${direction} ${protocol} ${reason}`;
    const sum = this.#sums.get(key);
    const before = sum?.type === 'refusal.counted' ? sum.count : 0;
    this.#sums.set(key, { type: 'refusal.counted', direction, protocol, reason, count: before + count });
  }

  /** `key` if there is room for its own sum, else `rest`. */
  #roomFor(key: string, rest: string): string {
    return this.#sums.has(key) || this.#sums.size < MAX_SUMS ? key : rest;
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const sums = this.#sums;
    this.#sums = new Map();
    for (const sum of sums.values()) this.#tell(sum);
  }
}
