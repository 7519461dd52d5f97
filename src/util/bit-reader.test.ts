import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BitReader } from './bit-reader.ts';
import { BitWriter } from './bit-writer.ts';
import { ProtocolError } from './protocol-error.ts';

describe('BitReader', () => {
  it('reads back fields of any width that BitWriter wrote', () => {
    const field = fc
      .integer({ min: 1, max: 32 })
      .chain((width) => fc.tuple(fc.constant(width), fc.integer({ min: 0, max: 2 ** width - 1 })));
    fc.assert(
      fc.property(fc.array(field, { maxLength: 40 }), (fields) => {
        const writer = new BitWriter();
        for (const [width, value] of fields) writer.bits(value, width);
        const reader = new BitReader(writer.finish());
        for (const [width, value] of fields) expect(reader.bits(width)).toBe(value);
      }),
    );
  });

  it('marks its position with a reader that has the same end', () => {
    const reader = new BitReader(Uint8Array.of(0x12, 0x34, 0x56), 0, 2);
    reader.skip(4);
    const mark = reader.mark();
    reader.skip(4);
    expect([mark.bitsLeft, mark.bits(12), reader.bitsLeft]).toEqual([12, 0x234, 8]);
    expect(() => mark.bits(1)).toThrow(ProtocolError);
  });

  it('reads back Exp-Golomb codes', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 32 - 2 }), { maxLength: 20 }), (values) => {
        const writer = new BitWriter();
        for (const value of values) writer.ue(value);
        const reader = new BitReader(writer.finish());
        for (const value of values) expect(reader.ue()).toBe(value);
      }),
    );
  });

  it.each([
    [0b1_0000000, 0],
    [0b010_00000, 1],
    [0b011_00000, -1],
    [0b00100_000, 2],
    [0b00101_000, -2],
  ])('reads the signed code in %i as %i', (byte, expected) => {
    expect(new BitReader(Uint8Array.of(byte)).se()).toBe(expected);
  });

  it('reports the code and the offset when the data ends early', () => {
    const reader = new BitReader(Uint8Array.of(1, 2, 3));
    reader.skip(17);
    expect(() => reader.bits(8)).toThrow(expect.objectContaining({ code: 'BITSTREAM_TRUNCATED', offset: 2 }));
  });

  it('stays inside the range it was given', () => {
    const reader = new BitReader(Uint8Array.of(1, 2, 3, 4), 1, 3);
    expect(reader.bytes(2)).toEqual(Uint8Array.of(2, 3));
    expect(() => reader.flag()).toThrow(expect.objectContaining({ code: 'BITSTREAM_TRUNCATED', offset: 3 }));
  });

  it('refuses Exp-Golomb codes with too many leading zeros', () => {
    expect(() => new BitReader(new Uint8Array(100)).ue()).toThrow(expect.objectContaining({ code: 'EXP_GOLOMB_RANGE' }));
  });

  it('names the element with a value out of range', () => {
    expect(() => new BitReader(Uint8Array.of(0b00111_000)).ueUpTo(3, 'chroma_format_idc')).toThrow(
      'chroma_format_idc is 6, at most 3 is allowed',
    );
  });

  it('aligns to the next byte only when it must', () => {
    const reader = new BitReader(Uint8Array.of(0xff, 0x01));
    reader.align();
    expect(reader.byteOffset).toBe(0);
    reader.flag();
    reader.align();
    expect(reader.bits(8)).toBe(1);
  });
});
