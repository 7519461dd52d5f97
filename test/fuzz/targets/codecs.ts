/** Parameter sets, configuration records and frames of every codec, as any protocol may bring them. */
import { configOfAdts } from '../../../src/codecs/aac/adts.ts';
import { parseAudioSpecificConfig } from '../../../src/codecs/aac/audio-specific-config.ts';
import { LatmReader, LOAS_HEADER_LENGTH, loasElementLength } from '../../../src/codecs/aac/latm.ts';
import { findSequenceHeader, parseAv1c } from '../../../src/codecs/av1/av1c.ts';
import { ObuCursor } from '../../../src/codecs/av1/obu.ts';
import { parseAv1SequenceHeader } from '../../../src/codecs/av1/sequence-header.ts';
import {
  describeAudio,
  describeKeyframe,
  describeVideo,
  isRandomAccessPoint,
  parameterSetsOf,
  parameterSetsOfConfig,
  updateConfig,
  withFourByteLengths,
} from '../../../src/codecs/describe.ts';
import { parseAvcc } from '../../../src/codecs/h264/avcc.ts';
import { parseH264PpsIds, parseH264Sps } from '../../../src/codecs/h264/sps.ts';
import { parseHvcc } from '../../../src/codecs/h265/hvcc.ts';
import { parseH265PpsIds, parseH265Sps, parseH265VpsId } from '../../../src/codecs/h265/sps.ts';
import { parseMpegAudioHeader } from '../../../src/codecs/mp3/frame-header.ts';
import { CaptionReader } from '../../../src/codecs/nal/captions.ts';
import { annexbToLengthPrefixed, joinNalUnits, toFourByteLengths, withValidLengths } from '../../../src/codecs/nal/convert.ts';
import { AnnexbCursor } from '../../../src/codecs/nal/nal-cursor.ts';
import { opusPacketSamples } from '../../../src/codecs/opus/packet.ts';
import { AudioCodec, VideoCodec } from '../../../src/media/codec.ts';
import { ANNEXB, ASC, AUDIO, AV1, AVCC, HVCC, VPX } from '../../fixtures/bitstreams.ts';
import { adtsFrames } from '../../support/adts-frames.ts';
import { captionUnit, PACKET_DATA, PACKET_START, popOn, type Triplet } from '../../support/captions.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { tolerate } from '../support/tolerate.ts';

const avcc = Object.values(AVCC);
const hvcc = Object.values(HVCC);
const spsOf = (configs: readonly Uint8Array[], codec: VideoCodec): Uint8Array[] =>
  configs.flatMap((config) => parameterSetsOfConfig(codec, config).sps);
const accessUnit = (codec: VideoCodec, config: Uint8Array): Uint8Array => {
  const { vps, sps, pps } = parameterSetsOfConfig(codec, config);
  return joinNalUnits([...vps, ...sps, ...pps]);
};

/** Numbers of a description must be usable by players and calculations. */
function checkNumbers(description: object): void {
  for (const [name, value] of Object.entries(description)) {
    if (typeof value === 'number' && !(Number.isFinite(value) && value >= 0)) throw new Error(`${name} is ${value}`);
    if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array) && !Array.isArray(value)) checkNumbers(value);
  }
}

/** The lengths in an access unit that we made must lead to its end. */
function checkUnits(unit: Uint8Array): number {
  withValidLengths(unit);
  return unit.length;
}

function video(name: string, codec: VideoCodec, configs: readonly Uint8Array[]): FuzzTarget {
  return {
    name,
    seeds: () => configs,
    run: (input) => {
      checkNumbers(describeVideo(codec, input));
      const sets = parameterSetsOfConfig(codec, input);
      withFourByteLengths(codec, input);
      const updated = updateConfig(codec, configs[0] ?? null, sets);
      if (updated !== null) checkNumbers(describeVideo(codec, updated));
      return sets.sps.length + sets.pps.length + sets.vps.length;
    },
  };
}

/** The router's calls for every packet. Each may throw independently of the others. */
function frames(name: string, codec: VideoCodec, seeds: () => readonly Uint8Array[]): FuzzTarget {
  return {
    name,
    seeds,
    run: (input) => {
      const questions: (() => unknown)[] = [
        () => isRandomAccessPoint(codec, input),
        () => checkNumbers(describeKeyframe(codec, input) ?? {}),
        () => {
          const sets = parameterSetsOf(codec, input);
          const config = sets === null ? null : updateConfig(codec, null, sets);
          if (config !== null) checkNumbers(describeVideo(codec, config));
        },
      ];
      for (const ask of questions) tolerate(ask);
      return undefined;
    },
  };
}

export const CODEC_TARGETS: readonly FuzzTarget[] = [
  video('avcc', VideoCodec.H264, avcc),
  video('hvcc', VideoCodec.H265, hvcc),
  video('av1c', VideoCodec.AV1, [AV1.config360]),
  video('vpcc', VideoCodec.VP9, [VPX.vp9Config444]),
  frames('h264-frames', VideoCodec.H264, () => [
    ...avcc.map((config) => accessUnit(VideoCodec.H264, config)),
    ...[ANNEXB.openGop, ANNEXB.intraRefresh].map((data) => annexbToLengthPrefixed(data)),
  ]),
  frames('h265-frames', VideoCodec.H265, () => [
    ...hvcc.map((config) => accessUnit(VideoCodec.H265, config)),
    annexbToLengthPrefixed(ANNEXB.hevc),
  ]),
  frames('av1-frames', VideoCodec.AV1, () => [AV1.stream444, AV1.head10bit]),
  frames('vp9-frames', VideoCodec.VP9, () => [VPX.vp9Key, VPX.vp9Delta]),
  frames('vp8-frames', VideoCodec.VP8, () => [VPX.vp8Key, VPX.vp8Delta]),
  { name: 'h264-sps', seeds: () => spsOf(avcc, VideoCodec.H264), run: (input) => void checkNumbers(parseH264Sps(input)) },
  { name: 'h265-sps', seeds: () => spsOf(hvcc, VideoCodec.H265), run: (input) => void checkNumbers(parseH265Sps(input)) },
  { name: 'h264-pps', seeds: () => avcc.flatMap((config) => parseAvcc(config).pps), run: (input) => void parseH264PpsIds(input) },
  { name: 'h265-pps', seeds: () => hvcc.flatMap((config) => parseHvcc(config).pps), run: (input) => void parseH265PpsIds(input) },
  { name: 'h265-vps', seeds: () => hvcc.flatMap((config) => parseHvcc(config).vps), run: (input) => void parseH265VpsId(input) },
  {
    name: 'av1-obus',
    seeds: () => [AV1.stream444, AV1.head10bit],
    run: (input) => {
      const obus = new ObuCursor(input);
      let count = 0;
      while (obus.next()) {
        obus.unit();
        count += 1;
      }
      findSequenceHeader(input);
      return count;
    },
    most: (length) => length,
  },
  {
    name: 'av1-sequence-header',
    seeds: () => [AV1.config360, AV1.stream444].map((data, at) => (at === 0 ? parseAv1c(data).sequenceHeader! : findSequenceHeader(data)!)),
    run: (input) => void checkNumbers(parseAv1SequenceHeader(input)),
  },
  {
    name: 'captions',
    seeds: () =>
      ([VideoCodec.H264, VideoCodec.H265] as const).map((codec) => {
        const services: Triplet[] = [
          [PACKET_START, 0x04, 0x22],
          [PACKET_DATA, 0x41, 0x42],
          [PACKET_DATA, 0xe1, 0x09],
        ];
        return joinNalUnits([captionUnit(codec, [...popOn('HELLO', 1), ...services])]);
      }),
    run: (input) => {
      const reader = new CaptionReader();
      for (const codec of [VideoCodec.H264, VideoCodec.H265]) for (let times = 0; times < 2; times += 1) reader.read(codec, input);
      return reader.channels.size;
    },
    most: (length) => Math.min(67, length),
  },
  {
    name: 'annexb',
    seeds: () => Object.values(ANNEXB),
    run: (input) => {
      const cursor = new AnnexbCursor(input);
      let units = 0;
      while (cursor.next()) units += 1;
      checkUnits(annexbToLengthPrefixed(input));
      return units;
    },
    most: (length) => length / 3,
  },
  {
    name: 'nal-lengths',
    seeds: () => [accessUnit(VideoCodec.H264, AVCC.high720), Uint8Array.of(2, 0x65, 0x88, 1, 0x41), Uint8Array.of(0, 2, 0x65, 0x88)],
    run: (input) => {
      for (const size of [1, 2] as const) tolerate(() => checkUnits(toFourByteLengths(input, size)));
      return checkUnits(input);
    },
  },
  {
    name: 'audio-specific-config',
    seeds: () => Object.values(ASC),
    run: (input) => {
      checkNumbers(parseAudioSpecificConfig(input));
      checkNumbers(describeAudio(AudioCodec.AAC, input));
    },
  },
  {
    name: 'adts',
    // The last frame of the sample is truncated.
    seeds: () => [AUDIO.adts.subarray(0, 760)],
    run: (input) => {
      let count = 0;
      for (const frame of adtsFrames(input)) {
        checkNumbers(frame);
        configOfAdts(frame);
        count += 1;
      }
      return count;
    },
    most: (length) => 1 + length / 7,
  },
  {
    name: 'latm',
    seeds: () => [AUDIO.latm],
    run: (input) => {
      const reader = new LatmReader();
      let bytes = 0;
      for (let at = 0, end = 0; at < input.length; at = end) {
        end = at + LOAS_HEADER_LENGTH + loasElementLength(input, at);
        if (end < at + LOAS_HEADER_LENGTH) break;
        bytes += reader.read(input.subarray(at + LOAS_HEADER_LENGTH, end)).reduce((sum, frame) => sum + 1 + frame.length, 0);
      }
      return bytes;
    },
    // An element may have up to 64 frames, even empty ones.
    most: (length) => 64 + 64 * length,
  },
  { name: 'opus-head', seeds: () => [AUDIO.opusHead], run: (input) => void checkNumbers(describeAudio(AudioCodec.OPUS, input)) },
  { name: 'opus-packet', seeds: () => [Uint8Array.of(0xfc, 1, 2), Uint8Array.of(0x03, 3, 1)], run: opusPacketSamples, most: () => 5760 },
  {
    name: 'mpeg-audio',
    seeds: () => [AUDIO.mp3Mono44, AUDIO.mp3Mono22],
    run: (input) => {
      checkNumbers(parseMpegAudioHeader(input));
      checkNumbers(describeAudio(AudioCodec.MP3, input));
    },
  },
];
