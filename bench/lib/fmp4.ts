/** The few fields of fMP4 boxes that give the frames of a part. */

/** Ticks per second of the track, from the init segment's `mdhd`. */
export function timescaleOf(init: Buffer): number {
  const at = init.indexOf('mdhd');
  if (at < 0) throw new Error('init segment without mdhd');
  const version = init.readUInt8(at + 4);
  return init.readUInt32BE(at + (version === 1 ? 24 : 16));
}

/** Decode time of the first frame of a part (ticks) and the number of its frames. */
export function framesOfPart(part: Buffer): { start: number; count: number } {
  const at = part.indexOf('tfdt');
  if (at < 0) throw new Error('part without tfdt');
  const start = part.readUInt8(at + 4) === 1 ? Number(part.readBigUInt64BE(at + 8)) : part.readUInt32BE(at + 8);
  let count = 0;
  for (let moof = part.indexOf('moof'); moof >= 0; moof = part.indexOf('moof', moof + part.readUInt32BE(moof - 4))) {
    count += part.readUInt32BE(part.indexOf('trun', moof) + 8);
  }
  return { start, count };
}
