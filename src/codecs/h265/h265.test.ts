import { describe, expect, it } from 'vitest';
import { ANNEXB, HVCC } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { BitReader } from '../../util/bit-reader.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { AnnexbCursor, LengthPrefixedCursor } from '../nal/nal-cursor.ts';
import { isH265Keyframe } from './access-unit.ts';
import { buildHvcc, parseHvcc } from './hvcc.ts';
import { hevcCodecString } from './profile-tier-level.ts';
import { parseH265PpsIds, parseH265Sps, parseH265VpsId } from './sps.ts';
import { skipScalingLists, skipShortTermRefPicSets } from './sps-lists.ts';
import { readVui } from './vui.ts';

const spsOf = (record: Uint8Array): Uint8Array => parseHvcc(record).sps[0]!;
const alone = (unit: Uint8Array): AnnexbCursor => new AnnexbCursor(Uint8Array.of(0, 0, 1, ...unit));

describe('parseH265Sps', () => {
  it.each([
    [
      'main1080',
      { width: 1920, height: 1080, framerate: 30, chromaFormatIdc: 1, bitDepthLuma: 8, maxReorderFrames: 2, hasReordering: true },
    ],
    [
      'range422',
      {
        width: 322,
        height: 182,
        framerate: 30_000 / 1001,
        chromaFormatIdc: 2,
        bitDepthLuma: 10,
        hasReordering: false,
        sampleAspectRatio: { width: 208, height: 207 },
      },
    ],
    ['range444', { width: 321, height: 181, chromaFormatIdc: 3, bitDepthChroma: 12, temporalLayers: 1, temporalIdNested: true }],
  ] as const)('reads %s', (name, expected) => {
    expect(parseH265Sps(spsOf(HVCC[name]))).toMatchObject(expected);
  });

  it('refuses other units', () => {
    expect(() => parseH265Sps(parseHvcc(HVCC.main1080).vps[0]!)).toThrow(expect.objectContaining({ code: 'H265_SPS' }));
  });

  it('reads the ids of VPS and PPS', () => {
    const { vps, pps } = parseHvcc(HVCC.main1080);
    expect(parseH265VpsId(vps[0]!)).toBe(0);
    expect(parseH265PpsIds(pps[0]!)).toEqual({ id: 0, spsId: 0 });
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes(parseH265Sps, Object.values(HVCC).map(spsOf));
    survivesHostileBytes((data) => parseH265Sps(Uint8Array.of(0x42, 1, ...data)), []);
    survivesHostileBytes((data) => parseH265PpsIds(Uint8Array.of(0x44, 1, ...data)), []);
    survivesHostileBytes((data) => parseH265VpsId(Uint8Array.of(0x40, 1, ...data)), []);
  });
});

describe('lists inside the SPS', () => {
  it('gets past coded and predicted scaling lists', () => {
    const writer = new BitWriter();
    for (let size = 0; size < 4; size++) {
      for (let matrix = 0; matrix < (size === 3 ? 2 : 6); matrix++) {
        const coded = matrix % 2 === 1;
        writer.flag(coded);
        if (!coded) writer.ue(0);
        else for (let i = 0; i < (size === 0 ? 16 : 64) + (size > 1 ? 1 : 0); i++) writer.ue(i % 3);
      }
    }
    const reader = new BitReader(writer.bits(0x2a, 6).finish());
    skipScalingLists(reader);
    expect(reader.bits(6)).toBe(0x2a);
  });

  it('skips reference picture sets coded as a difference to the previous set', () => {
    const writer = new BitWriter().ue(3);
    writer.ue(1).ue(1).ue(0).flag(true).ue(0).flag(true); // two pictures
    writer.flag(true).flag(false).ue(0).flag(true).flag(false).flag(true).flag(false).flag(false); // keeps two of three
    writer.flag(true).flag(true).ue(0).flag(true).flag(true).flag(true);
    const reader = new BitReader(writer.bits(0x15, 5).finish());
    skipShortTermRefPicSets(reader);
    expect(reader.bits(5)).toBe(0x15);
  });

  it('gets past HRD parameters of several sub-layers in the VUI', () => {
    const writer = new BitWriter().bits(0, 4).bits(0, 3).flag(false).flag(true).bits(1, 32).bits(50, 32).flag(true).ue(0).flag(true);
    writer.flag(true).flag(true).flag(true).bits(0, 19).bits(0, 8).bits(0, 4).bits(0, 15);
    writer.flag(false).flag(false).flag(true); // low delay: one buffer
    for (let kind = 0; kind < 2; kind++) writer.ue(9).ue(9).ue(9).ue(9).flag(false);
    writer.flag(true).ue(1).ue(1);
    for (let buffer = 0; buffer < 4; buffer++) writer.ue(9).ue(9).ue(9).ue(9).flag(false);
    writer.flag(true).bits(0, 3).ue(77).ue(0).ue(0).ue(0).ue(0);
    expect(readVui(new BitReader(writer.finish()), 1)).toMatchObject({ framerate: 50, minSpatialSegmentation: 77 });
  });
});

describe('hvcC', () => {
  it.each(Object.entries(HVCC))('%s is rebuilt from its parameter sets with the same content', (_name, record) => {
    const { avgFrameRate, ...expected } = parseHvcc(record);
    expect(parseHvcc(buildHvcc(parseHvcc(record)))).toMatchObject(expected);
    expect(avgFrameRate).toBe(0);
  });

  it.each([
    ['main1080', 'hvc1.1.6.L120.90'],
    ['range422', 'hvc1.4.10.L60.9D.8'],
    ['range444', 'hvc1.4.10.H153.98.8'],
  ] as const)('%s has the codec string %s', (name, expected) => {
    expect(hevcCodecString(parseHvcc(HVCC[name]).profile)).toBe(expected);
  });

  it('names profile spaces by letters', () => {
    const profile = { profileSpace: 1, tier: 1, profileIdc: 2, compatibility: 0x2000_0000, constraints: [0, 0, 0, 0, 0, 0], levelIdc: 93 };
    expect(hevcCodecString(profile)).toBe('hvc1.A2.4.H93');
  });

  it('refuses an invalid record', () => {
    expect(() => parseHvcc(Uint8Array.of(9))).toThrow(expect.objectContaining({ code: 'HVCC', offset: 0 }));
    expect(() => buildHvcc({ vps: [], sps: [], pps: [] })).toThrow(expect.objectContaining({ code: 'HVCC' }));
    expect(() => buildHvcc({ vps: [], sps: [spsOf(HVCC.main1080)], pps: [] })).toThrow(expect.objectContaining({ code: 'HVCC' }));
    survivesHostileBytes(parseHvcc, Object.values(HVCC));
  });
});

describe('access units', () => {
  const units: Uint8Array[] = [];
  const nals = new AnnexbCursor(ANNEXB.hevc);
  while (nals.next()) units.push(nals.unit());
  const byType = (type: number): Uint8Array => units.find((unit) => ((unit[0]! >> 1) & 0x3f) === type)!;

  it('IDR and CRA access units are keyframes, others are not', () => {
    expect(isH265Keyframe(new AnnexbCursor(ANNEXB.hevc))).toBe(true);
    expect(isH265Keyframe(alone(byType(21)))).toBe(true);
    expect(isH265Keyframe(alone(byType(1)))).toBe(false);
    expect(isH265Keyframe(alone(byType(32)))).toBe(false);
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes((data) => isH265Keyframe(new AnnexbCursor(data)), [ANNEXB.hevc]);
    survivesHostileBytes((data) => isH265Keyframe(new LengthPrefixedCursor(data)), []);
  });
});
