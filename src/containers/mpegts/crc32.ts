/** CRC-32 of MPEG-2 sections: polynomial 04C11DB7, not reflected, no final inversion (ISO/IEC 13818-1 Annex A). */

const POLYNOMIAL = 0x04_c1_1d_b7;

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index << 24;
  for (let bit = 0; bit < 8; bit++) value = (value & 0x80_00_00_00) !== 0 ? (value << 1) ^ POLYNOMIAL : value << 1;
  return value;
});

/** The CRC of `data`; over a section including its CRC it is 0. */
export function crc32Mpeg(data: Uint8Array): number {
  let crc = 0xff_ff_ff_ff;
  for (const byte of data) crc = (crc << 8) ^ (TABLE[(crc >>> 24) ^ byte] ?? 0);
  return crc >>> 0;
}
