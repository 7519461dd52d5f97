/** Selects the frames of an encode: all, every n-th, or as many as a constant rate needs. */

const SECOND = 90_000;
/** A frame may come this early and still belong to the next period: RTMP rounds to milliseconds. */
const EARLY = 90;
/** A hole longer than this is not filled with repeated frames. */
const MAX_FILL = 2 * SECOND;

/** Frame rate settings of an encode. */
export interface FrameRule {
  /** Frames per second; 0 takes the frames as they come. */
  readonly framerate: number;
  /** Frames dropped after each one kept; negative for none. Wins over `framerate`. */
  readonly skipFrames: number;
  /** Fills holes by repeating frames, and moves each to its instant of the rate: for video, not for images. */
  readonly constant: boolean;
}

/** One for each encode; takes the frames of the source in presentation order. */
export class FrameSelector {
  readonly #rule: FrameRule;
  readonly #times: number[] = [];
  #skipped = Number.POSITIVE_INFINITY;
  #slot = Number.NaN;
  #previous = Number.NaN;

  constructor(rule: FrameRule) {
    this.#rule = rule;
  }

  /** True if the encode has a constant rate and may repeat frames. */
  get repeats(): boolean {
    return this.#rule.constant && this.#rule.skipFrames < 0 && this.#rule.framerate > 0;
  }

  /**
   * Presentation times (1/90000 s) to output for a frame at `pts`: the last one is its own, earlier ones repeat the previous frame. Empty
   * drops the frame. `wanted` keeps a frame that `skipFrames` would drop. The array is reused.
   */
  select(pts: number, wanted: boolean, discontinuity: boolean): readonly number[] {
    const times = this.#times;
    times.length = 0;
    const { framerate, skipFrames } = this.#rule;
    if (skipFrames >= 0) {
      if (wanted || this.#skipped >= skipFrames) {
        times.push(pts);
        this.#skipped = 0;
      } else {
        this.#skipped += 1;
      }
      return times;
    }
    if (framerate <= 0) {
      times.push(pts);
      return times;
    }
    const step = SECOND / framerate;
    if (!this.#rule.constant) {
      const period = Math.floor((pts + EARLY) / step);
      if (period !== this.#slot) times.push(pts);
      this.#slot = period;
      return times;
    }
    const distance = Math.min(pts - this.#previous, step);
    this.#previous = pts;
    const slot = Math.round(pts / step);
    if (slot <= this.#slot || slot * step - pts > distance / 2 + EARLY) return times; // With a faster source, the next frame is nearer.
    if (!Number.isNaN(this.#slot) && !discontinuity && (slot - this.#slot) * step <= MAX_FILL) {
      for (let missed = this.#slot + 1; missed < slot; missed += 1) times.push(Math.round(missed * step));
    }
    times.push(Math.round(slot * step));
    this.#slot = slot;
    return times;
  }
}
