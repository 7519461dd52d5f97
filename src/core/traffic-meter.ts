import type { Clock } from '../util/clock.ts';
import { ByteMeter } from './byte-meter.ts';
import { ProviderKind, PublisherKind } from './kinds.ts';
import type { EgressMeter } from './publishing.ts';

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
