import { ProtocolError } from '../util/protocol-error.ts';
import { type BreakMarker, readMarker, returnOf } from './break-marker.ts';
import type { SourceEvent } from './ingest.ts';

/** Breaks that are on at once; more of them do not begin. */
const MAX_OPEN = 16;

/**
 * The breaks that the present source has begun. A source may come and leave in the middle of a break: no break outlives its source, and no
 * end passes whose beginning the source has not sent. Needs no closing.
 */
export class SourceBreaks {
  readonly #open = new Map<string, BreakMarker>();

  /**
   * Whether a marker of the source applies to the stream; false for an unreadable marker, the end of a break that began before, and a break
   * beyond `MAX_OPEN`.
   */
  admits({ format, data }: Pick<SourceEvent, 'format' | 'data'>): boolean {
    let marker: BreakMarker | null;
    try {
      marker = readMarker(format, data);
    } catch (error) {
      if (error instanceof ProtocolError) return false;
      throw error;
    }
    if (marker === null) return false;
    const key = `${marker.format} ${marker.id}`;
    if (marker.type === 'other') return true;
    if (marker.type === 'in') return this.#open.delete(key);
    if (this.#open.size >= MAX_OPEN && !this.#open.has(key)) return false;
    this.#open.set(key, marker);
    return true;
  }

  /** The source leaves at `at`, seconds, or now if null. Returns the ends of its open breaks. */
  end(at: number | null): SourceEvent[] {
    const open = [...this.#open.values()];
    this.#open.clear();
    return open.map((marker) => ({ format: marker.format, target: 'all', data: returnOf(marker), at, settled: true }));
  }
}
