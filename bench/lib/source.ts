/** The media that benches publish: made once by ffmpeg, then only read. */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from '../../test/harness/child.ts';
import { RESULTS_FOLDER } from './report.ts';

export { type FlvTag, isAudioFrame, isVideoFrame, readFlv } from '../../test/support/flv.ts';

export const SOURCE_FPS = 30;
export const SOURCE_GOP_SECONDS = 2;
export const SOURCE_SECONDS = 20;
const AUDIO_KBPS = 128;

/** Format of a source. */
export interface SourceForm {
  readonly width: number;
  readonly height: number;
  readonly kbps: number;
  /** Default: `SOURCE_FPS`. */
  readonly fps?: number;
}

const HD: SourceForm = { width: 1280, height: 720, kbps: 2500 };

/** H.264 at 30 fps (default: 720p at 2.5 Mbit/s) with AAC, as a file of 20 s; noise keeps the encoder at its bitrate. */
export async function sourceFile({ width, height, kbps, fps = SOURCE_FPS }: SourceForm = HD): Promise<string> {
  const file = path.join(RESULTS_FOLDER, `source-${height}p${fps}-${kbps}k.flv`);
  if (existsSync(file)) return file;
  mkdirSync(RESULTS_FOLDER, { recursive: true });
  const unfinished = `${file}.${process.pid}.part`;
  const video = `testsrc2=size=${width}x${height}:rate=${fps}:duration=${SOURCE_SECONDS},noise=alls=12:allf=t`;
  const rate = ['-b:v', `${kbps}k`, '-minrate', `${kbps}k`, '-maxrate', `${kbps}k`, '-bufsize', `${kbps}k`];
  const gop = `${fps * SOURCE_GOP_SECONDS}`;
  const child = new Child(requireProgram('ffmpeg'), [
    ...['-v', 'error', '-nostdin', '-y'],
    ...['-f', 'lavfi', '-i', video, '-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=48000:duration=${SOURCE_SECONDS}`],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-pix_fmt', 'yuv420p', '-g', gop, '-keyint_min', gop, '-sc_threshold', '0'],
    ...rate,
    ...['-c:a', 'aac', '-b:a', `${AUDIO_KBPS}k`, '-ac', '2', '-f', 'flv', unfinished],
  ]);
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`ffmpeg could not make the source: ${child.stderr}`);
  renameSync(unfinished, file);
  return file;
}

/** The frames of a source as MP4, in a loop for `seconds`. */
export async function movieFile(source: string, seconds: number): Promise<string> {
  const file = `${source.slice(0, -path.extname(source).length)}-${seconds}s.mp4`;
  if (existsSync(file)) return file;
  const unfinished = `${file}.${process.pid}.part`;
  const again = ['-stream_loop', `${Math.ceil(seconds / SOURCE_SECONDS) - 1}`, '-i', source, '-t', `${seconds}`];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-y', ...again, '-c', 'copy', '-f', 'mp4', unfinished]);
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`ffmpeg could not make ${file}: ${child.stderr}`);
  renameSync(unfinished, file);
  return file;
}

/** Sends the source in a loop in real time without encoding. ffmpeg's CPU is not counted as the server's. */
export function publishSource(source: string, url: string): Child {
  const args = ['-v', 'error', '-nostdin', '-re', '-stream_loop', '-1', '-i', source, '-c', 'copy', '-f', 'flv', url];
  return new Child(requireProgram('ffmpeg'), args, { name: `ffmpeg ${url}` });
}
