/**
 * CRC-32 of a text that differs from a known text only in a piece with several occurrences. The checksum is linear over
 * GF(2): the difference is that of the piece, times x^8n for each place with n bytes after it. Polynomials are
 * reflected as in RFC 1952 section 8: the highest bit is x^0.
 */

const POLYNOMIAL = 0xedb88320;
const ONE = 0x80000000;
/** x^8: one more byte after a piece. */
const BYTE = 0x00800000;

/** Product of two polynomials modulo the polynomial of CRC-32. */
export function timesModulo(one: number, other: number): number {
  let product = 0;
  let shifted = other;
  for (let rest = one | 0; rest !== 0; rest <<= 1) {
    if (rest < 0) product ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return product;
}

/** Sum of x^8n over all gaps of `pieces`, where n bytes follow the tail of `tailLength` in that gap; all is ASCII. */
export function shiftSum(pieces: readonly string[], tailLength: number): number {
  const powers = new Map<number, number>();
  let sum = 0;
  let shift = ONE | 0;
  for (let gap = pieces.length - 1; gap > 0; gap -= 1) {
    const length = (pieces[gap]?.length ?? 0) + (gap === pieces.length - 1 ? 0 : tailLength);
    // Lines of a playlist have few different lengths.
    const power = powers.get(length) ?? bytePower(length);
    powers.set(length, power);
    shift = timesModulo(shift, power);
    sum ^= shift;
  }
  return sum;
}

/** x^8n. */
function bytePower(count: number): number {
  let power = ONE | 0;
  let square = BYTE;
  for (let rest = count; rest > 0; rest >>>= 1) {
    if ((rest & 1) === 1) power = timesModulo(power, square);
    square = timesModulo(square, square);
  }
  return power;
}
