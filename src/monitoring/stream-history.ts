/** Figures of each stream in the last half hour, so that a newly opened page shows the past. */
import type { PublisherKind } from '../core/kinds.ts';
import { streamKey } from '../core/stream-address.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { SAMPLE_MS } from './figure-history.ts';

/** Samples of a stream in half an hour. */
const MAX_KEPT = 180;
/** Limit of streams with a past, 4.5 kB each; further streams have none. */
export const MAX_PASTS = 1000;
/** Stored instead of an unknown figure. */
const UNKNOWN = 0xffff_ffff;
/** Figures of a sample: bytes per second in and out, viewers, hundredths of frames per second, frames between keyframes. */
const FIGURES = 5;
const FRAME_SCALE = 100;
const VIEWERS = ['webrtc', 'llhls', 'hlsv3', 'srt'] as const satisfies readonly PublisherKind[];

/** Figures of a stream at one moment. Rates are means since the previous sample. */
export interface StreamSample {
  /** Wall clock, ms. */
  readonly at: number;
  /** Bytes per second. */
  readonly throughputIn: number;
  readonly throughputOut: number;
  readonly viewers: number;
  /** Frame rate of the first video track; absent without video. */
  readonly framerate?: number;
  /** Frames between its last two keyframes. */
  readonly keyFrameInterval?: number;
}

/** The properties of a stream that samples need. */
export interface SampledStream {
  readonly name: string;
  readonly meter: {
    readonly in: { readonly total: number };
    readonly out: { readonly total: number };
    readonly sessions: Readonly<Record<PublisherKind, number>>;
  };
  readonly tracks: readonly Track[];
  figures(trackId: number): { readonly framerateLatest: number; readonly keyFrameIntervalLatest: number };
}

/** The properties of a server that samples need. */
export interface SampledServer {
  readonly virtualHosts: readonly {
    readonly name: string;
    readonly applications: ReadonlyMap<string, { readonly name: string; readonly streams: Iterable<SampledStream> }>;
  }[];
}

interface Past {
  /** A ring of samples with `FIGURES` numbers each. */
  readonly figures: Uint32Array;
  /** The meter of the totals `in` and `out`: a stream that begins anew has another, which counts from 0. */
  meter: SampledStream['meter'] | null;
  in: number;
  out: number;
  /** The round in which the stream was last seen. */
  seen: number;
}

/**
 * A ring of samples for each stream, one every ten seconds from `start` on. The past of a stream that ends passes to the next stream of its
 * name, unless its last sample is too old. Its starter stops it.
 */
export class StreamHistory {
  readonly #clock: Clock;
  readonly #server: SampledServer;
  readonly #pasts = new Map<string, Past>();
  /** Wall clock of each place of the rings, ms. */
  readonly #times = new Float64Array(MAX_KEPT);
  #round = 0;
  #takenAt: number;
  #timer: NodeJS.Timeout | null = null;

  constructor(clock: Clock, server: SampledServer) {
    this.#clock = clock;
    this.#server = server;
    this.#takenAt = clock.monotonic();
  }

  /** Number of streams with a past. */
  get size(): number {
    return this.#pasts.size;
  }

  /** The past of a stream, oldest first; times without the stream have no samples. */
  samples(vhost: string, app: string, stream: string): StreamSample[] {
    const past = this.#pasts.get(streamKey({ vhost, app, stream }));
    if (past === undefined) return [];
    const first = Math.max(0, this.#round - MAX_KEPT);
    const found: StreamSample[] = [];
    for (let round = first; round < this.#round; round += 1) {
      const place = round % MAX_KEPT;
      const at = place * FIGURES;
      const [throughputIn = UNKNOWN, throughputOut = 0, viewers = 0, frames = UNKNOWN, gop = UNKNOWN] = past.figures.subarray(
        at,
        at + FIGURES,
      );
      if (throughputIn === UNKNOWN) continue;
      found.push({
        ...{ at: this.#times[place] ?? 0, throughputIn, throughputOut, viewers },
        ...(frames !== UNKNOWN && { framerate: frames / FRAME_SCALE }),
        ...(gop !== UNKNOWN && { keyFrameInterval: gop }),
      });
    }
    return found;
  }

  /** Idempotent. */
  start(): void {
    this.#timer ??= setInterval(() => this.take(), SAMPLE_MS).unref();
  }

  /** Takes a sample of every stream; a timer calls it. */
  take(): void {
    const now = this.#clock.monotonic();
    const ms = now - this.#takenAt;
    if (ms <= 0) return;
    this.#takenAt = now;
    const round = this.#round;
    this.#round += 1;
    this.#times[round % MAX_KEPT] = this.#clock.now();
    for (const { name: vhost, applications } of this.#server.virtualHosts) {
      for (const { name: app, streams } of applications.values()) {
        for (const stream of streams) this.#note(streamKey({ vhost, app, stream: stream.name }), stream, round, ms);
      }
    }
    for (const [key, past] of this.#pasts) {
      if (past.seen === round) continue;
      if (round - past.seen >= MAX_KEPT) this.#pasts.delete(key);
      else past.figures.fill(UNKNOWN, (round % MAX_KEPT) * FIGURES, (round % MAX_KEPT) * FIGURES + FIGURES);
    }
  }

  /** Idempotent. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #note(key: string, stream: SampledStream, round: number, ms: number): void {
    const past = this.#pasts.get(key) ?? this.#begin(key);
    if (past === null) return;
    const { meter } = stream;
    const isNew = past.meter !== meter;
    const [received, sent] = isNew ? [0, 0] : [past.in, past.out];
    const video = stream.tracks.find(({ type }) => type === 'video');
    const at = (round % MAX_KEPT) * FIGURES;
    const { figures } = past;
    figures[at] = whole(((meter.in.total - received) * 1000) / ms);
    figures[at + 1] = whole(((meter.out.total - sent) * 1000) / ms);
    figures[at + 2] = VIEWERS.reduce((sum, kind) => sum + meter.sessions[kind], 0);
    const of = video === undefined ? null : stream.figures(video.id);
    figures[at + 3] = of === null ? UNKNOWN : whole(of.framerateLatest * FRAME_SCALE);
    figures[at + 4] = of === null ? UNKNOWN : whole(of.keyFrameIntervalLatest);
    past.meter = meter;
    past.in = meter.in.total;
    past.out = meter.out.total;
    past.seen = round;
  }

  #begin(key: string): Past | null {
    if (this.#pasts.size >= MAX_PASTS) return null;
    const past: Past = { figures: new Uint32Array(MAX_KEPT * FIGURES).fill(UNKNOWN), meter: null, in: 0, out: 0, seen: this.#round };
    this.#pasts.set(key, past);
    return past;
  }
}

/** The figure as a whole number in the range of a place; `UNKNOWN` for NaN and negative values. */
function whole(value: number): number {
  return value >= 0 ? Math.min(Math.round(value), UNKNOWN - 1) : UNKNOWN;
}
