/** Writes captions of CTA-608 and CTA-708 as encoders put them into SEI (ATSC A/53 part 4). */
import { buildSeiUnit } from '../../src/codecs/nal/sei-writer.ts';
import type { VideoCodec } from '../../src/media/codec.ts';

/** cc_type and two bytes. */
export type Triplet = readonly [type: number, first: number, second: number];

/** Line 21, field 1. */
export const FIELD_1 = 0;
export const FIELD_2 = 1;
export const PACKET_DATA = 2;
export const PACKET_START = 3;

const [RESUME_LOADING, ERASE_MEMORY, ERASE_DISPLAYED, END_OF_CAPTION, ROW_15] = [0x20, 0x2e, 0x2c, 0x2f, 0x60];

/** An SEI unit with these triplets, all valid. */
export function captionUnit(codec: VideoCodec, triplets: readonly Triplet[]): Uint8Array {
  const data = triplets.flatMap(([type, first, second]) => [0xfc | type, first, second]);
  const payload = [0xb5, 0x00, 0x31, ...Buffer.from('GA94'), 0x03, 0x40 | triplets.length, 0xff, ...data, 0xff];
  return buildSeiUnit(codec, 4, Uint8Array.from(payload));
}

/** Triplets, one per frame, that show `text` and remove it `frames` frames later. */
export function popOn(text: string, frames: number): Triplet[] {
  const control = (code: number): Triplet => [FIELD_1, odd(0x14), odd(code)];
  const twice = (code: number): Triplet[] => [control(code), control(code)];
  const characters = [...(text.length % 2 === 0 ? text : `${text} `)].map((character) => odd(character.charCodeAt(0)));
  const pairs = Array.from({ length: characters.length / 2 }, (_, index): Triplet => {
    const [first = 0, second = 0] = characters.slice(index * 2);
    return [FIELD_1, first, second];
  });
  const padding = Array.from({ length: frames }, (): Triplet => [FIELD_1, 0x80, 0x80]);
  const codes = [RESUME_LOADING, ERASE_MEMORY, ROW_15].flatMap(twice);
  return [...codes, ...pairs, ...twice(END_OF_CAPTION), ...padding, ...twice(ERASE_DISPLAYED)];
}

/** With the parity bit of line 21. */
function odd(value: number): number {
  let ones = 0;
  for (let bits = value; bits > 0; bits >>= 1) ones += bits & 1;
  return ones % 2 === 0 ? value | 0x80 : value;
}
