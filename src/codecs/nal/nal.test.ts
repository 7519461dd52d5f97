import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANNEXB } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { annexbToLengthPrefixed, joinNalUnits, toFourByteLengths, withValidLengths } from './convert.ts';
import { AnnexbCursor, LengthPrefixedCursor, type NalCursor, type NalLengthSize } from './nal-cursor.ts';
import { unescapeRbsp } from './rbsp.ts';
import { findSei } from './sei.ts';

const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
const units = (cursor: NalCursor): string[] => {
  const found: string[] = [];
  while (cursor.next()) found.push(Buffer.from(cursor.unit()).toString('hex'));
  return found;
};

describe('AnnexbCursor', () => {
  it.each([
    ['three-byte start codes', '000001 67aa 000001 68bb', ['67aa', '68bb']],
    ['four-byte start codes', '00000001 67aa 00000001 68bb', ['67aa', '68bb']],
    ['zeros before and behind', '0000000000 01 67aa 0000000000 01 68 0000', ['67aa', '68']],
    ['bytes before the first start code', 'ffee 000001 65', ['65']],
    ['emulation prevention', '000001 6500000301 000001 41', ['6500000301', '41']],
    ['empty units', '000001 000001 65 000001', ['65']],
    ['no start code', '6500', []],
    ['nothing', '', []],
  ])('finds units with %s', (_name, hex, expected) => {
    expect(units(new AnnexbCursor(bytes(hex)))).toEqual(expected);
  });
});

describe('LengthPrefixedCursor', () => {
  it.each<[NalLengthSize, string]>([
    [1, '02 67aa 00 01 68'],
    [2, '0002 67aa 0000 0001 68'],
    [4, '00000002 67aa 00000000 00000001 68'],
  ])('reads lengths of %i bytes and skips empty units', (size, hex) => {
    expect(units(new LengthPrefixedCursor(bytes(hex), size))).toEqual(['67aa', '68']);
  });

  it.each([
    ['length', '00000001 67 0000', 5],
    ['unit', '00000001 67 00000003 6800', 5],
  ])('refuses a truncated %s', (_name, hex, offset) => {
    expect(() => units(new LengthPrefixedCursor(bytes(hex)))).toThrow(expect.objectContaining({ code: 'NAL_LENGTH', offset }));
  });

  it('survives hostile bytes', () => {
    for (const size of [1, 2, 4] as const)
      survivesHostileBytes((data) => units(new LengthPrefixedCursor(data, size)), [bytes('00000002 67aa')]);
    survivesHostileBytes((data) => units(new AnnexbCursor(data)), [ANNEXB.openGop]);
  });
});

describe('conversion', () => {
  it('keeps the units of an Annex-B stream', () => {
    const converted = annexbToLengthPrefixed(ANNEXB.openGop);
    expect(units(new LengthPrefixedCursor(converted))).toEqual(units(new AnnexbCursor(ANNEXB.openGop)));
  });

  it('leaves out the units that the filter refuses', () => {
    const converted = annexbToLengthPrefixed(bytes('000001 0910 000001 65aa'), (first) => (first & 0x1f) !== 9);
    expect(Buffer.from(converted).toString('hex')).toBe('0000000265aa');
  });

  it('widens short lengths and passes four-byte ones through untouched', () => {
    expect(Buffer.from(toFourByteLengths(bytes('0002 67aa 0001 68'), 2)).toString('hex')).toBe('0000000267aa0000000168');
    const data = bytes('00000001 65');
    expect(toFourByteLengths(data, 4)).toBe(data);
  });

  it('accepts exactly the lengths that a cursor can follow', () => {
    const data = bytes('00000002 67aa 00000000 00000001 68');
    expect(withValidLengths(data)).toBe(data);
    expect(() => withValidLengths(bytes('00000009 aa'))).toThrow(/NAL unit of 9 bytes, 1 left/);
    expect(() => withValidLengths(bytes('ffffffff aa'))).toThrow(/NAL unit of 4294967295 bytes/);
    expect(() => withValidLengths(bytes('00000001 67 0000'))).toThrow(/4 bytes of NAL unit length expected/);
    const follows = (walk: () => void): boolean => {
      try {
        walk();
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40, max: 9 }), (any) => {
        expect(follows(() => withValidLengths(any))).toBe(follows(() => units(new LengthPrefixedCursor(any))));
      }),
    );
  });

  it('joins units to something the cursor reads back', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 })), (parts) => {
        expect(units(new LengthPrefixedCursor(joinNalUnits(parts)))).toEqual(parts.map((part) => Buffer.from(part).toString('hex')));
      }),
    );
  });
});

describe('unescapeRbsp', () => {
  it.each([
    ['67 0000 03 01', '000001'],
    ['67 0000 03 0000 03 02 0000 03', '000000000200 00'],
    ['67 0000 03 03', '000003'],
    ['67 03 00 03', '030003'],
    ['67 aabb', 'aabb'],
    ['67', ''],
  ])('removes emulation prevention from %s', (hex, expected) => {
    expect(Buffer.from(unescapeRbsp(bytes(hex), 1)).toString('hex')).toBe(expected.replaceAll(' ', ''));
  });
});

describe('findSei', () => {
  it.each([
    ['the first message', '06 02 aabb 80', 6, 'aabb'],
    ['a message behind another', '05 01 cc 06 01 dd 80', 6, 'dd'],
    ['long types and sizes', `ff01 ff02 ${'ee'.repeat(257)} 80`, 256, 'ee'.repeat(257)],
  ])('finds %s', (_name, hex, type, expected) => {
    expect(Buffer.from(findSei(bytes(hex), type) ?? []).toString('hex')).toBe(expected);
  });

  it('returns null for broken and other messages', () => {
    expect(findSei(bytes('06 ff'), 6)).toBeNull();
    expect(findSei(bytes('06 09 aa 80'), 6)).toBeNull();
    expect(findSei(bytes('05 01 aa 80'), 6)).toBeNull();
    survivesHostileBytes((data) => findSei(data, 6), [bytes('05 01 cc 06 01 dd 80')]);
  });
});
