import { describe, expect, it } from 'vitest';
import { VPX } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { isVp8Keyframe, parseVp8Keyframe } from '../vp8/frame-header.ts';
import { isVp9Keyframe, parseVp9Keyframe } from './frame-header.ts';
import { buildVpcc, parseVpcc, vpCodecString } from './vpcc.ts';

describe('VP9 frames', () => {
  it('detects keyframes and their size', () => {
    expect(isVp9Keyframe(VPX.vp9Key)).toBe(true);
    expect(isVp9Keyframe(VPX.vp9Delta)).toBe(false);
    expect(parseVp9Keyframe(VPX.vp9Key)).toMatchObject({ profile: 0, bitDepth: 8, width: 642, height: 362 });
    expect(parseVp9Keyframe(VPX.vp9Delta)).toBeNull();
  });

  it.each([
    ['profile 1, 4:4:4', 0b10, 0, (bits: BitWriter) => bits.bits(2, 3).bits(0, 4), { bitDepth: 8, chromaSubsampling: 3 }],
    ['profile 1, RGB', 0b10, 0, (bits: BitWriter) => bits.bits(7, 3).bits(0, 1), { chromaSubsampling: 3, fullRange: true }],
    ['profile 2, 12 bit', 0b01, 0, (bits: BitWriter) => bits.bits(1, 1).bits(2, 3).bits(0, 1), { bitDepth: 12, chromaSubsampling: 1 }],
    [
      'profile 3, 4:2:2',
      0b11,
      1,
      (bits: BitWriter) => bits.bits(0, 1).bits(2, 3).bits(0b1100, 4),
      { bitDepth: 10, chromaSubsampling: 2, fullRange: true },
    ],
  ])('reads %s', (_name, profile, reserved, color, expected) => {
    const bits = new BitWriter().bits(2, 2).bits(profile, 2).bits(0, reserved).bits(0, 4).bits(0x498342, 24);
    color(bits).bits(639, 16).bits(359, 16);
    expect(parseVp9Keyframe(bits.finish())).toMatchObject({ ...expected, width: 640, height: 360 });
  });

  it('survives hostile bytes', () => {
    expect(() => parseVp9Keyframe(Uint8Array.of(0x82, 1, 2, 3))).toThrow(expect.objectContaining({ code: 'VP9_HEADER' }));
    survivesHostileBytes(parseVp9Keyframe, [VPX.vp9Key, VPX.vp9Delta]);
  });
});

describe('vpcC', () => {
  it('is read with and without the header of its box', () => {
    const expected = { profile: 3, level: 10, bitDepth: 10, chromaSubsampling: 3, fullRange: false };
    expect(parseVpcc(VPX.vp9Config444)).toEqual(expected);
    expect(parseVpcc(VPX.vp9Config444.subarray(4))).toEqual(expected);
  });

  it('is built from a keyframe', () => {
    const record = buildVpcc(parseVp9Keyframe(VPX.vp9Key)!);
    expect(parseVpcc(record)).toMatchObject({ profile: 0, bitDepth: 8, level: 21 });
    expect(vpCodecString(parseVpcc(record))).toBe('vp09.00.21.08');
    const huge = { profile: 0, bitDepth: 8, chromaSubsampling: 1, fullRange: false, width: 16_384, height: 16_384 };
    expect(parseVpcc(buildVpcc(huge)).level).toBe(62);
  });

  it('survives hostile bytes', () => {
    expect(() => parseVpcc(new Uint8Array(8))).toThrow(expect.objectContaining({ code: 'VPCC' }));
    survivesHostileBytes(parseVpcc, [VPX.vp9Config444]);
  });
});

describe('VP8 frames', () => {
  it('detects keyframes and their size', () => {
    expect(isVp8Keyframe(VPX.vp8Key)).toBe(true);
    expect(isVp8Keyframe(VPX.vp8Delta)).toBe(false);
    expect(isVp8Keyframe(new Uint8Array(0))).toBe(false);
    expect(parseVp8Keyframe(VPX.vp8Key)).toEqual({ width: 642, height: 362 });
    expect(parseVp8Keyframe(VPX.vp8Delta)).toBeNull();
  });

  it('survives hostile bytes', () => {
    expect(() => parseVp8Keyframe(new Uint8Array(10))).toThrow(expect.objectContaining({ code: 'VP8_HEADER', offset: 3 }));
    survivesHostileBytes(parseVp8Keyframe, [VPX.vp8Key]);
  });
});
