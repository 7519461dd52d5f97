/** Big-endian 32-bit words inside datagrams. */

/** The unsigned word at `at`, which must lie inside `data`. */
export function readU32(data: Uint8Array, at: number): number {
  return (((data[at] ?? 0) << 24) | ((data[at + 1] ?? 0) << 16) | ((data[at + 2] ?? 0) << 8) | (data[at + 3] ?? 0)) >>> 0;
}

/** The unsigned half word at `at`, which must lie inside `data`. */
export function readU16(data: Uint8Array, at: number): number {
  return ((data[at] ?? 0) << 8) | (data[at + 1] ?? 0);
}

/** Writes the low 32 bits of `value`. */
export function writeU32(data: Uint8Array, at: number, value: number): void {
  data[at] = value >>> 24;
  data[at + 1] = value >>> 16;
  data[at + 2] = value >>> 8;
  data[at + 3] = value;
}

/** Writes the low 16 bits of `value`. */
export function writeU16(data: Uint8Array, at: number, value: number): void {
  data[at] = value >>> 8;
  data[at + 1] = value;
}
