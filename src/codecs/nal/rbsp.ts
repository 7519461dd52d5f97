/** Removes emulation prevention from NAL units and inserts it (ISO/IEC 14496-10 §7.4.1, 23008-2 §7.4.2). */

/**
 * The payload of `unit` from byte `start` on, without the `03` of every `00 00 03`. Returns a view if there is none to remove, else a copy.
 */
export function unescapeRbsp(unit: Uint8Array, start: number): Uint8Array {
  const first = nextEscape(unit, start + 2);
  if (first < 0) return unit.subarray(start);
  const out = new Uint8Array(unit.length - start - 1);
  let length = 0;
  let from = start;
  for (let at = first; at >= 0; at = nextEscape(unit, at + 3)) {
    out.set(unit.subarray(from, at), length);
    length += at - from;
    from = at + 1;
  }
  out.set(unit.subarray(from), length);
  return out.subarray(0, length + unit.length - from);
}

/** The inverse of `unescapeRbsp`: inserts `03` between two zeros and a byte up to 3. */
export function escapeRbsp(payload: Uint8Array): Uint8Array {
  const out = new Uint8Array(payload.length + Math.ceil(payload.length / 2));
  let length = 0;
  let zeros = 0;
  for (const byte of payload) {
    if (zeros === 2 && byte <= 3) {
      out[length] = 3;
      length += 1;
      zeros = 0;
    }
    out[length] = byte;
    length += 1;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return out.subarray(0, length);
}

/** Offset of the next emulation prevention byte at or after `from`, or -1. */
function nextEscape(unit: Uint8Array, from: number): number {
  for (let at = from; at < unit.length; at++) {
    if (unit[at] === 3 && unit[at - 1] === 0 && unit[at - 2] === 0) return at;
  }
  return -1;
}
