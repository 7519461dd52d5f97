/** The 33-bit clocks of MPEG-2 systems, ISO/IEC 13818-1 §2.4.2.2 and §2.4.3.7. */

/** PTS, DTS and the base of a PCR begin again here, 90 kHz. */
export const PTS_WRAP = 2 ** 33;
const LOW_30 = 2 ** 30;

/** Reduces a 90 kHz time, which may be negative, to 33 bits. */
export function wrap33(ticks: number): number {
  return ((ticks % PTS_WRAP) + PTS_WRAP) % PTS_WRAP;
}

/** Writes a PTS or DTS of 5 bytes; `prefix` is its 4-bit code. */
export function putTimestamp(target: Uint8Array, at: number, prefix: number, ticks: number): void {
  const high = Math.floor(ticks / LOW_30);
  const low = ticks % LOW_30;
  target[at] = (prefix << 4) | (high << 1) | 1;
  target[at + 1] = low >>> 22;
  target[at + 2] = ((low >>> 14) & 0xfe) | 1;
  target[at + 3] = low >>> 7;
  target[at + 4] = ((low << 1) & 0xfe) | 1;
}

/** Writes a PCR of 6 bytes with extension 0. */
export function putPcr(target: Uint8Array, at: number, ticks: number): void {
  const base = Math.floor(ticks / 2);
  target[at] = base >>> 24;
  target[at + 1] = base >>> 16;
  target[at + 2] = base >>> 8;
  target[at + 3] = base;
  target[at + 4] = ((ticks % 2) << 7) | 0x7e;
  target[at + 5] = 0;
}

/** Reads a PTS or DTS of 5 bytes; ignores its prefix and marker bits. */
export function readTimestamp(data: Uint8Array, at: number): number {
  const high = ((data[at] ?? 0) >> 1) & 7;
  const middle = ((data[at + 1] ?? 0) << 7) | ((data[at + 2] ?? 0) >> 1);
  const low = ((data[at + 3] ?? 0) << 7) | ((data[at + 4] ?? 0) >> 1);
  return high * LOW_30 + middle * 2 ** 15 + low;
}

/** Reads the base of a PCR (90 kHz); ignores its extension. */
export function readPcr(data: Uint8Array, at: number): number {
  const high = ((data[at] ?? 0) * 2 ** 24 + ((data[at + 1] ?? 0) << 16) + ((data[at + 2] ?? 0) << 8) + (data[at + 3] ?? 0)) * 2;
  return high + ((data[at + 4] ?? 0) >> 7);
}

/**
 * Continues the 33-bit times of one program past their wrap after 26.5 hours. All streams of a program share one clock, so the result is
 * the time nearest to the last one of any stream.
 */
export class ClockUnwrapper {
  #last: number | null = null;

  /** The time nearest to the last one, which stays as it is: for times in the future. */
  near(ticks: number): number {
    if (this.#last === null) return ticks;
    const delta = wrap33(ticks - this.#last);
    return this.#last + (delta < PTS_WRAP / 2 ? delta : delta - PTS_WRAP);
  }

  /** A PCR, PTS or DTS as a time that does not wrap. The first one remains as it is. */
  unwrap(ticks: number): number {
    if (this.#last === null) {
      this.#last = ticks;
    } else {
      const delta = wrap33(ticks - this.#last);
      this.#last += delta < PTS_WRAP / 2 ? delta : delta - PTS_WRAP;
    }
    return this.#last;
  }
}
