/**
 * Cues inside and between servers: nine bytes.
 *
 *  type 1 | duration 4 | elapsed 4        (milliseconds, big-endian)
 */
import { ByteWriter } from '../../util/byte-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

/** A cue: a break begins, continues, or ends. */
export type CueType = 'out' | 'cont' | 'in';

/** Times in ms. */
export interface Cue {
  readonly type: CueType;
  /** Length of the whole break; 0 if unknown. */
  readonly duration: number;
  /** Time since the break began; with `cont` only. */
  readonly elapsed: number;
}

/** In the order of their numbers on the wire, which begin at 0. */
export const CUE_TYPES: readonly CueType[] = ['out', 'cont', 'in'];

const LENGTH = 9;

/** The bytes of a cue; its durations must fit into 32 bits. */
export function buildCue({ type, duration, elapsed }: Cue): Uint8Array {
  return new ByteWriter(LENGTH).u8(CUE_TYPES.indexOf(type)).u32(duration).u32(elapsed).finish();
}

/** Throws `ProtocolError` (`CUE`) unless `data` is nine bytes with a known type. */
export function parseCue(data: Uint8Array): Cue {
  const type = CUE_TYPES[data[0] ?? CUE_TYPES.length];
  if (data.length !== LENGTH || type === undefined) throw new ProtocolError('CUE', `${data.length} bytes that are no cue`, 0);
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  return { type, duration: view.getUint32(1), elapsed: view.getUint32(5) };
}
