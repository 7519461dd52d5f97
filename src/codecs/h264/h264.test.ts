import { describe, expect, it } from 'vitest';
import { ANNEXB, AVCC } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { annexbToLengthPrefixed } from '../nal/convert.ts';
import { AnnexbCursor, LengthPrefixedCursor } from '../nal/nal-cursor.ts';
import { h264RecoveryPoint, isH264Keyframe } from './access-unit.ts';
import { avcCodecString, buildAvcc, parseAvcc } from './avcc.ts';
import { parseH264PpsIds, parseH264Sps } from './sps.ts';

const spsOf = (avcc: Uint8Array): Uint8Array => parseAvcc(avcc).sps[0]!;
/** The NAL units of a sample, each as a separate access unit. */
const singles = (annexb: Uint8Array): Uint8Array[] => {
  const found: Uint8Array[] = [];
  const nals = new AnnexbCursor(annexb);
  while (nals.next()) found.push(nals.unit());
  return found;
};
const cursor = (...parts: Uint8Array[]): AnnexbCursor =>
  new AnnexbCursor(new Uint8Array(Buffer.concat(parts.flatMap((part) => [Uint8Array.of(0, 0, 0, 1), part]))));

/** One macroblock, no VUI. */
function minimalSps(fields: { profileIdc: number; pocType: number; cropRight?: number }): Uint8Array {
  const writer = new BitWriter().bits(0x67, 8).bits(fields.profileIdc, 8).bits(0, 8).bits(10, 8).ue(0).ue(0).ue(fields.pocType);
  if (fields.pocType === 0) writer.ue(0);
  if (fields.pocType === 1) writer.flag(false).ue(1).ue(2).ue(1).ue(3);
  writer.ue(1).flag(false).ue(0).ue(0).flag(true).flag(true);
  writer.flag(fields.cropRight !== undefined);
  if (fields.cropRight !== undefined) writer.ue(0).ue(fields.cropRight).ue(0).ue(0);
  return writer.flag(false).flag(true).finish();
}

describe('parseH264Sps', () => {
  it.each([
    ['main1080', { profileIdc: 77, levelIdc: 40, width: 1920, height: 1080, framerate: 30, maxReorderFrames: 2, hasReordering: true }],
    ['baseline720', { profileIdc: 66, constraints: 0xc0, width: 1280, height: 720, framerate: 60_000 / 1001, hasReordering: false }],
    ['interlaced576', { profileIdc: 100, frameMbsOnly: false, width: 720, height: 576, sampleAspectRatio: { width: 64, height: 45 } }],
    ['high422', { profileIdc: 122, chromaFormatIdc: 2, bitDepthLuma: 10, bitDepthChroma: 10, width: 322, height: 182, framerate: 24 }],
    ['high444', { profileIdc: 244, chromaFormatIdc: 3, width: 321, height: 181, sampleAspectRatio: { width: 1, height: 1 } }],
    ['gray', { profileIdc: 100, chromaFormatIdc: 0, width: 320, height: 180, framerate: 15 }],
    ['hrd', { profileIdc: 100, width: 320, height: 180, framerate: 15, maxReorderFrames: 2 }],
  ] as const)('reads %s', (name, expected) => {
    expect(parseH264Sps(spsOf(AVCC[name]))).toMatchObject(expected);
  });

  it('assumes reordering for a stream without VUI unless its profile or picture order excludes it', () => {
    expect(parseH264Sps(minimalSps({ profileIdc: 77, pocType: 0 }))).toMatchObject({ maxReorderFrames: null, hasReordering: true });
    expect(parseH264Sps(minimalSps({ profileIdc: 77, pocType: 1 }))).toMatchObject({ picOrderCntType: 1, width: 16, height: 16 });
    expect(parseH264Sps(minimalSps({ profileIdc: 77, pocType: 2 }))).toMatchObject({ picOrderCntType: 2, hasReordering: false });
    expect(parseH264Sps(minimalSps({ profileIdc: 66, pocType: 0 }))).toMatchObject({ hasReordering: false, framerate: 0 });
  });

  it('refuses other units and impossible cropping', () => {
    expect(() => parseH264Sps(Uint8Array.of(0x68, 1, 2, 3))).toThrow(expect.objectContaining({ code: 'H264_SPS' }));
    expect(() => parseH264Sps(minimalSps({ profileIdc: 77, pocType: 0, cropRight: 8 }))).toThrow(
      expect.objectContaining({ code: 'H264_SPS' }),
    );
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes(parseH264Sps, Object.values(AVCC).map(spsOf));
    survivesHostileBytes((data) => parseH264Sps(Uint8Array.of(0x67, ...data)), []);
  });
});

describe('avcC', () => {
  it.each(Object.entries(AVCC))('%s is rebuilt byte by byte from its parameter sets', (_name, record) => {
    expect(Buffer.from(buildAvcc(parseAvcc(record))).toString('hex')).toBe(Buffer.from(record).toString('hex'));
  });

  it.each([
    ['main1080', 'avc1.4d4028'],
    ['baseline720', 'avc1.42c020'],
    ['high444', 'avc1.f4000d'],
  ] as const)('%s has the codec string %s', (name, expected) => {
    expect(avcCodecString(parseAvcc(AVCC[name]))).toBe(expected);
  });

  it('reads high profile records whose writer left the extension out', () => {
    const record = AVCC.hrd.subarray(0, AVCC.hrd.length - 4);
    expect(parseAvcc(record)).toMatchObject({ profileIdc: 100, lengthSize: 4, spsExtensions: [] });
  });

  it('reads SPS extensions and writes them back', () => {
    const { sps, pps } = parseAvcc(AVCC.high422);
    const record = buildAvcc({ sps, pps, spsExtensions: [Uint8Array.of(0x6d, 1, 2)] });
    expect(parseAvcc(record).spsExtensions).toEqual([Uint8Array.of(0x6d, 1, 2)]);
  });

  it('refuses an invalid record', () => {
    expect(() => parseAvcc(Uint8Array.of(2))).toThrow(expect.objectContaining({ code: 'AVCC', offset: 0 }));
    expect(() => parseAvcc(Uint8Array.of(1, 66, 0, 30, 0xfe, 0xe0, 0))).toThrow(expect.objectContaining({ code: 'NAL_LENGTH_SIZE' }));
    expect(() => buildAvcc({ sps: [], pps: [] })).toThrow(expect.objectContaining({ code: 'AVCC' }));
    expect(() => buildAvcc({ sps: [spsOf(AVCC.gray)], pps: [] })).toThrow(expect.objectContaining({ code: 'AVCC' }));
    expect(() => buildAvcc({ sps: [spsOf(AVCC.gray)], pps: [new Uint8Array(70_000)] })).toThrow(expect.objectContaining({ code: 'AVCC' }));
    survivesHostileBytes(parseAvcc, Object.values(AVCC));
  });

  it('reads the ids of a PPS', () => {
    const pps = parseAvcc(AVCC.main1080).pps[0]!;
    expect(parseH264PpsIds(pps)).toEqual({ id: 0, spsId: 0 });
    expect(() => parseH264PpsIds(spsOf(AVCC.main1080))).toThrow(expect.objectContaining({ code: 'H264_PPS' }));
    survivesHostileBytes(parseH264PpsIds, [pps]);
  });
});

describe('access units', () => {
  const [sps, pps, idr, p, , , , , recovery, openIntra] = singles(ANNEXB.openGop) as [Uint8Array, Uint8Array, ...Uint8Array[]];
  const refresh = singles(ANNEXB.intraRefresh);

  it('an IDR slice, and an intra slice after an exact recovery point, are keyframes', () => {
    expect(isH264Keyframe(cursor(sps, pps, idr!))).toBe(true);
    expect(isH264Keyframe(cursor(sps, pps, recovery!, openIntra!))).toBe(true);
  });

  it('intra pictures without recovery point and predicted pictures are not', () => {
    expect(isH264Keyframe(cursor(openIntra!))).toBe(false);
    expect(isH264Keyframe(cursor(p!))).toBe(false);
    expect(isH264Keyframe(cursor(recovery!, p!))).toBe(false);
    expect(isH264Keyframe(cursor(sps, pps))).toBe(false);
  });

  it('counts the frames that a periodic intra refresh needs', () => {
    const seiAt = refresh.findIndex((unit) => (unit[0]! & 0x1f) === 6);
    const accessUnit = [refresh[seiAt]!, refresh[seiAt + 1]!];
    expect(h264RecoveryPoint(cursor(...accessUnit))).toBeGreaterThan(0);
    expect(isH264Keyframe(cursor(...accessUnit))).toBe(false);
    expect(h264RecoveryPoint(cursor(refresh[seiAt + 1]!))).toBeNull();
    expect(h264RecoveryPoint(cursor(sps, pps))).toBeNull();
  });

  it('survives hostile bytes', () => {
    const sample = annexbToLengthPrefixed(ANNEXB.openGop);
    for (const look of [isH264Keyframe, h264RecoveryPoint]) {
      survivesHostileBytes((data) => look(new LengthPrefixedCursor(data)), [sample]);
      survivesHostileBytes((data) => look(new AnnexbCursor(data)), [ANNEXB.intraRefresh]);
    }
  });
});
