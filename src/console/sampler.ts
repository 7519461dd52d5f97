/** Samples the whole server while the user is logged in, on every page, and keeps the last hour. */
import type { LiveEvent, MillraceClient } from '../client/index.ts';
import { History } from './history.ts';
import { watchEvents } from './live-events.ts';
import type { LiveClock } from './live-updates.ts';
import { type Buckets, bucketsOf, quantileSince, readMetrics, type Sample, sumOf } from './metrics-text.ts';
import { type Note, NoteBook } from './notes.ts';
import type { Statistics } from './server-facts.ts';

/** A sample; rates in bit/s, `cpu` in per cent of a core, `loop` in per cent of the time, `delay` of the event loop in ms, `memory` in bytes. */
export type Figure = 'in' | 'out' | 'webrtc' | 'llhls' | 'hlsv3' | 'srt' | 'cpu' | 'loop' | 'delay' | 'memory';

const FIGURES: readonly Figure[] = ['in', 'out', 'webrtc', 'llhls', 'hlsv3', 'srt', 'cpu', 'loop', 'delay', 'memory'];
/** One hour with a sample every two seconds. */
const MAX_SAMPLES = 1800;
const VIEWERS = ['webrtc', 'llhls', 'hlsv3', 'srt'] as const;
const BITS = 8;
const LOOP_ACTIVE = 'millrace_event_loop_active_seconds_total';
const LOOP_DELAY = 'millrace_event_loop_delay_seconds';
const QUANTILE = 0.99;
/** Rates are averages over this span, ms: viewers request segments in bursts. The server's history has the same span. */
const RATE_SPAN_MS = 10_000;
/** Kept ended sessions. */
const MAX_ENDED = 200;

interface Totals {
  readonly at: number;
  readonly in: number;
  readonly out: number;
  readonly cpu: number | null;
  readonly loop: number | null;
  readonly delays: Buckets;
}

/** The answer of `/health`. */
export interface HealthAnswer {
  readonly status: string;
  readonly reasons?: readonly string[];
}

/** Created at each login. */
export class Sampler {
  readonly history = new History<Figure>(FIGURES, MAX_SAMPLES);
  readonly #client: MillraceClient;
  readonly #notes = new NoteBook();
  readonly #listeners = new Set<() => void>();
  #health: HealthAnswer | null = null;
  /** Oldest first, at most `RATE_SPAN_MS` before the last. */
  #past: readonly Totals[] = [];
  #isLooking = false;
  #isAnswering = true;
  #isTold = false;
  #ended: readonly LiveEvent[] = [];

  constructor(client: MillraceClient) {
    this.#client = client;
  }

  /** Null before the first answer. */
  get health(): HealthAnswer | null {
    return this.#health;
  }

  /** False: the last request failed. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Newest first. */
  get notes(): readonly Note[] {
    return this.#notes.all;
  }

  /** Sessions that have ended while the console was open, newest first. */
  get ended(): readonly LiveEvent[] {
    return this.#ended;
  }

  /** Takes a sample at each tick of `updates` and reports events to it, until the returned function is called. */
  start(updates: LiveClock): () => void {
    void this.#recall();
    void this.#look();
    const leave = updates.follow(() => void this.#look());
    const stop = watchEvents(this.#client, {
      heard: (event) => {
        this.#hear(event);
        updates.changed();
      },
      told: (isTold) => {
        this.#isTold = isTold;
        updates.isTold = isTold;
      },
    });
    return () => {
      leave();
      stop();
    };
  }

  /** Adds samples from before the login. If the server has no history, the charts start empty. */
  async #recall(): Promise<void> {
    const past = await this.#client.get('/v2/internals/history').catch(() => null);
    if (past === null) return;
    this.history.prepend(
      past.samples.map(({ time, throughputIn, throughputOut, connections, cpu, eventLoop, memory }) => ({
        at: Date.parse(time),
        values: {
          ...{ in: throughputIn * BITS, out: throughputOut * BITS, cpu: cpu * 100, loop: eventLoop * 100, memory },
          ...Object.fromEntries(VIEWERS.map((kind) => [kind, connections[kind] ?? 0])),
        },
      })),
    );
    for (const listener of this.#listeners) listener();
  }

  #hear(event: LiveEvent): void {
    this.#notes.hear(event);
    if (event.type === 'session.ended') this.#ended = [event, ...this.#ended].slice(0, MAX_ENDED);
  }

  /** Calls `listener` after each sample. */
  follow(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const [statistics, metrics, health] = await Promise.all([
        this.#client.get('/v1/stats/current'),
        this.#client.get('/metrics'),
        this.#client.get('/health'),
      ]);
      this.#health = health;
      this.#isAnswering = true;
      this.#take(Date.now(), statistics, readMetrics(metrics));
    } catch {
      this.#isAnswering = false;
    } finally {
      this.#isLooking = false;
      for (const listener of this.#listeners) listener();
    }
  }

  #take(at: number, { totalBytesIn, totalBytesOut, connections }: Statistics, samples: readonly Sample[]): void {
    const now: Totals = {
      at,
      in: totalBytesIn,
      out: totalBytesOut,
      cpu: sumOf(samples, 'process_cpu_seconds_total'),
      loop: sumOf(samples, LOOP_ACTIVE),
      delays: bucketsOf(samples, LOOP_DELAY),
    };
    // Counters restart with the server.
    const isAnother = this.#past.some((each) => each.in > now.in || each.out > now.out);
    const past = isAnother ? [] : this.#past.filter((each) => at - each.at <= RATE_SPAN_MS);
    const [before, last] = [past[0], past.at(-1)];
    this.#past = [...past, now];
    this.#notes.take(at, samples, this.#health?.reasons ?? [], this.#isTold);
    const seconds = before === undefined ? 0 : (at - before.at) / 1000;
    const rate = (of: number | null, since: number | null | undefined): number | null =>
      of === null || since === null || since === undefined || seconds <= 0 || of < since ? null : (of - since) / seconds;
    const bits = (of: number | null): number | null => (of === null ? null : of * 8);
    const percent = (share: number | null): number | null => (share === null ? null : share * 100);
    this.history.add(at, {
      in: bits(rate(now.in, before?.in)),
      out: bits(rate(now.out, before?.out)),
      webrtc: connections['webrtc'] ?? 0,
      llhls: connections['llhls'] ?? 0,
      hlsv3: connections['hlsv3'] ?? 0,
      srt: connections['srt'] ?? 0,
      cpu: percent(rate(now.cpu, before?.cpu)),
      loop: percent(rate(now.loop, before?.loop)),
      delay: milliseconds(quantileSince(now.delays, last?.delays ?? null, QUANTILE)),
      memory: sumOf(samples, 'process_resident_memory_bytes'),
    });
  }
}

function milliseconds(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1000;
}
