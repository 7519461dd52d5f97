/**
 * Holds back a short last part of a segment. Listed at once it would reach players that still load the part before: hls.js then takes the
 * segment for loaded, and when it expects audio to begin later than it does (it aligns tracks at discontinuities) it never requests the
 * rest nor anything after it. No viewer waits longer: it is listed before a whole part would be.
 */
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';

/** Media, seconds, between the listing of the part before and that of the rest: longer than it takes to load a part. */
const MIN_PAUSE = 0.25;
/** The pause as a share of a part, where that is less than `MIN_PAUSE`. */
const MIN_SHARE = 0.5;

/** One for each track. Holds at most the media of `MIN_PAUSE`: a part, the end of its segment and the beginning of the next. */
export class ShortRest {
  readonly #list: (update: LlhlsUpdate) => void;
  #held: LlhlsUpdate[] = [];
  #heldUntil = Number.POSITIVE_INFINITY;

  /** `list` takes updates in their order. */
  constructor(list: (update: LlhlsUpdate) => void) {
    this.#list = list;
  }

  /** Decoding time, ms, of the packet before which held updates must be released; infinite while none are held. */
  get heldUntil(): number {
    return this.#heldUntil;
  }

  /** The last part of a segment, of `duration` seconds, ends at the decoding time `end`, ms: if it is short, updates are held from now on. */
  hold(duration: number, end: number, chunkDuration: number): void {
    this.release();
    const pause = Math.min(MIN_PAUSE, MIN_SHARE * chunkDuration);
    if (duration < pause) this.#heldUntil = end + (pause - duration) * 1000;
  }

  push(update: LlhlsUpdate): void {
    if (this.#heldUntil === Number.POSITIVE_INFINITY) this.#list(update);
    else this.#held.push(update);
  }

  release(): void {
    this.#heldUntil = Number.POSITIVE_INFINITY;
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    for (const update of held) this.#list(update);
  }
}
