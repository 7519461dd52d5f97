/** Selects renditions by the capacity of the viewer's network: the rules of the reference server. */

const EVALUATION_GAP_MS = 1000;
/** Goes down when the estimate times this factor does not exceed the bit rate of the rendition. */
const DOWN_FACTOR = 1.1;
/** Goes up when the estimate times this factor exceeds the bit rate of the rendition. */
const UP_FACTOR = 0.75;
/** Minimum time between a step up and a step down, ms; also the first wait before a failed rendition is tried again. */
const SETTLE_MS = 10_000;

/** A rendition and its required rate. */
export interface RenditionRate {
  readonly name: string;
  /** Bits per second of video and audio together. */
  readonly bitrate: number;
}

interface Trial {
  readonly count: number;
  readonly at: number;
}

/** One for each viewer. Only advises: `selected` reports the actual choice. */
export class AutoRendition {
  readonly #trials = new Map<string, Trial>();
  #evaluatedAt = Number.NEGATIVE_INFINITY;
  #lastEstimate = 0;
  #wentUpAt = Number.NEGATIVE_INFINITY;

  /** The viewer gets the rendition now, whoever selected it. `now`: monotonic ms. */
  selected(name: string, now: number): void {
    this.#trials.set(name, { count: (this.#trials.get(name)?.count ?? 0) + 1, at: now });
  }

  /** The rendition to change to; null to stay. At most one evaluation a second. */
  evaluate(now: number, estimate: number, current: RenditionRate, renditions: readonly RenditionRate[]): RenditionRate | null {
    if (now - this.#evaluatedAt < EVALUATION_GAP_MS) return null;
    const rising = estimate > this.#lastEstimate;
    this.#evaluatedAt = now;
    this.#lastEstimate = estimate;
    const byRate = [...renditions].sort((a, b) => a.bitrate - b.bitrate);
    if (estimate * DOWN_FACTOR <= current.bitrate) {
      if (rising || now - this.#wentUpAt < SETTLE_MS) return null;
      return byRate.findLast(({ bitrate }) => bitrate < current.bitrate) ?? null;
    }
    if (estimate * UP_FACTOR <= current.bitrate) return null;
    const higher = byRate.find(({ bitrate }) => bitrate > current.bitrate);
    if (higher === undefined) return null;
    const trial = this.#trials.get(higher.name);
    if (trial !== undefined && now - trial.at < SETTLE_MS * trial.count) return null;
    this.#wentUpAt = now;
    return higher;
  }
}
