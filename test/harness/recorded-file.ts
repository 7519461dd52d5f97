/** A file that is published unchanged, and the packets of a recording of it. */
import { execFileSync } from 'node:child_process';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';

const ENCODE = [
  '-c:v',
  'libx264',
  '-preset',
  'ultrafast',
  '-pix_fmt',
  'yuv420p',
  '-bf',
  '2',
  '-g',
  '30',
  '-sc_threshold',
  '0',
  '-threads',
  '1',
];

/** Frames of `encodeSource` that a kill may lose of the data that the server had read: 0.4 s, a fragment, and the frame that ends it. */
export const MAX_LOST = { video: 0.4 * 30 + 1, audio: Math.floor((0.4 * 48_000) / 1024) + 1 } as const;
/** For data that the encoder had sent: a tenth of a second more, the time that its socket may rest. */
export const MAX_LOST_AT_REST = { video: 0.5 * 30 + 1, audio: Math.floor((0.5 * 48_000) / 1024) + 1 } as const;

/** Encodes `seconds` of video (30 frames a second, B-frames, a keyframe each second) and a tone into the FLV file `path`. */
export function encodeSource(path: string, seconds: number): void {
  const video = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30'];
  const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
  const audio = ['-c:a', 'aac', '-b:a', '96k'];
  execFileSync(requireProgram('ffmpeg'), [
    '-v',
    'error',
    '-y',
    ...video,
    ...tone,
    ...ENCODE,
    ...audio,
    '-t',
    `${seconds}`,
    '-f',
    'flv',
    path,
  ]);
}

/** Sends the packets of `path` in real time. The caller stops it. */
export function publishFile(path: string, url: string): Child {
  const arguments_ = ['-v', 'error', '-nostdin', '-re', '-i', path, '-c', 'copy', '-f', 'flv', '-flvflags', 'no_duration_filesize', url];
  return new Child(requireProgram('ffmpeg'), arguments_, { name: `ffmpeg ${url}` });
}

export interface FilePacket {
  /** Presentation time, seconds. */
  readonly time: number;
  readonly hash: string;
}

export interface FilePackets {
  readonly video: readonly FilePacket[];
  readonly audio: readonly FilePacket[];
}

/** Packets of a media file in order of presentation. Throws the errors of ffprobe. */
export function packetsOf(path: string): FilePackets {
  const show = ['-show_packets', '-show_data_hash', 'md5', '-show_entries', 'packet=codec_type,pts_time,data_hash'];
  const child = execFileSync(requireProgram('ffprobe'), ['-v', 'error', '-of', 'json', ...show, path], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const { packets } = JSON.parse(child) as { packets: { codec_type: string; pts_time: string; data_hash: string }[] };
  const of = (type: string): FilePacket[] =>
    packets
      .filter((packet) => packet.codec_type === type)
      .map((packet) => ({ time: Number(packet.pts_time), hash: packet.data_hash }))
      .sort((a, b) => a.time - b.time);
  return { video: of('video'), audio: of('audio') };
}

/** Decodes the whole file; throws when the decoder complains. Returns the number of frames. */
export function decodedFrames(path: string): number {
  const arguments_ = ['-v', 'error', '-xerror', '-nostdin', '-i', path, '-progress', 'pipe:1', '-f', 'null', '-'];
  const progress = execFileSync(requireProgram('ffmpeg'), arguments_, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return Number([...progress.matchAll(/^frame=\s*(\d+)$/gm)].at(-1)?.[1] ?? 0);
}
