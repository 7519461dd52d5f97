/** Metrics of parts that come later than players expect them. */
import { type StreamAddress, streamKey } from '../../../../core/stream-address.ts';
import { OTHER_STREAMS, streamLabels } from '../../../../core/stream-labels.ts';
import type { Clock } from '../../../../util/clock.ts';
import { MetricSeries, type SeriesDefinition } from '../../../../util/metric-series.ts';
import { Histogram, type MetricDefinition, type MetricSource, type MetricsPage } from '../../../../util/metrics.ts';

/** A part counts as late from this share of PART-TARGET on. A player that holds back three parts stalls at a share of two. */
const LATE = 0.5;
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const MAX_STREAMS_AT_ONCE = 100;

const LATENESS: MetricDefinition = {
  name: 'millrace_llhls_part_lateness_seconds',
  help: 'Delay of a part beyond PART-TARGET after the part before it, of LL-HLS streams with viewers',
  type: 'histogram',
};

const SERIES: readonly SeriesDefinition<StreamTimeliness>[] = [
  {
    name: 'millrace_llhls_parts_total',
    help: 'Parts made, of all tracks of an output stream',
    type: 'counter',
    value: ({ parts }) => parts,
  },
  {
    name: 'millrace_llhls_late_parts_total',
    help: 'Parts that were late by half of PART-TARGET or more while the output stream had viewers',
    type: 'counter',
    value: ({ late }) => late,
  },
];

/** The parts of one output stream. */
export class StreamTimeliness {
  readonly address: StreamAddress;
  parts = 0;
  late = 0;
  readonly #clock: Clock;
  readonly #lateness: Histogram;
  /** Arrival of the last part by track, ms; only while the stream has viewers. */
  readonly #lastAt = new Map<number, number>();

  constructor(address: StreamAddress, clock: Clock, lateness: Histogram) {
    this.address = address;
    this.#clock = clock;
    this.#lateness = lateness;
  }

  /** A part of a track has come; `target` in seconds. */
  part(trackId: number, target: number, isWatched: boolean): void {
    this.parts += 1;
    if (!isWatched) {
      this.#lastAt.delete(trackId);
      return;
    }
    const now = this.#clock.monotonic();
    const before = this.#lastAt.get(trackId);
    this.#lastAt.set(trackId, now);
    if (before === undefined) return;
    const lateness = Math.max(0, (now - before) / 1000 - target);
    this.#lateness.observe(lateness);
    if (lateness >= LATE * target) this.late += 1;
  }

  /** No part of a track is expected now: it has gone, or its source pauses. */
  pause(trackId: number): void {
    this.#lastAt.delete(trackId);
  }
}

/** The figures of all streams, each from `open` to `close`. */
export class PartTimeliness implements MetricSource {
  readonly definitions = [LATENESS, ...SERIES];
  readonly #clock: Clock;
  readonly #lateness = new Histogram(BOUNDS);
  readonly #streams = new Map<string, StreamTimeliness>();
  readonly #series = new MetricSeries(SERIES, OTHER_STREAMS);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  open(address: StreamAddress): StreamTimeliness {
    const stream = new StreamTimeliness(address, this.#clock, this.#lateness);
    this.#streams.set(streamKey(address), stream);
    return stream;
  }

  close(stream: StreamTimeliness): void {
    const key = streamKey(stream.address);
    if (this.#streams.get(key) === stream) this.#streams.delete(key);
  }

  *collect(page: MetricsPage): Iterable<void> {
    page.family(LATENESS).addHistogram(this.#lateness);
    this.#series.begin(page);
    let count = 0;
    for (const stream of this.#streams.values()) {
      this.#series.add(stream, streamLabels(page, stream.address), stream);
      count += 1;
      if (count % MAX_STREAMS_AT_ONCE === 0) yield;
    }
    this.#series.end();
  }
}
