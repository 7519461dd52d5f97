/** Walks over supplemental enhancement information (ISO/IEC 14496-10 §7.3.2.3, 23008-2 §7.3.5). */

/** The first SEI payload of `type` in an unescaped SEI RBSP, or null. Broken messages end the search. */
export function findSei(rbsp: Uint8Array, type: number): Uint8Array | null {
  let at = 0;
  // The last byte is the stop bit, so a message needs at least type, size and one byte behind them.
  while (at + 2 < rbsp.length) {
    const payloadType = readCount(rbsp, at);
    const payloadSize = readCount(rbsp, payloadType.next);
    const end = payloadSize.next + payloadSize.value;
    if (end > rbsp.length) return null;
    if (payloadType.value === type) return rbsp.subarray(payloadSize.next, end);
    at = end;
  }
  return null;
}

/** Numbers are sums of bytes: another byte follows every 255. */
function readCount(rbsp: Uint8Array, from: number): { value: number; next: number } {
  let value = 0;
  let at = from;
  while (rbsp[at] === 255) {
    value += 255;
    at += 1;
  }
  return { value: value + (rbsp[at] ?? 0), next: at + 1 };
}
