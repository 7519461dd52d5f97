/**
 * A receiver's report of packets with transport-wide sequence numbers: which packets arrived, and when
 * (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
 *
 *      0                   1                   2                   3
 *     |      sequence number of first |     number of packets         |
 *     |             reference time, 64 ms             | feedback count|
 *     | chunks of 2 bytes: a run of one status, or a list of some …   |
 *     | a delta of 250 µs to the packet before for each that came: 1 byte, or 2 with sign … |
 */

/** Maximum of packets in one report; usual reports have some dozens. */
const MAX_PACKETS = 1024;
/** Offset from the head of the RTCP packet. */
const BODY_AT = 12;
const CHUNKS_AT = 20;
const REFERENCE_US = 64_000;
const TICK_US = 250;
const Status = { MISSING: 0, SMALL_DELTA: 1, LARGE_DELTA: 2 } as const;

/** One feedback packet, with its wraps and deltas resolved. */
export interface ArrivalReport {
  /** Transport-wide number of the first reported packet. */
  readonly first: number;
  /** For each packet from the first on: µs of the receiver's clock, NaN for a missing packet. Times wrap (`ARRIVAL_WRAP_US`). */
  readonly arrivals: Float64Array;
}

/** The 24 bits of the reference time. */
export const ARRIVAL_WRAP_US = 2 ** 24 * REFERENCE_US;

/** Reads the RTCP packet from `start` to `end`; null if it is truncated or reports too many packets. */
export function readArrivalReport(view: DataView, start: number, end: number): ArrivalReport | null {
  if (start + CHUNKS_AT > end) return null;
  const first = view.getUint16(start + BODY_AT);
  const count = view.getUint16(start + BODY_AT + 2);
  if (count === 0 || count > MAX_PACKETS) return null;
  const statuses = new Uint8Array(count);
  const deltasAt = readChunks(view, start + CHUNKS_AT, end, statuses);
  if (deltasAt === null) return null;
  const arrivals = new Float64Array(count);
  let time = (view.getUint32(start + BODY_AT + 4) >>> 8) * REFERENCE_US;
  let at = deltasAt;
  for (let n = 0; n < count; n += 1) {
    const status = statuses[n];
    const size = status === Status.SMALL_DELTA || status === Status.LARGE_DELTA ? status : 0;
    if (at + size > end) return null;
    if (size === 1) time += view.getUint8(at) * TICK_US;
    else if (size === 2) time += view.getInt16(at) * TICK_US;
    arrivals[n] = size === 0 ? Number.NaN : time;
    at += size;
  }
  return { first, arrivals };
}

/** Fills `statuses`; returns where the chunks end, or null when they end too early. */
function readChunks(view: DataView, from: number, end: number, statuses: Uint8Array): number | null {
  let at = from;
  for (let n = 0; n < statuses.length; at += 2) {
    if (at + 2 > end) return null;
    const chunk = view.getUint16(at);
    if (chunk < 0x8000) {
      const run = Math.min(chunk & 0x1fff, statuses.length - n);
      // An empty run would make this loop endless.
      if (run === 0) return null;
      statuses.fill(chunk >> 13, n, n + run);
      n += run;
    } else {
      const bits = (chunk & 0x4000) === 0 ? 1 : 2;
      for (let shift = 14 - bits; shift >= 0 && n < statuses.length; shift -= bits, n += 1) {
        statuses[n] = (chunk >> shift) & (bits === 1 ? 1 : 3);
      }
    }
  }
  return at;
}
