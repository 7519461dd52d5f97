/** The common form of cues and splices about a break. */
import { buildCue, type Cue, parseCue } from '../containers/markers/cue.ts';
import { buildSpliceInsert, parseSplice } from '../containers/markers/splice-info.ts';
import { EventFormat } from '../media/timed-event.ts';

/** Content of a marker. */
export interface BreakMarker {
  readonly format: typeof EventFormat.CUE | typeof EventFormat.SCTE35;
  /** `cont`: a cue inside a running break; `other`: a splice that belongs to no break. */
  readonly type: Cue['type'] | 'other';
  /** Distinguishes breaks of one format; all cues have the same. */
  readonly id: number;
  /** Length of the whole break, ms; 0 if unknown. */
  readonly duration: number;
  /** Time since the break began, ms; for `cont` only. */
  readonly elapsed: number;
  /** The break ends on its own. */
  readonly returns: boolean;
}

const TICKS_PER_MS = 90;

/** Parses a marker; null for a section without a splice. Throws `ProtocolError`. */
export function readMarker(format: EventFormat, data: Uint8Array): BreakMarker | null {
  if (format === EventFormat.CUE) {
    const { type, duration, elapsed } = parseCue(data);
    return { format, type, id: 0, duration, elapsed, returns: type === 'out' && duration > 0 };
  }
  if (format !== EventFormat.SCTE35) return null;
  const splice = parseSplice(data);
  if (splice === null) return null;
  const { type, id } = splice;
  const duration = splice.duration === null ? 0 : splice.duration / TICKS_PER_MS;
  return { format, type, id, duration, elapsed: 0, returns: type === 'out' && splice.autoReturn && duration > 0 };
}

/** The bytes of the marker that ends the break of `out`. */
export function returnOf({ format, id }: BreakMarker): Uint8Array {
  if (format === EventFormat.CUE) return buildCue({ type: 'in', duration: 0, elapsed: 0 });
  return buildSpliceInsert({ id, type: 'in', time: 0, duration: null, autoReturn: false });
}
