/** Duration of a transport stream, computed from its timestamps without tables and payloads (ISO/IEC 13818-1 §2.4.3). */
import { PacketSync } from './packet-sync.ts';
import { PTS_WRAP, readTimestamp, wrap33 } from './timestamp.ts';
import { TS_PACKET_LENGTH } from './ts-buffer.ts';

const FLAG_UNIT_START = 0x40;
const HAS_ADAPTATION = 0x20;
const HAS_PAYLOAD = 0x10;
const HEADER = 4;
/** Start code, stream id, length, flags, header length, PTS. */
const PES_WITH_PTS = 14;
const HAS_PTS = 0x80;
/** Maximum time by which a frame is presented before an earlier frame in the file, 90 kHz. */
const REORDERED = 60 * 90_000;
const TICKS_PER_MS = 90;

/** Takes pieces of a file in order, with or without gaps between them. */
export class PtsSpan {
  /** Presentation times by PID, relative to the first one and past its wrap, 90 kHz. */
  readonly #times = new Map<number, number[]>();
  #first: number | null = null;

  /** Takes a piece; incomplete packets at its ends are ignored. */
  push(piece: Uint8Array): void {
    new PacketSync((data, at) => this.#read(data, at)).push(piece);
  }

  /** From the earliest presentation time to the end of the latest frame, ms; null without a frame. */
  get milliseconds(): number | null {
    let earliest = Number.POSITIVE_INFINITY;
    let end = Number.NEGATIVE_INFINITY;
    for (const times of this.#times.values()) {
      const sorted = times.toSorted((a, b) => a - b);
      earliest = Math.min(earliest, sorted[0] ?? earliest);
      end = Math.max(end, (sorted.at(-1) ?? end) + frameLength(sorted));
    }
    return end < earliest ? null : (end - earliest) / TICKS_PER_MS;
  }

  #read(data: Uint8Array, at: number): void {
    const flags = data[at + 3] ?? 0;
    if (((data[at + 1] ?? 0) & FLAG_UNIT_START) === 0 || (flags & HAS_PAYLOAD) === 0) return;
    const payload = at + HEADER + ((flags & HAS_ADAPTATION) === 0 ? 0 : 1 + (data[at + HEADER] ?? 0));
    if (payload + PES_WITH_PTS > at + TS_PACKET_LENGTH) return;
    const isPes = data[payload] === 0 && data[payload + 1] === 0 && data[payload + 2] === 1;
    if (!isPes || ((data[payload + 7] ?? 0) & HAS_PTS) === 0) return;
    const pts = readTimestamp(data, payload + PES_WITH_PTS - 5);
    this.#first ??= pts;
    // Times are after the first one, or a little before it: frames are out of order, and a file is shorter than the wrap of 26 hours.
    const ahead = wrap33(pts - this.#first);
    const time = ahead < PTS_WRAP - REORDERED ? ahead : ahead - PTS_WRAP;
    const pid = (((data[at + 1] ?? 0) & 0x1f) << 8) | (data[at + 2] ?? 0);
    const known = this.#times.get(pid);
    if (known === undefined) this.#times.set(pid, [time]);
    else known.push(time);
  }
}

/** The shortest distance between frames, as the duration of the last frame, which is not stored. */
function frameLength(sorted: readonly number[]): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (let index = 1; index < sorted.length; index += 1) {
    const gap = (sorted[index] ?? 0) - (sorted[index - 1] ?? 0);
    if (gap > 0) shortest = Math.min(shortest, gap);
  }
  return Number.isFinite(shortest) ? shortest : 0;
}
