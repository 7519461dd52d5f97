import type { Clock } from '../util/clock.ts';
import { ProviderKind, PublisherKind } from './kinds.ts';
import type { EgressMeter } from './publishing.ts';

const INTERVAL_MS = 1000;
/** Throughput figures fall to 0 after this silence. */
const STALE_MS = 2000;

/** Bytes in one direction with the throughput figures of the statistics API. */
class ByteMeter {
  total = 0;
  /** Wall clock of the last byte, ms. */
  lastAt: number;
  /** Bytes per second: highest interval seen. */
  #max = 0;
  #last = 0;
  #avg = 0;
  #window = 0;
  #windowStart: number;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.lastAt = clock.now();
    this.#windowStart = clock.monotonic();
  }

  /** `now` is monotonic, `wall` the wall clock: the meters above count at the same moment. */
  add(bytes: number, now: number, wall: number): void {
    this.total += bytes;
    this.#window += bytes;
    const elapsed = now - this.#windowStart;
    if (elapsed >= INTERVAL_MS) {
      this.#last = this.#window;
      this.#avg = (this.#window * 1000) / elapsed;
      if (this.#avg > this.#max) this.#max = this.#avg;
      this.#window = 0;
      this.#windowStart = now;
    }
    this.lastAt = wall;
  }

  /** Bytes counted in the last whole interval. */
  get last(): number {
    return this.#stale ? 0 : this.#last;
  }

  /** Bits per second over the last whole interval. */
  get avg(): number {
    return this.#stale ? 0 : Math.round(this.#avg * 8);
  }

  /** Bits per second, maximum of `avg`. */
  get max(): number {
    return Math.round(this.#max * 8);
  }

  get #stale(): boolean {
    return this.#clock.monotonic() - this.#windowStart > STALE_MS;
  }
}

/** Counters of a stream, application, virtual host or the server; each adds to its parent too. */
export class TrafficMeter implements EgressMeter {
  /** Wall clock, ms. */
  readonly createdAt: number;
  readonly in: ByteMeter;
  readonly out: ByteMeter;
  /** Ingest connections now, by provider. */
  readonly ingests: Record<ProviderKind, number>;
  /** Viewer sessions now, by publisher. */
  readonly sessions: Record<PublisherKind, number>;
  totalSessions = 0;
  maxTotalSessions = 0;
  /** Wall clock of the peak, ms. */
  maxTotalSessionsAt: number;
  readonly #parent: TrafficMeter | null;
  readonly #clock: Clock;
  #updatedAt: number;
  #retired = false;

  constructor(clock: Clock, parent: TrafficMeter | null) {
    this.#clock = clock;
    this.#parent = parent;
    this.createdAt = clock.now();
    this.#updatedAt = this.createdAt;
    this.maxTotalSessionsAt = this.createdAt;
    this.in = new ByteMeter(clock);
    this.out = new ByteMeter(clock);
    this.ingests = Object.fromEntries(Object.values(ProviderKind).map((kind) => [kind, 0])) as Record<ProviderKind, number>;
    this.sessions = Object.fromEntries(Object.values(PublisherKind).map((kind) => [kind, 0])) as Record<PublisherKind, number>;
  }

  /** Wall clock of the last change, ms. */
  get updatedAt(): number {
    return Math.max(this.#updatedAt, this.in.lastAt, this.out.lastAt);
  }

  countBytesIn(bytes: number): void {
    const now = this.#clock.monotonic();
    const wall = this.#clock.now();
    for (let meter: TrafficMeter | null = this; meter !== null; meter = meter.#parent) meter.in.add(bytes, now, wall);
  }

  countBytes(bytes: number): void {
    const now = this.#clock.monotonic();
    const wall = this.#clock.now();
    for (let meter: TrafficMeter | null = this; meter !== null; meter = meter.#parent) meter.out.add(bytes, now, wall);
  }

  ingestOpened(kind: ProviderKind): void {
    this.ingests[kind] += 1;
    this.#updatedAt = this.#clock.now();
    this.#parent?.ingestOpened(kind);
  }

  ingestClosed(kind: ProviderKind): void {
    this.ingests[kind] -= 1;
    this.#updatedAt = this.#clock.now();
    this.#parent?.ingestClosed(kind);
  }

  connect(kind: PublisherKind, count = 1): void {
    if (this.#retired) return;
    this.sessions[kind] += count;
    this.totalSessions += count;
    this.#updatedAt = this.#clock.now();
    if (this.totalSessions > this.maxTotalSessions) {
      this.maxTotalSessions = this.totalSessions;
      this.maxTotalSessionsAt = this.#updatedAt;
    }
    this.#parent?.connect(kind, count);
  }

  disconnect(kind: PublisherKind, count = 1): void {
    if (this.#retired) return;
    this.sessions[kind] -= count;
    this.totalSessions -= count;
    this.#updatedAt = this.#clock.now();
    this.#parent?.disconnect(kind, count);
  }

  /** The owner of this meter is going away: sessions still counted here are taken off the parents, later reports are ignored. */
  retire(): void {
    for (const kind of Object.values(PublisherKind)) {
      if (this.sessions[kind] > 0) this.disconnect(kind, this.sessions[kind]);
    }
    this.#retired = true;
  }
}
