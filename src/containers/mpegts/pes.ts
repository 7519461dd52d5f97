/** Headers of packetized elementary stream packets, ISO/IEC 13818-1 §2.4.3.6. */
import { putTimestamp } from './timestamp.ts';

/** Bytes of start code, id, length, flags and two timestamps. */
export const MAX_PES_HEADER = 19;

const FIXED_LENGTH = 9;
const TIMESTAMP_LENGTH = 5;
const PTS_ONLY = 0x2;
const PTS_OF_BOTH = 0x3;
const DTS_OF_BOTH = 0x1;
/** Marker bits `10` and data_alignment_indicator: every packet begins with an access unit. */
const ALIGNED = 0x84;

/** Writes a header with length 0 to the start of `target` and returns its size. Times are 90 kHz, wrapped. */
export function putPesHeader(target: Uint8Array, streamId: number, pts: number, dts: number): number {
  const both = pts !== dts;
  const timestamps = both ? 2 * TIMESTAMP_LENGTH : TIMESTAMP_LENGTH;
  target[0] = 0;
  target[1] = 0;
  target[2] = 1;
  target[3] = streamId;
  target[4] = 0;
  target[5] = 0;
  target[6] = ALIGNED;
  target[7] = both ? 0xc0 : 0x80;
  target[8] = timestamps;
  putTimestamp(target, FIXED_LENGTH, both ? PTS_OF_BOTH : PTS_ONLY, pts);
  if (both) putTimestamp(target, FIXED_LENGTH + TIMESTAMP_LENGTH, DTS_OF_BOTH, dts);
  return FIXED_LENGTH + timestamps;
}
