/** What each stream did in the last half hour, so that whoever opens its page sees the past. */
import type { PublisherKind } from '../core/kinds.ts';
import { streamKey } from '../core/stream-address.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { SAMPLE_MS } from './figure-history.ts';

/** Samples of a stream: half an hour. */
const MAX_KEPT = 180;
/** Streams with a past, 4.5 kB each; of further ones nothing is kept. */
export const MAX_PASTS = 1000;
/** In the place of a figure that is not known. */
const UNKNOWN = 0xffff_ffff;
/** Figures of a sample: bytes a second in and out, viewers, hundredths of frames a second, frames between keyframes. */
const FIGURES = 5;
const FRAME_SCALE = 100;
const VIEWERS = ['webrtc', 'llhls', 'hlsv3', 'srt'] as const satisfies readonly PublisherKind[];

/** A stream of one moment. Rates are means since the sample before. */
export interface StreamSample {
  /** Wall clock, ms. */
  readonly at: number;
  /** Bytes per second. */
  readonly throughputIn: number;
  readonly throughputOut: number;
  readonly viewers: number;
  /** Of the first video track; absent without one. */
  readonly framerate?: number;
  /** Frames between its last two keyframes. */
  readonly keyFrameInterval?: number;
}

/** A stream, as far as it is looked at. */
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

/** Where the streams are. */
export interface SampledServer {
  readonly virtualHosts: readonly {
    readonly name: string;
    readonly applications: ReadonlyMap<string, { readonly name: string; readonly streams: Iterable<SampledStream> }>;
  }[];
}

interface Past {
  /** `FIGURES` for each sample, in a ring. */
  readonly figures: Uint32Array;
  /** Whose totals those are: a stream that begins anew counts from nothing. */
  meter: SampledStream['meter'] | null;
  in: number;
  out: number;
  /** The round in which the stream was last seen. */
  seen: number;
}

/**
 * A ring of samples for each stream, one each ten seconds from `start` on. A stream that ends keeps its past for the next one of its name, until
 * the last sample of it is too old. Its starter stops it.
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

  /** Of how many streams there is a past. */
  get size(): number {
    return this.#pasts.size;
  }

  /** The past of a stream, oldest first; samples of times without it are missing. */
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

  /** Takes a sample of every stream; happens by itself. */
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

/** Fits in its place; what is no number is not known. */
function whole(value: number): number {
  return value >= 0 ? Math.min(Math.round(value), UNKNOWN - 1) : UNKNOWN;
}
