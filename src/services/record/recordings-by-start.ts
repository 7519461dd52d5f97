import type { IndexedRecording } from './indexed-recording.ts';

/** Recordings of one application, ordered by their start and then by their key: a query needs neither a sort nor the recordings of others. */
export class RecordingsByStart {
  readonly #sorted: IndexedRecording[] = [];
  /** Longest duration that was ever here, ms. */
  #longestMs = 0;

  /** Oldest first. The array changes with the next `add` or `remove`. */
  get all(): readonly IndexedRecording[] {
    return this.#sorted;
  }

  /** `entry` has a key that is not there yet. */
  add(entry: IndexedRecording): void {
    this.#longestMs = Math.max(this.#longestMs, entry.durationMs);
    const last = this.#sorted.at(-1);
    // Nearly all come in order.
    if (last === undefined || isBefore(last, entry)) this.#sorted.push(entry);
    else this.#sorted.splice(this.#placeOf(entry), 0, entry);
  }

  /** `entry` is there. */
  remove(entry: IndexedRecording): void {
    this.#sorted.splice(this.#placeOf(entry), 1);
  }

  /** Those that have any media at or after `from` and before `to`, ms since the epoch; oldest first. */
  between(from: number, to: number): IndexedRecording[] {
    const found: IndexedRecording[] = [];
    const begin = this.#countBefore(({ startTime }) => startTime + this.#longestMs <= from);
    for (let n = begin; n < this.#sorted.length; n += 1) {
      const entry = this.#sorted[n];
      if (entry === undefined || entry.startTime >= to) break;
      if (entry.startTime + entry.durationMs > from) found.push(entry);
    }
    return found;
  }

  #placeOf(entry: IndexedRecording): number {
    return this.#countBefore((other) => isBefore(other, entry));
  }

  /** Number of recordings that `isEarlier` holds for: the first ones. */
  #countBefore(isEarlier: (entry: IndexedRecording) => boolean): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const entry = this.#sorted[middle];
      if (entry !== undefined && isEarlier(entry)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBefore(a: IndexedRecording, b: IndexedRecording): boolean {
  return a.startTime < b.startTime || (a.startTime === b.startTime && a.key < b.key);
}
