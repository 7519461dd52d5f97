/** Facts about an AV1 temporal unit, read without decoding it. */
import { ObuCursor, ObuType } from './obu.ts';

const FRAME_TYPE_KEY = 0;

/** True if the first frame of the temporal unit is a new keyframe (frame_header_obu, AV1 specification §5.9.2). */
export function isAv1Keyframe(temporalUnit: Uint8Array): boolean {
  const obu = new ObuCursor(temporalUnit);
  while (obu.next()) {
    if (obu.type !== ObuType.FRAME && obu.type !== ObuType.FRAME_HEADER) continue;
    if (obu.payload >= obu.end) return false;
    const first = temporalUnit[obu.payload] ?? 0;
    const showExisting = (first & 0x80) !== 0;
    return !showExisting && ((first >> 5) & 0x3) === FRAME_TYPE_KEY;
  }
  return false;
}
