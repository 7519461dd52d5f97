import { describe, expect, it } from 'vitest';
import { ANNEXB, ASC, AUDIO, AV1, AVCC, HVCC, VPX } from '../../test/fixtures/bitstreams.ts';
import { AudioCodec, VideoCodec } from '../media/codec.ts';
import {
  buildConfig,
  describeAudio,
  describeKeyframe,
  describeVideo,
  isKeyframe,
  isRandomAccessPoint,
  nalLengthSizeOf,
  parameterSetsOf,
  parameterSetsOfConfig,
  updateConfig,
  withFourByteLengths,
} from './describe.ts';
import { annexbToLengthPrefixed, joinNalUnits } from './nal/convert.ts';

describe('describeVideo', () => {
  it.each([
    [VideoCodec.H264, AVCC.main1080, { width: 1920, height: 1080, codecString: 'avc1.4d4028', framerate: 30, hasReordering: true }],
    [VideoCodec.H265, HVCC.range422, { width: 322, height: 182, codecString: 'hvc1.4.10.L60.9D.8', hasReordering: false }],
    [VideoCodec.AV1, AV1.config360, { width: 640, height: 360, codecString: 'av01.1.01M.08', framerate: 0 }],
    [VideoCodec.AV1, AV1.config360.subarray(0, 4), { width: 0, height: 0, codecString: 'av01.1.01M.08' }],
    [VideoCodec.VP9, VPX.vp9Config444, { width: 0, height: 0, codecString: 'vp09.03.10.10' }],
  ])('%s', (codec, config, expected) => {
    expect(describeVideo(codec, config)).toMatchObject(expected);
  });

  it('refuses codecs without a configuration and records without SPS', () => {
    expect(() => describeVideo(VideoCodec.VP8, new Uint8Array(4))).toThrow(expect.objectContaining({ code: 'NO_CONFIG' }));
    expect(() => describeVideo(VideoCodec.H264, Uint8Array.of(1, 66, 0, 30, 0xff, 0xe0, 0))).toThrow(
      expect.objectContaining({ code: 'AVCC' }),
    );
  });

  it('describes VP8 and VP9 by keyframes', () => {
    expect(describeKeyframe(VideoCodec.VP8, VPX.vp8Key)).toMatchObject({ width: 642, height: 362, codecString: 'vp8' });
    expect(describeKeyframe(VideoCodec.VP9, VPX.vp9Key)).toMatchObject({ width: 642, height: 362, codecString: 'vp09.00.21.08' });
    expect(describeKeyframe(VideoCodec.VP8, VPX.vp8Delta)).toBeNull();
    expect(describeKeyframe(VideoCodec.VP9, VPX.vp9Delta)).toBeNull();
    expect(describeKeyframe(VideoCodec.H264, VPX.vp8Key)).toBeNull();
  });
});

describe('describeAudio', () => {
  it.each([
    [AudioCodec.AAC, ASC.stereo48, { sampleRate: 48_000, channels: 2, codecString: 'mp4a.40.2', samplesPerFrame: 1024 }],
    [
      AudioCodec.AAC,
      Uint8Array.of(0x2b, 0x11, 0x88, 0),
      { sampleRate: 48_000, channels: 2, codecString: 'mp4a.40.5', samplesPerFrame: 2048 },
    ],
    [AudioCodec.OPUS, AUDIO.opusHead, { sampleRate: 48_000, channels: 2, codecString: 'opus', samplesPerFrame: 960 }],
    [AudioCodec.MP3, AUDIO.mp3Mono44, { sampleRate: 44_100, channels: 1, codecString: 'mp4a.40.34', samplesPerFrame: 1152 }],
  ])('%s', (codec, config, expected) => {
    expect(describeAudio(codec, config)).toEqual(expected);
  });
});

describe('packets', () => {
  const h264 = annexbToLengthPrefixed(ANNEXB.openGop);
  const h265 = annexbToLengthPrefixed(ANNEXB.hevc);
  const refresh = annexbToLengthPrefixed(ANNEXB.intraRefresh);

  it.each([
    [VideoCodec.H264, h264, true],
    [VideoCodec.H265, h265, true],
    [VideoCodec.AV1, AV1.stream444, true],
    [VideoCodec.VP9, VPX.vp9Delta, false],
    [VideoCodec.VP8, VPX.vp8Delta, false],
    [VideoCodec.JPEG, Uint8Array.of(0xff), true],
  ])('detects the keyframes of %s', (codec, data, expected) => {
    expect(isKeyframe(codec, data)).toBe(expected);
    expect(isRandomAccessPoint(codec, data)).toBe(expected);
  });

  it('finds the start of a periodic intra refresh', () => {
    const withoutIdr = joinNalUnits([...parameterSetsOf(VideoCodec.H264, refresh)!.sps, seiAndSlice(refresh)]);
    expect(isKeyframe(VideoCodec.H264, withoutIdr)).toBe(false);
    expect(isRandomAccessPoint(VideoCodec.H264, withoutIdr)).toBe(true);
  });
});

describe('NAL unit lengths in the configuration', () => {
  it.each([
    [VideoCodec.H264, AVCC.main1080, 4],
    [VideoCodec.H265, HVCC.main1080, 21],
  ])('of %s are read and rewritten to four bytes', (codec, config, at) => {
    const short = config.slice();
    short[at] = (short[at]! & 0xfc) | 1;
    expect(nalLengthSizeOf(codec, short)).toBe(2);
    expect(withFourByteLengths(codec, short)).toEqual(config);
    expect(withFourByteLengths(codec, config)).toBe(config);
  });

  it('do not exist for other codecs', () => {
    expect(nalLengthSizeOf(VideoCodec.AV1, AV1.config360)).toBe(4);
    expect(withFourByteLengths(VideoCodec.AV1, AV1.config360)).toBe(AV1.config360);
  });
});

describe('in-band parameter sets', () => {
  const h264 = annexbToLengthPrefixed(ANNEXB.openGop);
  const h265 = annexbToLengthPrefixed(ANNEXB.hevc);

  it.each([
    [VideoCodec.H264, h264, { width: 64, height: 64, codecString: 'avc1.64000a' }],
    [VideoCodec.H265, h265, { width: 64, height: 64 }],
    [VideoCodec.AV1, AV1.stream444, { width: 64, height: 64 }],
    [VideoCodec.VP9, VPX.vp9Key, { codecString: 'vp09.00.21.08' }],
  ])('of %s build a configuration that describes the stream', (codec, data, expected) => {
    const sets = parameterSetsOf(codec, data)!;
    const config = buildConfig(codec, sets);
    expect(describeVideo(codec, config)).toMatchObject(expected);
    expect(updateConfig(codec, config, sets)).toBe(config);
  });

  it('are null for a packet without any', () => {
    expect(parameterSetsOf(VideoCodec.H264, joinNalUnits([Uint8Array.of(0x41, 0x9a)]))).toBeNull();
    expect(parameterSetsOf(VideoCodec.VP9, VPX.vp9Delta)).toBeNull();
    expect(parameterSetsOf(VideoCodec.VP8, VPX.vp8Key)).toBeNull();
    expect(parameterSetsOfConfig(VideoCodec.VP8, VPX.vp8Key)).toEqual({ vps: [], sps: [], pps: [] });
  });

  it('wait for missing sets', () => {
    const { vps, sps, pps } = parameterSetsOf(VideoCodec.H265, h265)!;
    expect(updateConfig(VideoCodec.H265, null, { vps: [], sps, pps })).toBeNull();
    expect(updateConfig(VideoCodec.H265, null, { vps, sps, pps })).not.toBeNull();
    expect(updateConfig(VideoCodec.H264, null, { vps: [], sps: parameterSetsOf(VideoCodec.H264, h264)!.sps, pps: [] })).toBeNull();
    expect(() => buildConfig(VideoCodec.VP8, { vps: [], sps: [], pps: [] })).toThrow(expect.objectContaining({ code: 'NO_CONFIG' }));
  });

  it('replace the sets with the same id and keep the others', () => {
    const { sps, pps } = parameterSetsOfConfig(VideoCodec.H264, AVCC.baseline720);
    const secondPps = Uint8Array.of(0x68, 0b010_1_1000, 0x80);
    const both = updateConfig(VideoCodec.H264, AVCC.main1080, { vps: [], sps, pps: [secondPps] })!;
    expect(describeVideo(VideoCodec.H264, both)).toMatchObject({ width: 1280, height: 720 });
    expect(parameterSetsOfConfig(VideoCodec.H264, both).pps).toEqual([
      parameterSetsOfConfig(VideoCodec.H264, AVCC.main1080).pps[0],
      secondPps,
    ]);
    expect(updateConfig(VideoCodec.H264, both, { vps: [], sps: [], pps })).not.toBe(both);
  });
});

/** The recovery point and the following slice, as in the last units of the sample. */
function seiAndSlice(data: Uint8Array): Uint8Array {
  const sei = Buffer.from(data).indexOf(Buffer.from([0x06, 0x06]));
  return data.subarray(sei);
}
