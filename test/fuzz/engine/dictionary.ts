/** Puts constants of the code under test into inputs: a parser's branches depend on the constants that it compares with. */
import type { Random } from '../support/random.ts';
import type { Coverage } from './coverage.ts';

const WIDEST = 4;

/** The bytes of a constant: texts as they are, numbers in every width that holds them and in both byte orders. */
function bytesOf(constant: number | string): Uint8Array[] {
  if (typeof constant === 'string') return [Buffer.from(constant)];
  const value = constant < 0 ? constant + 2 ** 32 : constant;
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** 32) return [];
  const forms: Uint8Array[] = [];
  for (let width = 1; width <= WIDEST; width += 1) {
    if (value >= 2 ** (8 * width)) continue;
    const bytes = Buffer.alloc(width);
    bytes.writeUIntBE(value, 0, width);
    forms.push(bytes);
    if (width > 1) forms.push(Buffer.from(bytes).reverse());
    // Bounds are often off by one.
    if (width === 1) forms.push(Buffer.of((value + 1) & 0xff), Buffer.of((value - 1) & 0xff));
  }
  return forms;
}

/** The constants of all files with a block that ran since the counters were reset. */
export function dictionaryOf(cover: Coverage): Uint8Array[] {
  const words = new Map<string, Uint8Array>();
  for (const { firstCounter, counters, constants } of cover.files) {
    const ran = cover.counts.subarray(firstCounter, firstCounter + counters).some((count) => count > 0);
    if (!ran) continue;
    for (const word of constants.flatMap(bytesOf)) if (word.length > 0) words.set(Buffer.from(word).toString('hex'), word);
  }
  return [...words.values()];
}

/** A copy of `input` with a word of the dictionary, which replaces bytes or is inserted. */
export function withWord(input: Uint8Array, dictionary: readonly Uint8Array[], random: Random): Uint8Array {
  if (dictionary.length === 0) return input.slice();
  const word = random.pick(dictionary);
  const at = random.below(input.length + 1);
  if (random.once(3)) return Buffer.concat([input.subarray(0, at), word, input.subarray(at)]);
  const changed = new Uint8Array(Math.max(input.length, at + word.length));
  changed.set(input);
  changed.set(word, at);
  return changed;
}
