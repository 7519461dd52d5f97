import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadAddon } from '../../native/addon.ts';
import { TailoredGzip } from './tailored-gzip.ts';
import { TextCoder } from './text-coder.ts';

const { addon: built } = loadAddon();

const PIECES = [
  '#EXTM3U\n#EXT-X-MAP:URI="init_0_video_key_llhls.m4s',
  ...Array.from({ length: 40 }, (_unused, n) => `"\n#EXT-X-PART:DURATION=0.500000,URI="part_0_7_${n}_video_key_llhls.m4s`),
  '"\n',
];

const ascii = (constraints: { minLength?: number; maxLength?: number }): fc.Arbitrary<string> =>
  fc.array(fc.integer({ min: 0x20, max: 0x7e }), constraints).map((codes) => String.fromCharCode(...codes));
/** Like a playlist: pieces resemble each other. */
const similar = fc
  .tuple(ascii({ maxLength: 60 }), fc.integer({ min: 1, max: 80 }))
  .map(([line, count]) => Array.from({ length: count }, (_unused, n) => `${line}${n % 7}`));

describe('TailoredGzip', () => {
  it('gives every viewer the text with its own tail', () => {
    const made = TailoredGzip.make(PIECES, 20);
    for (const tail of ['?session=0123456789a', '?session=ZYXWVUTSRQP', '"#EXT-X-PART:DURATI']) {
      const padded = tail.padEnd(20, '.');
      expect(gunzipSync(made?.body(padded) ?? '').toString()).toBe(PIECES.join(padded));
    }
  });

  it('grows by less than 6 bytes per piece', () => {
    const tail = '?session=01qwertyuiop_ASDFGHJKLZXC';
    const one = TailoredGzip.make(PIECES.slice(0, 2), tail.length)?.body(tail).length ?? 0;
    const many = TailoredGzip.make(PIECES, tail.length)?.body(tail).length ?? 0;
    expect(one).toBeGreaterThan(0);
    expect(many).toBeLessThan(one + PIECES.length * 6);
  });

  it('works for arbitrary texts and tails, or refuses them', () => {
    let made = 0;
    fc.assert(
      fc.property(
        fc.oneof(fc.array(ascii({ maxLength: 300 }), { minLength: 2, maxLength: 60 }), similar),
        ascii({ minLength: 1, maxLength: 128 }),
        (pieces, tail) => {
          const tailored = TailoredGzip.make(pieces, tail.length);
          if (tailored === null) return;
          made += 1;
          expect(gunzipSync(tailored.body(tail)).toString()).toBe(pieces.join(tail));
        },
      ),
    );
    expect(made).toBeGreaterThan(0);
  });

  it('works when the text before the first tail is longer than the window', () => {
    const pieces = ['#EXTINF:6.000,\nseg_0_1_video_key_llhls.m4s\n'.repeat(2000), ...PIECES];
    expect(gunzipSync(TailoredGzip.make(pieces, 5)?.body('?s=ab') ?? '').toString()).toBe(pieces.join('?s=ab'));
  });

  it('refuses texts without tail, with an empty or too long one, and texts beyond ASCII', () => {
    expect(TailoredGzip.make(['one piece'], 10)).toBeNull();
    expect(TailoredGzip.make([], 10)).toBeNull();
    expect(TailoredGzip.make(PIECES, 0)).toBeNull();
    expect(TailoredGzip.make(PIECES, 129)).toBeNull();
    expect(TailoredGzip.make(['Straße', 'a'], 10)).toBeNull();
  });
});

describe.each([
  { name: 'with the addon', addon: built },
  { name: 'without the addon', addon: null },
])('TextCoder $name', ({ addon }) => {
  it('compresses a tailored text with any tail, for the first viewer and for others', () => {
    const coder = new TextCoder(addon);
    // More lengths than are remembered, and longer ones than can be.
    for (let length = 1; length < 150; length += 7) {
      const tail = `?${'k'.repeat(length)}`;
      for (const pieces of [PIECES, ['Stra\u00dfe', 'b']])
        for (const _viewer of [1, 2, 3]) expect(gunzipSync(coder.gzipTailored(pieces, tail)).toString()).toBe(pieces.join(tail));
    }
  });

  it('compresses a text for all viewers with the second request, or when several wait for the first answer', () => {
    const coder = new TextCoder(addon);
    const tail = '?session=0123456789a';
    coder.gzipTailored(PIECES, tail);
    expect(coder.layout(PIECES, tail, 'gzip')).toBeNull();
    coder.gzipTailored(PIECES, tail);
    expect(coder.layout(PIECES, tail, 'gzip')).not.toBeNull();
    const awaited = [...PIECES];
    expect(gunzipSync(coder.gzipTailored(awaited, tail, true)).toString()).toBe(awaited.join(tail));
    expect(coder.layout(awaited, tail, 'gzip')).not.toBeNull();
  });

  it('compresses texts of any length and script, and keeps them apart', () => {
    const coder = new TextCoder(addon);
    const kept: [Buffer, string][] = [];
    for (const length of [0, 1, 10, 1000, 20_000, 65_000, 65_500, 65_536, 70_000, 200_000])
      for (const letter of ['a', '\u00e9', '\u{1f600}']) {
        const text = `${length}${letter.repeat(length)}`;
        kept.push([coder.gzip(text, 'personal'), text]);
      }
    // Nothing in it repeats: the compressed form is as long as the text.
    const mixed = randomBytes(30_000).toString('base64');
    kept.push([coder.gzip(mixed, 'personal'), mixed]);
    for (const [body, text] of kept) expect(gunzipSync(body).toString() === text).toBe(true);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
        expect(gunzipSync(coder.gzip(text, 'personal')).toString()).toBe(Buffer.from(text).toString());
      }),
      { numRuns: 1000 },
    );
  });

  it('compresses a text without a tail once for all', () => {
    const coder = new TextCoder(addon);
    const body = coder.gzipTailored(PIECES, '');
    expect(gunzipSync(body).toString()).toBe(PIECES.join(''));
    expect(coder.gzipTailored(PIECES, '')).toBe(body);
  });

  it('writes a tailored text with any tail', () => {
    const coder = new TextCoder(addon);
    const long = Array.from({ length: 3000 }, (_unused, n) => `"\nsegment ${n}`);
    const kept: [Buffer, string][] = [];
    // More lengths than are remembered, the text without a tail, and texts that are larger than a piece of memory.
    for (let length = 0; length < 150; length += 7) {
      for (const letter of 'kl') {
        const tail = letter.repeat(length);
        for (const pieces of [PIECES, ['Stra\u00dfe', 'b\u00f6', 'c'], ['one piece'], long])
          kept.push([coder.textTailored(pieces, tail), pieces.join(tail)]);
      }
    }
    // One viewer's text is not written over for the next.
    for (const [body, text] of kept) expect(body.toString()).toBe(text);
  });
});
