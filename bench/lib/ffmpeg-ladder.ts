/** The same ladder encoded by ffmpeg, as the yardstick of transcoding. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { ENCODERS } from '../../src/transcoder/encoder-catalogue.ts';
import { tuneVideo } from '../../src/transcoder/process/encoder-tuning.ts';
import { videoConfig } from '../../test/fakes/transcode-run.ts';
import type { Ladder, Rung } from './ladder.ts';
import { cpuTime } from './process-usage.ts';
import { SOURCE_FPS } from './source.ts';

/** The ffmpeg for comparison: the system's, unless BENCH_FFMPEG names another. */
export function ffmpegProgram(): string {
  const named = process.env['BENCH_FFMPEG'] ?? '';
  return named === '' ? requireProgram('ffmpeg') : named;
}

export function ffmpegVersion(): string {
  return /version (\S+)/.exec(execFileSync(ffmpegProgram(), ['-version'], { encoding: 'utf8' }))?.[1] ?? 'unknown';
}

/** The version that x264 writes into its first frame, e.g. `x264 core 164 r3095 baee400`. */
export function encoderOf(frame: Uint8Array | undefined): string {
  const text = Buffer.from(frame ?? []).toString('latin1');
  return /x264 - core (\d+ [^-]*)/.exec(text)?.[1]?.trim().replace(/^/, 'x264 core ') ?? 'an encoder that does not name itself';
}

/** The x264 version of that ffmpeg. */
export function ffmpegEncoder(): string {
  const args = ['-v', 'error', '-f', 'lavfi', '-i', 'color=size=64x64', '-frames:v', '1', '-c:v', 'libx264', '-f', 'h264', '-'];
  return encoderOf(execFileSync(ffmpegProgram(), args));
}

/** The sizes, rates, threads and x264 settings that the transcoder uses for `ladder`. `fileOf` returns the path of a rung's MPEG-TS. */
export function ffmpegArguments(
  { rungs, audios }: Ladder,
  file: string,
  seconds: number,
  fileOf: (rung: Rung) => string = () => '/dev/null',
): string[] {
  const x264 = ENCODERS.find(({ name }) => name === 'libx264');
  if (x264 === undefined) throw new Error('the catalogue has no x264');
  const outputs = rungs.flatMap((rung, index) => {
    const { width, height, bitrate } = rung;
    const { threads, options, bufferBits } = tuneVideo(x264, videoConfig(), bitrate, width * height, availableParallelism());
    const settings = Object.entries(options).flatMap(([key, value]) => [`-${key}`, value]);
    const rate = ['-b:v', `${bitrate}`, '-maxrate', `${bitrate}`, '-bufsize', `${bufferBits}`];
    const gop = ['-g', `${SOURCE_FPS}`, '-keyint_min', `${SOURCE_FPS}`, '-bf', '0'];
    return ['-map', `[v${index}]`, '-c:v', 'libx264', '-threads', `${threads}`, ...settings, ...rate, ...gop, '-f', 'mpegts', fileOf(rung)];
  });
  const scales = rungs.map(({ width, height }, index) => `[s${index}]scale=${width}:${height}:flags=bicubic[v${index}]`);
  const graph = `[0:v]split=${rungs.length}${rungs.map((_, index) => `[s${index}]`).join('')};${scales.join(';')}`;
  const audio = audios.flatMap(({ codec, bitrate }) => {
    const encoder = codec === 'opus' ? 'libopus' : codec;
    return ['-map', '0:a', '-c:a', encoder, '-b:a', `${bitrate}`, '-f', 'mpegts', '/dev/null'];
  });
  const input = ['-v', 'error', '-nostdin', '-y', '-thread_type', 'slice', '-threads', '2', '-t', `${seconds}`, '-i', file];
  return [...input, '-filter_complex', graph, ...outputs, ...audio];
}

/** CPU ms of ffmpeg for `ladder`, without its start. */
export async function ffmpegCost(ladder: Ladder, file: string, seconds: number): Promise<number> {
  return (await wholeCost(ladder, file, seconds)) - (await wholeCost(ladder, file, 1 / SOURCE_FPS));
}

async function wholeCost(ladder: Ladder, file: string, seconds: number): Promise<number> {
  const before = childrenCpu();
  const child = spawn(ffmpegProgram(), ffmpegArguments(ladder, file, seconds), { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}`);
  return childrenCpu() - before;
}

/** CPU ms of all children, including ended children. */
function childrenCpu(): number {
  const { user, system } = process.cpuUsage();
  return cpuTime(process.pid) - (user + system) / 1000;
}
