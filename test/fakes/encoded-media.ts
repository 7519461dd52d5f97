/** Real media for tests: encoded by Debian's ffmpeg on the spot, taken apart with mp4box. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { AudioCodec, VideoCodec } from '../../src/media/codec.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';
import { audioTrack, interleave, videoTrack } from './synthetic-media.ts';

export interface EncodedMedia {
  readonly video: VideoTrack | null;
  readonly audio: AudioTrack | null;
  /** In the order of decoding times. */
  readonly packets: readonly Packet[];
}

const WIDTH = 320;
const HEIGHT = 180;

/** Encodes `seconds` of a test picture and a tone; names are ffmpeg's encoders, null for none. */
export function encodeMedia(options: {
  video: string | null;
  audio: string | null;
  seconds: number;
  extra?: readonly string[];
}): EncodedMedia {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-test-'));
  try {
    const file = join(directory, 'media.mp4');
    const inputs: string[] = [];
    if (options.video !== null) inputs.push('-f', 'lavfi', '-i', `testsrc2=size=${WIDTH}x${HEIGHT}:rate=30`);
    if (options.audio !== null) inputs.push('-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000');
    const encoders = [
      ...(options.video === null ? [] : ['-c:v', options.video, '-g', '60', '-pix_fmt', 'yuv420p', '-video_track_timescale', '90000']),
      ...(options.audio === null ? [] : ['-c:a', options.audio, '-b:a', '96k', '-ac', '2']),
      ...(options.video === 'libx265' ? ['-tag:v', 'hvc1', '-x265-params', 'log-level=none:keyint=60:min-keyint=60:open-gop=0'] : []),
      ...(options.extra ?? []),
    ];
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...inputs, ...encoders, '-t', String(options.seconds), '-strict', '-2', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return takeApart(readFileSync(file));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
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
          ? videoTrack({ timebase, width: WIDTH, height: HEIGHT, codecString: media.codec, ...videoConfig(bytes) })
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
  return { video, audio, packets: interleave(...packets) };
}

/** Body of the first box of `type` anywhere in the file: sample entries are no plain containers. */
function boxBody(bytes: Buffer, type: string): Uint8Array | null {
  const at = bytes.indexOf(type, bytes.indexOf('stsd'));
  return at < 0 ? null : new Uint8Array(bytes.subarray(at + 4, at - 4 + bytes.readUInt32BE(at - 4)));
}

function videoConfig(bytes: Buffer): { codec: VideoCodec; config: Uint8Array } {
  for (const [type, codec] of Object.entries(VIDEO_CONFIGS)) {
    const body = boxBody(bytes, type);
    // vpcC is a full box: version and flags are not part of the record.
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

/** dOps back to the OpusHead of RFC 7845 §5.1. */
function opusHead(dops: Uint8Array): Uint8Array {
  const view = new DataView(dops.buffer, dops.byteOffset, dops.byteLength);
  const head = new DataView(new ArrayBuffer(19));
  Buffer.from('OpusHead').forEach((byte, index) => {
    head.setUint8(index, byte);
  });
  head.setUint8(8, 1);
  head.setUint8(9, view.getUint8(1));
  head.setUint16(10, view.getUint16(2), true);
  head.setUint32(12, view.getUint32(4), true);
  head.setUint16(16, view.getUint16(8), true);
  head.setUint8(18, 0);
  return new Uint8Array(head.buffer);
}
