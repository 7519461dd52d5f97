import { describe, expect, it } from 'vitest';
import { AV1 } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { av1CodecString, buildAv1c, findSequenceHeader, parseAv1c } from './av1c.ts';
import { ObuCursor, ObuType } from './obu.ts';
import { parseAv1SequenceHeader } from './sequence-header.ts';
import { isAv1Keyframe } from './temporal-unit.ts';

/** Splits at temporal delimiters. */
function temporalUnits(stream: Uint8Array): Uint8Array[] {
  const starts: number[] = [];
  const obu = new ObuCursor(stream);
  while (obu.next()) if (obu.type === ObuType.TEMPORAL_DELIMITER) starts.push(obu.start);
  return starts.map((start, index) => stream.subarray(start, starts[index + 1]));
}

describe('ObuCursor', () => {
  it('walks over sized units, extensions, and a last unit without a size', () => {
    const obu = new ObuCursor(Uint8Array.of(0x12, 0, 0x36, 0x20, 0x81, 0x00, 0xaa, 0x30, 0xbb, 0xcc));
    const seen: [number, number][] = [];
    while (obu.next()) seen.push([obu.type, obu.end - obu.payload]);
    expect(seen).toEqual([
      [ObuType.TEMPORAL_DELIMITER, 0],
      [ObuType.FRAME, 1],
      [ObuType.FRAME, 2],
    ]);
  });

  it.each([
    ['the forbidden bit', [0x80]],
    ['a missing size', [0x12]],
    ['a size that leaves the data', [0x12, 5, 0]],
    ['an endless size', [0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255]],
    ['a missing extension', [0x14]],
  ])('refuses %s', (_name, data) => {
    expect(() => new ObuCursor(Uint8Array.from(data)).next()).toThrow(
      expect.objectContaining({ code: 'AV1_OBU', offset: expect.any(Number) }),
    );
  });
});

describe('parseAv1SequenceHeader', () => {
  it.each([
    ['stream444', { profile: 1, bitDepth: 8, subsamplingX: 0, subsamplingY: 0, width: 64, height: 64 }],
    ['head10bit', { profile: 0, bitDepth: 10, subsamplingX: 1, subsamplingY: 1, width: 322, height: 182 }],
    ['config360', { profile: 1, bitDepth: 8, monochrome: false, width: 640, height: 360, level: 1, tier: 0 }],
  ] as const)('reads %s', (name, expected) => {
    const bytes = name === 'config360' ? AV1.config360.subarray(4) : AV1[name];
    expect(parseAv1SequenceHeader(findSequenceHeader(bytes)!)).toMatchObject(expected);
  });

  it('reads timing, decoder model and tiers', () => {
    const bits = new BitWriter().bits(0, 3).flag(false).flag(false); // profile, still, reduced
    bits.flag(true).bits(1, 32).bits(60, 32).flag(true).ue(1); // two ticks per picture
    bits.flag(true).bits(9, 5).bits(0, 32).bits(0, 10); // decoder model
    bits.flag(true).bits(1, 5); // display delays, two operating points
    bits.bits(0, 12).bits(9, 5).flag(true).flag(true).bits(0, 21).flag(true).bits(3, 4);
    bits.bits(0, 12).bits(1, 5).flag(false).flag(false);
    bits.bits(10, 4).bits(10, 4).bits(1279, 11).bits(719, 11).flag(true).bits(0, 7).bits(0, 3);
    bits.bits(0, 4).flag(true).bits(0, 2).flag(false).flag(true).flag(false).flag(true).bits(6, 3).bits(0, 3);
    bits.flag(false).flag(true).flag(false).flag(false); // 8 bit, monochrome
    const payload = bits.finish();
    const unit = Uint8Array.of(0x0a, payload.length, ...payload);
    expect(parseAv1SequenceHeader(unit)).toMatchObject({ level: 9, tier: 1, framerate: 30, width: 1280, height: 720, monochrome: true });
  });

  it('reads reduced still picture headers of profile 2', () => {
    const bits = new BitWriter().bits(2, 3).flag(true).flag(true).bits(4, 5).bits(3, 4).bits(3, 4).bits(15, 4).bits(7, 4).bits(0, 6);
    bits.flag(true).flag(true).flag(false).flag(true).bits(9, 8).bits(16, 8).bits(9, 8).flag(false).bits(1, 1).bits(1, 1).bits(2, 2);
    const payload = bits.finish();
    expect(parseAv1SequenceHeader(Uint8Array.of(0x0a, payload.length, ...payload))).toMatchObject({
      reducedStillPicture: true,
      bitDepth: 12,
      width: 16,
      height: 8,
      chromaSamplePosition: 2,
    });
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes(parseAv1SequenceHeader, [AV1.config360.subarray(4)]);
    survivesHostileBytes((data) => parseAv1SequenceHeader(Uint8Array.of(0x08, ...data)), []);
  });
});

describe('av1C', () => {
  it('is rebuilt byte by byte from its sequence header', () => {
    const { sequenceHeader } = parseAv1c(AV1.config360);
    expect(buildAv1c(sequenceHeader!)).toEqual(AV1.config360);
  });

  it('has a codec string', () => {
    expect(av1CodecString(parseAv1c(AV1.config360))).toBe('av01.1.01M.08');
    expect(av1CodecString({ profile: 2, level: 13, tier: 1, bitDepth: 12 })).toBe('av01.2.13H.12');
    expect(av1CodecString(parseAv1c(buildAv1c(findSequenceHeader(AV1.head10bit)!)))).toMatch(/^av01\.0\.\d\dM\.10$/);
  });

  it('survives hostile bytes and refuses other versions', () => {
    expect(() => parseAv1c(Uint8Array.of(0x01, 0, 0, 0))).toThrow(expect.objectContaining({ code: 'AV1C', offset: 0 }));
    expect(parseAv1c(AV1.config360.subarray(0, 4)).sequenceHeader).toBeNull();
    survivesHostileBytes(parseAv1c, [AV1.config360]);
  });
});

describe('isAv1Keyframe', () => {
  it('is true for the first temporal unit only', () => {
    expect(temporalUnits(AV1.stream444).map(isAv1Keyframe)).toEqual([true, false, false]);
  });

  it('survives hostile bytes', () => {
    expect(isAv1Keyframe(Uint8Array.of(0x32, 0))).toBe(false);
    survivesHostileBytes(isAv1Keyframe, [AV1.stream444]);
  });
});
