/** Chooses PART-TARGET of a track from its first part (rfc8216bis §4.4.3.7). */

/** For frame rates such as 29.97: 15 frames take 500.5 ms, where the chunk duration is 500 ms. */
const CHUNK_TOLERANCE = 1.01;
/** Frame durations that differ by less than this share are called constant. */
const CONSTANT_RATE_SPREAD = 0.1;

/** All parts but the last of a segment must have 85 % of PART-TARGET (rfc8216bis §4.4.4.9); PART-TARGET is rounded up. */
const MIN_PART = 0.86;

/** A remainder beyond whole parts of up to this share of a part is jitter. */
const COUNT_TOLERANCE = 0.02;

/** hls.js matches a segment that begins within this many seconds of the wanted time, and skips a shorter rest of the previous segment. */
const LOOKUP_SECONDS = 0.25;
/** The last part of a segment must have this share of a chunk, where that is less than `LOOKUP_SECONDS`. */
const MIN_LAST_PART = 0.6;
/** Maximum length of a part, as a multiple of a chunk, where a longer part avoids a tiny last part. */
const STRETCH = 1.1;

/** Decides when a part is full; times in ticks of the track. */
export class PartTarget {
  readonly #chunk: number;
  readonly #segment: number;
  readonly #jitter: number;
  readonly #timescale: number;
  #ticks = 0;

  /** Durations in seconds, `jitter` in ticks. */
  constructor(options: { chunkDuration: number; segmentDuration: number; timescale: number; jitter: number }) {
    this.#timescale = options.timescale;
    this.#chunk = options.chunkDuration * options.timescale;
    this.#segment = options.segmentDuration * options.timescale;
    this.#jitter = options.jitter;
  }

  /** Seconds, in whole milliseconds; 0 before the first full part. */
  get seconds(): number {
    return Math.ceil((this.#ticks / this.#timescale) * 1000 - 1e-6) / 1000;
  }

  get known(): boolean {
    return this.#ticks > 0;
  }

  /** The longest a part may be. */
  get limit(): number {
    return this.known ? this.#ticks : this.#chunk * CHUNK_TOLERANCE + this.#jitter;
  }

  /**
   * Whether a part of `ticks` takes no further frame of `next` ticks. `remaining`: expected length of the segment from the beginning of the
   * part on (null when unknown). It is shared out evenly, because hls.js looks up fragments with a tolerance of 250 ms and skips a tiny
   * part at the end of a segment.
   */
  isFull(ticks: number, next: number, remaining: number | null): boolean {
    const longEnough = !this.known || ticks >= MIN_PART * this.limit;
    if (ticks + next > this.limit || !longEnough) return longEnough && !this.#wantsOneMore(ticks, next);
    if (!this.known || remaining === null || remaining <= 0) return false;
    const parts = Math.max(1, Math.ceil(remaining / this.limit - COUNT_TOLERANCE));
    return ticks + next / 2 > remaining / parts;
  }

  /** The first part takes a frame more than a chunk if segments would otherwise end with a part that hls.js may skip. */
  #wantsOneMore(ticks: number, frame: number): boolean {
    if (this.known || ticks <= 0 || frame <= 0 || ticks + frame > this.#chunk * STRETCH) return false;
    const least = Math.min(LOOKUP_SECONDS * this.#timescale, MIN_LAST_PART * this.#chunk);
    return this.#lastPart(ticks, frame) < least && this.#lastPart(ticks + frame, frame) >= least;
  }

  /** Ticks that `isFull` leaves for the last part of a segment when parts have at most `target` ticks. */
  #lastPart(target: number, frame: number): number {
    const least = Math.ceil((MIN_PART * target) / frame) * frame;
    let rest = this.#segment;
    for (let parts = 2; ; rest -= Math.min(target, Math.max(least, Math.round(rest / parts / frame) * frame))) {
      parts = Math.ceil(rest / target - COUNT_TOLERANCE);
      if (parts <= 1) return rest;
    }
  }

  /** Ticks; 0 before it is known. */
  get ticks(): number {
    return this.#ticks;
  }

  /** Takes the choice of another server. */
  take(ticks: number): void {
    this.#ticks = ticks;
  }

  /** Learns from the first full part: a whole number of frames when their rate is constant. */
  learn(partTicks: number, frameDurations: readonly number[]): void {
    if (this.known) return;
    const spread = Math.max(...frameDurations) - Math.min(...frameDurations);
    const average = partTicks / frameDurations.length;
    // Whole frames fill more than half of a chunk: a shorter part ended at a gap.
    const constant = partTicks > this.#chunk / 2 && spread <= 2 * this.#jitter + average * CONSTANT_RATE_SPREAD;
    this.#ticks = (constant ? partTicks : Math.max(partTicks, Math.ceil(this.#chunk))) + 2 * this.#jitter;
  }

  /** Keeps the announced target when the timescale of the track changes. */
  rescale(timescale: number, jitter: number): PartTarget {
    const [chunkDuration, segmentDuration] = [this.#chunk / this.#timescale, this.#segment / this.#timescale];
    const next = new PartTarget({ chunkDuration, segmentDuration, timescale, jitter });
    next.#ticks = Math.floor(this.seconds * timescale);
    return next;
  }
}
