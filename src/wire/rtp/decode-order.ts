/** Decoding times computed from presentation times, because RTP carries no others. */

const MAX_DEPTH = 16;

/**
 * Frames come in decoding order. With at most `depth` frames between the two orders, the decoding time of a frame
 * is the presentation time that is `depth` places behind in the sorted row: never after its own, and never going back.
 */
export class DecodeOrder {
  readonly #depth: number;
  /** The last presentation times, sorted; at most `depth + 1`. */
  readonly #sorted: number[] = [];
  readonly #frameTicks: number;
  #last = Number.NEGATIVE_INFINITY;

  /** `frameTicks` is the usual distance of frames, used until the row is full. */
  constructor(depth: number, frameTicks: number) {
    this.#depth = Math.min(depth, MAX_DEPTH);
    this.#frameTicks = frameTicks;
  }

  /** The decoding time of the next frame; both times in the same unit, without wraps. */
  next(pts: number): number {
    if (this.#depth === 0) return pts;
    let at = this.#sorted.length;
    while (at > 0 && (this.#sorted[at - 1] ?? 0) > pts) at -= 1;
    this.#sorted.splice(at, 0, pts);
    let dts: number;
    if (this.#sorted.length > this.#depth) dts = this.#sorted.shift() ?? pts;
    else dts = (this.#sorted[0] ?? pts) - (this.#depth - this.#sorted.length + 1) * this.#frameTicks;
    // The clock of a source may be set back, which invalidates the earlier order.
    if (dts < this.#last) {
      this.#sorted.length = 0;
      this.#sorted.push(pts);
      dts = pts - this.#depth * this.#frameTicks;
    }
    this.#last = dts;
    return dts;
  }
}
