/** Real media for tests, encoded by Debian's ffmpeg and demuxed by mp4box. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFile, MP4BoxBuffer, type Track } from 'mp4box';
import { buildOpusHead } from '../../src/codecs/opus/opus-head.ts';
import { AudioCodec, VideoCodec } from '../../src/media/codec.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';
import { audioTrack, interleave, videoTrack } from '../fakes/synthetic-media.ts';

export interface EncodedMedia {
  readonly video: VideoTrack | null;
  readonly audio: AudioTrack | null;
  /** The encoded tracks, video first. */
  readonly tracks: readonly (VideoTrack | AudioTrack)[];
  /** In order of decoding time. */
  readonly packets: readonly Packet[];
}

/** Media to encode. */
export interface EncodeRequest {
  readonly seconds: number;
  /** ffmpeg's encoder for the test pattern; null: no video. */
  readonly video: string | null;
  /** ffmpeg's encoder for the tone; null: no audio. */
  readonly audio: string | null;
  /** `WIDTHxHEIGHT`; default: 320x180. */
  readonly size?: string;
  /** Frames per second; default: 30. */
  readonly rate?: number;
  /** Frames between keyframes; default: 60. */
  readonly gop?: number;
  readonly channels?: number;
  /** Further options of the encoders. */
  readonly extra?: readonly string[];
}

/** Runs ffmpeg and demuxes its output. The timebase of video is 1/90000 s, of audio 1/48000 s; both begin near 0. */
export function encodeMedia(request: EncodeRequest): EncodedMedia {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  try {
    const file = join(directory, 'media.mp4');
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...inputs(request), '-t', `${request.seconds}`, '-strict', '-2', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return takeApart(readFileSync(file));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Sources and encoders of a command line. */
function inputs({ video, audio, size = '320x180', rate = 30, gop = 60, channels = 2, extra = [] }: EncodeRequest): string[] {
  const sources: string[] = [];
  const encoders: string[] = [];
  if (video !== null) {
    sources.push('-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${rate}`);
    encoders.push('-c:v', video, '-g', `${gop}`, '-pix_fmt', 'yuv420p', '-video_track_timescale', '90000');
    // Two thirds of the work of the default, with B-frames and CABAC like it.
    if (video === 'libx264' && !extra.includes('-preset')) encoders.push('-preset', 'veryfast');
    if (video === 'libx265') {
      encoders.push('-tag:v', 'hvc1', '-x265-params', `log-level=none:keyint=${gop}:min-keyint=${gop}:open-gop=0`);
    }
  }
  if (audio !== null) {
    sources.push('-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000');
    encoders.push('-c:a', audio, '-b:a', '96k', '-ac', `${channels}`);
  }
  return [...sources, ...encoders, ...extra];
}

const VIDEO_CONFIGS = { avcC: VideoCodec.H264, hvcC: VideoCodec.H265, av1C: VideoCodec.AV1, vpcC: VideoCodec.VP9 } as const;

function takeApart(bytes: Buffer): EncodedMedia {
  const file = createFile();
  let video: VideoTrack | null = null;
  let audio: AudioTrack | null = null;
  const packets: Packet[][] = [];
  file.onReady = (info) => {
    for (const media of info.tracks) {
      const timebase = { num: 1, den: media.timescale };
      const track =
        media.type === 'video'
          ? videoTrack({ timebase, ...pictureSize(media), codecString: media.codec, ...videoConfig(bytes) })
          : audioTrack({ timebase, codecString: media.codec, ...audioConfig(bytes) });
      if (track.type === 'video') video = track;
      else audio = track;
      const samples = file.getTrackSamplesInfo(media.id);
      packets.push(
        samples.map((sample) => ({
          track,
          pts: sample.cts,
          dts: sample.dts,
          duration: sample.duration,
          keyframe: track.type === 'audio' || sample.is_sync,
          data: new Uint8Array(bytes.subarray(sample.offset, sample.offset + sample.size)),
        })),
      );
    }
  };
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0));
  file.flush();
  return { video, audio, tracks: [video, audio].filter((track) => track !== null), packets: interleave(...packets) };
}

function pictureSize({ video }: Track): { width: number; height: number } {
  if (video === undefined) throw new Error('a video track without frame size');
  return { width: video.width, height: video.height };
}

/** Content of the first box of `type` anywhere in the file, because sample entries are not plain containers. */
function boxBody(bytes: Buffer, type: string): Uint8Array | null {
  const at = bytes.indexOf(type, bytes.indexOf('stsd'));
  return at < 0 ? null : new Uint8Array(bytes.subarray(at + 4, at - 4 + bytes.readUInt32BE(at - 4)));
}

function videoConfig(bytes: Buffer): { codec: VideoCodec; config: Uint8Array } {
  for (const [type, codec] of Object.entries(VIDEO_CONFIGS)) {
    const body = boxBody(bytes, type);
    // vpcC is a full box; its version and flags are not part of the record.
    if (body !== null) return { codec, config: type === 'vpcC' ? body.subarray(4) : body };
  }
  throw new Error('no video configuration in the file');
}

function audioConfig(bytes: Buffer): { codec: AudioCodec; config: Uint8Array | null } {
  const opus = boxBody(bytes, 'dOps');
  if (opus !== null) return { codec: AudioCodec.OPUS, config: opusHead(opus) };
  const esds = boxBody(bytes, 'esds');
  if (esds === null) throw new Error('no audio configuration in the file');
  // The DecoderSpecificInfo descriptor (tag 5, size in four bytes as ffmpeg writes it) holds the AudioSpecificConfig.
  const at = Buffer.from(esds).indexOf(Buffer.from([0x05, 0x80, 0x80, 0x80]));
  if (at < 0) return { codec: AudioCodec.MP3, config: null };
  return { codec: AudioCodec.AAC, config: esds.slice(at + 5, at + 5 + (esds[at + 4] ?? 0)) };
}

/** Converts dOps back to OpusHead (RFC 7845 §5.1): the same fields in the other byte order. */
function opusHead(dops: Uint8Array): Uint8Array {
  const view = new DataView(dops.buffer, dops.byteOffset, dops.byteLength);
  return buildOpusHead({ channels: view.getUint8(1), preSkip: view.getUint16(2), inputSampleRate: view.getUint32(4) });
}
