/** Figures of one stream for its charts: first the server's history, then the samples of this page. */
import type { MillraceClient } from '../client/index.ts';
import { History } from './history.ts';
import type { Statistics, StreamInformation } from './server-facts.ts';
import { HISTORY, of, type StreamName } from './stream-list.ts';

/** Rates in bit/s, frames per second, frames between keyframes, viewers. */
export type StreamFigure = 'in' | 'out' | 'frames' | 'gop' | 'viewers';

/** One hour with a sample every two seconds. */
const MAX_SAMPLES = 1800;
const BITS = 8;
/** Rates are averages over this span, ms: viewers request segments in bursts. The server's history has the same span. */
const RATE_SPAN_MS = 10_000;

interface Totals {
  readonly at: number;
  readonly in: number;
  readonly out: number;
}

/** Created for each opened stream page. */
export class StreamSamples {
  readonly history = new History<StreamFigure>(['in', 'out', 'frames', 'gop', 'viewers'], MAX_SAMPLES);
  /** Oldest first, at most `RATE_SPAN_MS` before the last. */
  #past: readonly Totals[] = [];

  /** Adds samples from before the page was opened. If the server has no history, the charts start empty. */
  async recall(client: MillraceClient, name: StreamName): Promise<void> {
    const past = await client.get(HISTORY, of(name)).catch(() => null);
    if (past === null) return;
    this.history.prepend(
      past.samples.map(({ time, throughputIn, throughputOut, viewers, framerate = null, keyFrameInterval = null }) => ({
        at: Date.parse(time),
        values: { in: throughputIn * BITS, out: throughputOut * BITS, frames: framerate, gop: keyFrameInterval, viewers },
      })),
    );
  }

  /** `at`: wall clock, ms. */
  add(at: number, { input }: StreamInformation, statistics: Pick<Statistics, 'totalBytesIn' | 'totalBytesOut'>, viewers: number): void {
    const now: Totals = { at, in: statistics.totalBytesIn, out: statistics.totalBytesOut };
    // Counters restart if another stream takes the name.
    const isAnother = this.#past.some((each) => each.in > now.in || each.out > now.out);
    const past = isAnother ? [] : this.#past.filter((each) => at - each.at <= RATE_SPAN_MS);
    this.#past = [...past, now];
    const [before] = past;
    const seconds = before === undefined ? 0 : (at - before.at) / 1000;
    const rate = (bytes: number, since = 0): number | null => (seconds <= 0 ? null : ((bytes - since) * BITS) / seconds);
    const video = input.tracks.find((track) => track.video !== undefined)?.video;
    this.history.add(at, {
      ...{ in: rate(now.in, before?.in), out: rate(now.out, before?.out) },
      ...{ frames: video?.framerateLatest ?? null, gop: video?.keyFrameIntervalLatest ?? null, viewers },
    });
  }
}
