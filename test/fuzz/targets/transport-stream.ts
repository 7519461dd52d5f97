/** MPEG-TS: packets, tables, PES and elementary streams, as they come over UDP, over SRT and in files. */
import { annexbToLengthPrefixed } from '../../../src/codecs/nal/convert.ts';
import { buildOpusHead } from '../../../src/codecs/opus/opus-head.ts';
import { buildSpliceInsert, parseSplice, retimeSplice } from '../../../src/containers/markers/splice-info.ts';
import { crc32Mpeg } from '../../../src/containers/mpegts/crc32.ts';
import type { ElementaryUnit } from '../../../src/containers/mpegts/elementary-unit.ts';
import { buildPat, buildPmt } from '../../../src/containers/mpegts/psi.ts';
import { parsePat, parsePmt } from '../../../src/containers/mpegts/psi-parser.ts';
import { PtsSpan } from '../../../src/containers/mpegts/pts-span.ts';
import { SectionReader } from '../../../src/containers/mpegts/section-reader.ts';
import { describeElementaryStream } from '../../../src/containers/mpegts/stream-kind.ts';
import { TransportOutput } from '../../../src/containers/mpegts/transport-output.ts';
import { unitReader } from '../../../src/containers/mpegts/unit-reader.ts';
import { VideoUnits } from '../../../src/containers/mpegts/video-units.ts';
import { TransportFeed } from '../../../src/ingest/transport-feed.ts';
import type { Packet } from '../../../src/media/packet.ts';
import type { Track } from '../../../src/media/track.ts';
import { FakeIngestGate } from '../../fakes/fake-ingest-gate.ts';
import { RecordingLogger } from '../../fakes/recording-logger.ts';
import { audioTrack, dataTrack, videoTrack } from '../../fakes/synthetic-media.ts';
import { ANNEXB, AUDIO, AVCC, HVCC } from '../../fixtures/bitstreams.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { tolerate } from '../support/tolerate.ts';

const PACKET = 188;
const OPUS_DESCRIPTORS = Buffer.from('05044f7075737f028002', 'hex');

function mux(tracks: readonly Track[], payloads: readonly (readonly [number, Uint8Array, boolean])[]): Buffer {
  const parts: Uint8Array[] = [];
  const output = new TransportOutput(tracks, { onPayload: (payload) => parts.push(payload), onEntryPoint: () => undefined });
  for (const [frame, [index, data, keyframe]] of payloads.entries()) {
    const track = tracks[index]!;
    const time = Math.round((frame * 0.04 * track.timebase.den) / track.timebase.num);
    output.push({ track, pts: time, dts: time, duration: 0, keyframe, data } as Packet);
  }
  output.flush();
  return Buffer.concat(parts);
}

/** Small streams of our own muxer, of every codec it carries. */
export function transportStreams(): Buffer[] {
  const video = videoTrack({ config: AVCC.baseline180 });
  const hevc = videoTrack({ codec: 'H265', config: HVCC.main1080 });
  const aac = audioTrack();
  const mp3 = audioTrack({ codec: 'MP3', config: null });
  const opus = audioTrack({ codec: 'OPUS', config: buildOpusHead({ channels: 2 }) });
  const picture = annexbToLengthPrefixed(ANNEXB.intraRefresh);
  const frame = Buffer.from(AUDIO.adts.subarray(7, 60));
  return [
    mux(
      [video, aac, dataTrack(2)],
      [
        [0, picture, true],
        [1, frame, true],
        [0, picture, false],
        [1, frame, true],
        [0, picture, true],
      ],
    ),
    mux(
      [hevc, opus],
      [
        [0, annexbToLengthPrefixed(ANNEXB.hevc), true],
        [1, Buffer.from('fc010203', 'hex'), true],
        [0, Buffer.from('00000003260101', 'hex'), true],
      ],
    ),
    mux(
      [mp3],
      [
        [0, AUDIO.mp3Mono44, true],
        [0, AUDIO.mp3Mono44, true],
      ],
    ),
  ];
}

/** Corrects the checksum, so that the content is read. */
function withCrc(section: Buffer): Buffer {
  if (section.length < 8) return section;
  section.writeUInt16BE((section.readUInt16BE(1) & 0xf000) | ((section.length - 3) & 0x0fff), 1);
  section.writeUInt32BE(crc32Mpeg(section.subarray(0, -4)) >>> 0, section.length - 4);
  return section;
}

const PMT = (): Uint8Array =>
  buildPmt({
    version: 1,
    pcrPid: 0x100,
    descriptors: new Uint8Array(0),
    entries: [
      { pid: 0x100, streamType: 0x1b, descriptors: new Uint8Array(0) },
      { pid: 0x101, streamType: 0x0f, descriptors: Buffer.from('0a04656e6700', 'hex') },
      { pid: 0x102, streamType: 0x06, descriptors: OPUS_DESCRIPTORS },
      { pid: 0x103, streamType: 0x15, descriptors: Buffer.from('260dffff49443320ff49443320001f', 'hex') },
    ],
  });

function feed(input: Buffer): number {
  const gate = new FakeIngestGate();
  const request = { streamName: 's', provider: 'mpegts', sourceType: 'MPEGTS', sourceUrl: 'udp://x', onClose: () => undefined } as const;
  gate.openIngest({ host: 'h', app: 'a' }, request);
  const reader = new TransportFeed({ stream: gate.streams[0]!, logger: new RecordingLogger() });
  for (let at = 0; at < input.length; at += 7 * PACKET) reader.push(input.subarray(at, at + 7 * PACKET));
  reader.checkStart(0);
  reader.checkStart(10_000);
  // Whatever came before, a valid stream must be found again.
  const before = gate.streams[0]!.packets.length + reader.undecodable;
  const good = transportStreams()[0]!;
  for (let times = 0; times < 3; times += 1) reader.push(good);
  reader.end();
  reader.checkStart(20_000);
  reader.checkStart(40_000);
  if (gate.streams[0]!.packets.length + reader.undecodable === before) throw new Error('nothing can be read any more');
  return gate.streams[0]!.packets.length;
}

export const TRANSPORT_STREAM_TARGETS: readonly FuzzTarget[] = [
  { name: 'mpegts', seeds: transportStreams, run: feed, most: (length) => 200 + length / 2, cost: 5 },
  {
    name: 'splices',
    seeds: () => [
      buildSpliceInsert({ id: 7, type: 'out', time: 900_000, duration: 90_000, autoReturn: true }),
      Buffer.from('fc3034000000000000fffff00506fe72bd0050001e021c435545494800008e7fcf0001a599b00808000000002ca0a18a3402009ac9d17e', 'hex'),
    ],
    run: (input) => {
      const section = withCrc(input);
      const splice = parseSplice(section);
      const moved = parseSplice(retimeSplice(section, 2 ** 33 - 1));
      if (splice !== null && splice.time !== null && moved?.time !== 2 ** 33 - 1) throw new Error('the time is not the one it was given');
      return splice === null ? 0 : 1;
    },
    most: () => 1,
  },
  {
    name: 'mpegts-tables',
    seeds: () => [buildPat(0x1000, 1), PMT()],
    run: (input) => {
      const section = withCrc(input);
      const pat = parsePat(section)?.length ?? 0;
      const pmt = parsePmt(section);
      const streams = pmt?.entries.map((entry) => describeElementaryStream(entry)) ?? [];
      for (const { kind } of streams) if (kind.type !== 'unsupported' && kind.type !== 'splices') unitReader(kind);
      return pat + streams.length;
    },
    most: (length) => length / 4,
  },
  {
    name: 'mpegts-sections',
    seeds: () => [Buffer.concat([Buffer.of(0), PMT()]), Buffer.concat([Buffer.of(0), buildPat(0x1000, 1), Buffer.alloc(20, 0xff)])],
    run: (input) => {
      let bytes = 0;
      const reader = new SectionReader((section) => {
        bytes += section.length;
      });
      for (let at = 0, piece = 0; at < input.length; at += 40, piece += 1) reader.push(input.subarray(at, at + 40), piece % 3 === 0);
      return bytes;
    },
    most: (length) => 4 * length,
  },
  {
    name: 'mpegts-span',
    seeds: transportStreams,
    run: (input) => {
      const span = new PtsSpan();
      span.push(input);
      const milliseconds = span.milliseconds ?? 0;
      if (!Number.isFinite(milliseconds) || milliseconds < 0) throw new Error(`a span of ${milliseconds} ms`);
      return 0;
    },
  },
  ...(['ADTS', 'LATM', 'MP3', 'OPUS'] as const).map((kind) => elementary(kind)),
  {
    name: 'mpegts-video-units',
    seeds: () => [ANNEXB.openGop, ANNEXB.hevc],
    run: (input) => {
      let bytes = 0;
      for (const codec of ['H264', 'H265'] as const) {
        const sink = ({ data }: ElementaryUnit): void => {
          bytes += 1 + data.length;
        };
        const whole = new VideoUnits(codec);
        whole.read({ pid: 1, pts: 0, dts: 0, randomAccess: false, discontinuity: false, data: input }, sink);
        // Frames in pieces: every third has times, and something is missing now and then.
        const pieces = new VideoUnits(codec);
        for (let at = 0, piece = 0; at < input.length; at += 50, piece += 1) {
          const time = piece % 3 === 0 ? at : null;
          const data = input.subarray(at, at + 50);
          const packet = { pid: 1, pts: time, dts: time, randomAccess: false, discontinuity: piece % 7 === 6, data };
          tolerate(() => pieces.read(packet, sink));
        }
        tolerate(() => pieces.end(sink));
      }
      return bytes;
    },
    most: (length) => 16 + 8 * length,
  },
];

/** Payloads of audio PES packets, which may be cut anywhere. */
function elementary(kind: 'ADTS' | 'LATM' | 'MP3' | 'OPUS'): FuzzTarget {
  const type = { ADTS: 0x0f, LATM: 0x11, MP3: 0x03, OPUS: 0x06 }[kind];
  const descriptors = kind === 'OPUS' ? OPUS_DESCRIPTORS : new Uint8Array(0);
  const opus = Buffer.from('7fe003fc01027fe003fc0304', 'hex');
  const seeds = { ADTS: [AUDIO.adts], LATM: [AUDIO.latm], MP3: [AUDIO.mp3Mono44], OPUS: [opus] }[kind];
  return {
    name: `mpegts-${kind.toLowerCase()}`,
    seeds: () => seeds,
    run: (input) => {
      const { kind: described } = describeElementaryStream({ pid: 1, streamType: type, descriptors });
      if (described.type === 'unsupported' || described.type === 'splices') throw new Error(`${kind} is ${described.type}`);
      const reader = unitReader(described);
      let bytes = 0;
      for (let at = 0; at < input.length; at += 90) {
        const data = input.subarray(at, at + 90);
        const packet = { pid: 1, pts: at * 100, dts: at * 100, randomAccess: false, discontinuity: at % 270 === 0, data };
        // The data after a loss is read again.
        tolerate(() =>
          reader.read(packet, (unit) => {
            bytes += 1 + unit.data.length;
          }),
        );
      }
      return bytes;
    },
    most: (length) => 64 + 4 * length,
  };
}
