/** Real packets for tests: ffmpeg encodes its test sources, a transport stream carries them here. */
import { execFileSync } from 'node:child_process';
import { adtsFrames, configOfAdts } from '../src/codecs/aac/adts.ts';
import { buildConfig, describeAudio, describeVideo, isKeyframe, parameterSetsOf } from '../src/codecs/describe.ts';
import { annexbToLengthPrefixed } from '../src/codecs/nal/convert.ts';
import { AudioCodec, VideoCodec } from '../src/media/codec.ts';
import type { Packet } from '../src/media/packet.ts';
import { MPEG_90K } from '../src/media/timebase.ts';
import type { AudioTrack, DataTrack, Track, VideoTrack } from '../src/media/track.ts';
import { demuxTs, type TsPes, type TsStream } from './ts-demuxer.ts';

const BASE = { variantName: '', timebase: MPEG_90K, bitrateConf: 0, language: '', characteristics: '', bypass: true } as const;

export interface Sample {
  readonly tracks: readonly Track[];
  /** In the order of their decoding times. */
  readonly packets: readonly Packet[];
}

/** What to encode; null leaves a side out. */
export interface SampleRequest {
  readonly seconds: number;
  readonly video: {
    readonly codec: 'H264' | 'H265';
    readonly size: string;
    readonly rate: number;
    readonly gop: number;
    readonly bframes: number;
  } | null;
  readonly audio: { readonly channels: number } | null;
}

/** Runs ffmpeg and takes its output apart. Times begin at 0. */
export function samplePackets(request: SampleRequest): Sample {
  const { streams } = demuxTs(encode(request));
  const first = Math.min(...streams.flatMap(({ pes }) => pes.map(({ dts }) => dts)));
  const parts = streams.map((stream) => (stream.streamType === 0x0f ? audioPart(stream, first) : videoPart(stream, first)));
  const packets = parts.flatMap((part) => part.packets).sort((a, b) => a.dts - b.dts);
  return { tracks: parts.map(({ track }) => track), packets };
}

/** The data track every stream has. */
export function dataTrack(id: number): DataTrack {
  return { ...BASE, type: 'data', id, publicName: `Data_${id}` };
}

function encode({ seconds, video, audio }: SampleRequest): Uint8Array {
  const inputs: string[] = [];
  const codecs: string[] = [];
  if (video) {
    inputs.push('-f', 'lavfi', '-i', `testsrc2=s=${video.size}:r=${video.rate}`);
    const options = `keyint=${video.gop}:min-keyint=${video.gop}:scenecut=0:bframes=${video.bframes}:b-adapt=0`;
    if (video.codec === 'H264') codecs.push('-c:v', 'libx264', '-preset', 'ultrafast', '-x264-params', options);
    else codecs.push('-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', `${options}:open-gop=0:log-level=none`);
    codecs.push('-pix_fmt', 'yuv420p');
  }
  if (audio) {
    inputs.push('-f', 'lavfi', '-i', 'sine=r=48000');
    codecs.push('-c:a', 'aac', '-b:a', '96k', '-ac', `${audio.channels}`);
  }
  const args = ['-v', 'error', ...inputs, '-t', `${seconds}`, ...codecs, '-f', 'mpegts', '-pes_payload_size', '0', 'pipe:1'];
  return execFileSync('/usr/bin/ffmpeg', args, { maxBuffer: 256 * 1024 * 1024 });
}

function videoPart(stream: TsStream, first: number): { track: VideoTrack; packets: Packet[] } {
  const codec = stream.streamType === 0x1b ? VideoCodec.H264 : VideoCodec.H265;
  const units = stream.pes.map((pes) => ({ ...pes, data: annexbToLengthPrefixed(pes.data) }));
  const config = buildConfig(codec, parameterSetsOf(codec, units[0]!.data)!);
  const { width, height, codecString } = describeVideo(codec, config);
  const track: VideoTrack = {
    ...BASE,
    type: 'video',
    id: stream.pid,
    publicName: '',
    codec,
    width,
    height,
    framerateConf: 0,
    config,
    codecString,
  };
  const packets = units.map((unit, index) => ({
    track,
    pts: unit.pts - first,
    dts: unit.dts - first,
    duration: durationOf(units, index),
    keyframe: isKeyframe(codec, unit.data),
    data: unit.data,
  }));
  return { track, packets };
}

function durationOf(units: readonly TsPes[], index: number): number {
  const at = Math.min(index, units.length - 2);
  return units[at + 1]!.dts - units[at]!.dts;
}

function audioPart(stream: TsStream, first: number): { track: AudioTrack; packets: Packet[] } {
  const [head] = [...adtsFrames(stream.pes[0]!.data)];
  const config = configOfAdts(head!);
  const { sampleRate, channels, codecString, samplesPerFrame } = describeAudio(AudioCodec.AAC, config);
  const track: AudioTrack = {
    ...BASE,
    type: 'audio',
    id: stream.pid,
    publicName: '',
    codec: AudioCodec.AAC,
    sampleRate,
    channels,
    config,
    codecString,
  };
  const duration = (samplesPerFrame * 90_000) / sampleRate;
  const packets = stream.pes.flatMap((pes) =>
    [...adtsFrames(pes.data)].map((frame, index): Packet => {
      const dts = pes.pts - first + index * duration;
      const data = pes.data.subarray(frame.offset + frame.headerLength, frame.offset + frame.frameLength);
      return { track, pts: dts, dts, duration, keyframe: true, data };
    }),
  );
  return { track, packets };
}
