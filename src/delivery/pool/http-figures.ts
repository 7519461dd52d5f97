/** Figures of viewers over HTTP, of all delivery threads together. */
import type { ThreadReport } from '../thread-protocol.ts';

/** Counts since the start of the server, and two figures of this moment. */
export interface HttpTotals {
  readonly connections: number;
  /** Requests that wait for media, for a stream or for a control server. */
  readonly waiting: number;
  readonly opened: number;
  readonly refused: number;
  readonly overloads: number;
  readonly requests: number;
  readonly faults: number;
  readonly timeouts: number;
  readonly aborts: number;
  readonly bytesSent: number;
  /** Answers for several viewers that found no room to be kept. */
  readonly unkept: number;
  /** Requests that waited in the addon for the answer to another. */
  readonly held: number;
  /** Those for which the addon had no room: JavaScript held them. */
  readonly crowded: number;
  /** Answers by first digit of the status: index 1 to 5. */
  readonly statuses: readonly number[];
}

type Reported = Pick<ThreadReport, 'http' | 'connections' | 'waiting' | 'unkept' | 'held' | 'crowded'>;

const NONE: HttpTotals = {
  ...{ connections: 0, waiting: 0, opened: 0, refused: 0, overloads: 0, requests: 0, faults: 0, timeouts: 0, aborts: 0, bytesSent: 0 },
  ...{ unkept: 0, held: 0, crowded: 0 },
  statuses: [0, 0, 0, 0, 0, 0],
};

/** By thread, and of those that are gone together: counters never go back. Nothing to close. */
export class HttpFigures {
  readonly #threads = new Map<number, Reported>();
  #past = NONE;

  /** The sum. */
  get totals(): HttpTotals {
    return [...this.#threads.values()].reduce(added, this.#past);
  }

  /** Takes the latest report of a thread. */
  set(thread: number, { http, connections, waiting, unkept, held, crowded }: Reported): void {
    this.#threads.set(thread, { http, connections, waiting, unkept, held, crowded });
  }

  /** Its connections have ended with it. */
  threadGone(thread: number): void {
    const last = this.#threads.get(thread);
    if (last !== undefined) this.#past = added(this.#past, { ...last, connections: 0, waiting: 0 });
    this.#threads.delete(thread);
  }
}

function added(sum: HttpTotals, { http, connections, waiting, unkept, held, crowded }: Reported): HttpTotals {
  return {
    connections: sum.connections + connections,
    waiting: sum.waiting + waiting,
    unkept: sum.unkept + unkept,
    held: sum.held + held,
    crowded: sum.crowded + crowded,
    opened: sum.opened + http.opened,
    refused: sum.refused + http.refused,
    overloads: sum.overloads + http.overloads,
    requests: sum.requests + http.requests,
    faults: sum.faults + http.faults,
    timeouts: sum.timeouts + http.timeouts,
    aborts: sum.aborts + http.aborts,
    bytesSent: sum.bytesSent + http.bytesSent,
    statuses: sum.statuses.map((count, n) => count + (http.statuses[n] ?? 0)),
  };
}
