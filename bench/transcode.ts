/** What transcoding costs: CPU against ffmpeg making the same, latency against the encoder alone, memory, and how many ladders fit. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { requireProgram } from '../scripts/ensure-tools.ts';
import { ENCODERS } from '../src/transcoder/encoder-catalogue.ts';
import { tuneVideo } from '../src/transcoder/process/encoder-tuning.ts';
import { TranscodeLab, type TranscodeRun, videoConfig } from '../test/fakes/transcode-run.ts';
import { until } from '../test/harness/poll.ts';
import { encodesOf, judge, type Ladder, type Media, PacedRun, readMedia } from './lib/ladder.ts';
import { median, percentile } from './lib/measure.ts';
import { cpuTime, memory } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { SOURCE_FPS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const CPU_TARGET = 1.05;
const LADDER: Ladder = {
  rungs: [
    { id: 10, width: 1280, height: 720, bitrate: 2_000_000 },
    { id: 11, width: 640, height: 360, bitrate: 700_000 },
  ],
  sounds: [
    { id: 12, codec: 'aac', bitrate: 128_000 },
    { id: 13, codec: 'opus', bitrate: 96_000 },
  ],
};
const SMALL_SOURCE = { width: 640, height: 360, kbps: 800 };
const SMALL_LADDER: Ladder = {
  rungs: [
    { id: 10, width: 640, height: 360, bitrate: 600_000 },
    { id: 11, width: 320, height: 180, bitrate: 200_000 },
  ],
  sounds: [{ id: 12, codec: 'opus', bitrate: 64_000 }],
};
/** The encode whose latency is told. */
const TIMED: Ladder = { rungs: [{ id: 10, width: 640, height: 360, bitrate: 700_000 }], sounds: [] };
/** Frames that do not count: the process and its caches are cold. */
const WARM_UP = SOURCE_FPS;
/** A ladder that is a second late at the end and grows no earlier is on its way to its first drop, 5 s behind. */
const LATE_PICTURES = SOURCE_FPS;
const MIN_TRIAL_SECONDS = 8;
const MAX_LADDERS = 64;
/** Another ffmpeg to compare with than the system's. */
const FFMPEG = process.env['BENCH_FFMPEG'] ?? '';

interface Cost {
  /** CPU ms. */
  readonly process: number;
  readonly server: number;
  readonly memoryMb: number;
}

/** The ladder as fast as it goes; the start of the process does not count. */
async function transcode(media: Media, seconds: number): Promise<Cost> {
  const lab = new TranscodeLab();
  try {
    const pid = await processOf(lab);
    const before = cpuTime(pid);
    const server = process.cpuUsage();
    const run = lab.open(encodesOf(LADDER), [media.video, media.audio]);
    await run.feed(media.packets);
    await finished(run, LADDER, seconds);
    const used = process.cpuUsage(server);
    const cost = { process: cpuTime(pid) - before, server: (used.user + used.system) / 1000, memoryMb: memory(pid).proportional };
    run.session.close();
    judge(run, LADDER, seconds);
    return cost;
  } finally {
    await lab.close();
  }
}

/** Starts the process for the first job. */
async function processOf(lab: TranscodeLab): Promise<number> {
  await lab.supervisor.codecModules();
  const [pid] = lab.supervisor.pids;
  if (pid === undefined) throw new Error('no transcoder process runs');
  return pid;
}

async function finished(run: TranscodeRun, { rungs, sounds }: Ladder, seconds: number): Promise<void> {
  for (const { id } of rungs) await run.makes(id, seconds * SOURCE_FPS - 1);
  for (const { id } of sounds) await until('audio is complete', () => run.end(id) > seconds - 0.2);
}

/** CPU ms of ffmpeg for the same ladder: same sizes, rates, threads and x264 settings. Its start does not count either. */
async function ffmpeg(file: string, seconds: number): Promise<number> {
  const whole = await ffmpegCpu(file, seconds);
  return whole - (await ffmpegCpu(file, 1 / SOURCE_FPS));
}

async function ffmpegCpu(file: string, seconds: number): Promise<number> {
  const x264 = ENCODERS.find(({ name }) => name === 'libx264');
  if (x264 === undefined) throw new Error('the catalogue has no x264');
  const { rungs, sounds } = LADDER;
  const outputs = rungs.flatMap(({ width, height, bitrate }, index) => {
    const { threads, options, bufferBits } = tuneVideo(x264, videoConfig(), bitrate, width * height, availableParallelism());
    const settings = Object.entries(options).flatMap(([key, value]) => [`-${key}`, value]);
    const rate = ['-b:v', `${bitrate}`, '-maxrate', `${bitrate}`, '-bufsize', `${bufferBits}`];
    const gop = ['-g', `${SOURCE_FPS}`, '-keyint_min', `${SOURCE_FPS}`, '-bf', '0'];
    return ['-map', `[v${index}]`, '-c:v', 'libx264', '-threads', `${threads}`, ...settings, ...rate, ...gop, '-f', 'mpegts', '/dev/null'];
  });
  const scales = rungs.map(({ width, height }, index) => `[s${index}]scale=${width}:${height}:flags=bicubic[v${index}]`);
  const graph = `[0:v]split=${rungs.length}${rungs.map((_, index) => `[s${index}]`).join('')};${scales.join(';')}`;
  const sound = sounds.flatMap(({ codec, bitrate }) => {
    const encoder = codec === 'opus' ? 'libopus' : codec;
    return ['-map', '0:a', '-c:a', encoder, '-b:a', `${bitrate}`, '-f', 'mpegts', '/dev/null'];
  });
  const args = ['-v', 'error', '-nostdin', '-y', '-thread_type', 'slice', '-threads', '2', '-t', `${seconds}`, '-i', file];
  const before = childrenCpu();
  const child = spawn(ffmpegProgram(), [...args, '-filter_complex', graph, ...outputs, ...sound], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}`);
  return childrenCpu() - before;
}

function ffmpegProgram(): string {
  return FFMPEG === '' ? requireProgram('ffmpeg') : FFMPEG;
}

function ffmpegVersion(): string {
  return /version (\S+)/.exec(execFileSync(ffmpegProgram(), ['-version'], { encoding: 'utf8' }))?.[1] ?? 'unknown';
}

/** CPU ms of all children, those that have ended included. */
function childrenCpu(): number {
  const { user, system } = process.cpuUsage();
  return cpuTime(process.pid) - (user + system) / 1000;
}

/** Ms for each frame at its pace: through the transcoder, and in the encoder alone. */
async function latencies(file: string, media: Media, seconds: number): Promise<{ through: readonly number[]; alone: readonly number[] }> {
  const lab = new TranscodeLab();
  let through: readonly number[];
  try {
    await processOf(lab);
    const run = new PacedRun(lab, encodesOf(TIMED), [media.video, media.audio], {});
    await run.play(media.packets, performance.now());
    await finished(run, TIMED, seconds);
    judge(run, TIMED, seconds);
    through = run.delays.slice(WARM_UP);
  } finally {
    await lab.close();
  }
  const [rung] = TIMED.rungs;
  const program = fileURLToPath(new URL('./lib/encoder-alone.ts', import.meta.url));
  const args = [file, seconds, rung?.width, rung?.height, rung?.bitrate].map(String);
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the encoder alone ended with ${code}`);
  return { through, alone: (JSON.parse(text) as number[]).slice(WARM_UP) };
}

/** Whether so many ladders keep up in real time. */
async function holds(ladders: number, media: Media, seconds: number): Promise<boolean> {
  // The machine is to be the limit, not the setting.
  const lab = new TranscodeLab({ maxProcesses: MAX_LADDERS });
  try {
    const names = Array.from({ length: ladders }, (_, index) => `stream-${index}`);
    const runs = names.map((stream) => new PacedRun(lab, encodesOf(SMALL_LADDER), [media.video, media.audio], { stream }));
    // Small jobs share processes, so there are fewer of these than of ladders.
    await until('all processes run', () => runningProcesses(lab) === lab.supervisor.pids.length, { deadlineMs: 120_000 });
    const startAt = performance.now();
    await Promise.all(runs.map((run) => run.play(media.packets, startAt)));
    const late = runs.some((run) => run.waiting() > LATE_PICTURES);
    const dropped = lab.queues.statuses().some(({ urn, drop }) => urn.includes(':p=trs:r=decoder_') && drop > 0);
    if (late || dropped) return false;
    for (const run of runs) await finished(run, SMALL_LADDER, seconds);
    const [first] = runs;
    if (first !== undefined) judge(first, SMALL_LADDER, seconds);
    return true;
  } finally {
    await lab.close();
  }
}

function runningProcesses(lab: TranscodeLab): number {
  return lab.logger.lines.filter(({ message }) => /^transcoder process \d+ runs$/.test(message)).length;
}

/** The most ladders that hold, found from `guess` on. */
async function mostLadders(guess: number, media: Media, seconds: number): Promise<number> {
  let count = Math.min(Math.max(1, guess), MAX_LADDERS);
  if (await holds(count, media, seconds)) {
    while (count < MAX_LADDERS && (await holds(count + 1, media, seconds))) count += 1;
    return count;
  }
  do count -= 1;
  while (count > 0 && !(await holds(count, media, seconds)));
  return count;
}

/** CPU ms that a small ladder needs for a second, from one at its pace. */
async function smallLadderCost(media: Media, seconds: number): Promise<number> {
  const lab = new TranscodeLab();
  try {
    const pid = await processOf(lab);
    const before = cpuTime(pid);
    const run = new PacedRun(lab, encodesOf(SMALL_LADDER), [media.video, media.audio], {});
    await run.play(media.packets, performance.now());
    return (cpuTime(pid) - before) / seconds;
  } finally {
    await lab.close();
  }
}

export async function run(options: BenchOptions): Promise<Report> {
  const file = await sourceFile();
  const seconds = Math.min(Math.floor(options.seconds), SOURCE_SECONDS);
  const media = readMedia(file, seconds);
  const costs: Cost[] = [];
  const baselines: number[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    costs.push(await transcode(media, seconds));
    baselines.push(await ffmpeg(file, seconds));
  }
  const { through, alone } = await latencies(file, media, seconds);
  const trial = Math.min(Math.max(seconds, MIN_TRIAL_SECONDS), SOURCE_SECONDS);
  const small = readMedia(await sourceFile(SMALL_SOURCE), trial);
  const each = await smallLadderCost(small, trial);
  const ladders = await mostLadders(Math.floor((availableParallelism() * 1000 * 0.9) / each), small, trial);
  const perSecond = (values: readonly number[]): number => median(values) / seconds;
  const latency = (percent: number): Figure => ({
    name: `latency through decoder, scaler and encoder, p${percent}`,
    value: percentile(through, percent),
    unit: 'ms',
    baseline: percentile(alone, percent),
  });
  return {
    bench: 'transcode',
    figures: [
      {
        name: 'CPU of the transcoder process',
        value: perSecond(costs.map((cost) => cost.process)),
        unit: 'ms/s',
        baseline: perSecond(baselines),
        target: CPU_TARGET,
      },
      { name: 'CPU of the server beside it', value: perSecond(costs.map((cost) => cost.server)), unit: 'ms/s' },
      { name: 'memory of the process of a ladder', value: median(costs.map((cost) => cost.memoryMb)), unit: 'MB' },
      latency(50),
      latency(99),
      { name: 'CPU of a 360p ladder', value: each, unit: 'ms/s' },
      { name: `360p ladders on ${availableParallelism()} cores`, value: ladders, unit: '' },
    ],
    notes: [
      '720p30 H.264 + AAC → 720p + 360p H.264 (x264 faster, zerolatency, baseline) + AAC + Opus, as fast as it goes',
      `the baseline is ffmpeg ${ffmpegVersion()}; BENCH_FFMPEG names another. Neither start counts`,
      'the server feeds and collects in the same process as the bench, which polls and probes',
      'latency is of 720p30 → 360p at its pace; its baseline is the encoder alone, given scaled frames at that pace',
      `a 360p ladder is 360p30 + AAC → 360p + 180p + Opus; they hold when none drops or is a second late after ${trial} s`,
      ...costs.map(
        (cost, index) =>
          `round ${index}: ${(cost.process / seconds).toFixed(0)} against ${((baselines[index] ?? 0) / seconds).toFixed(0)} ms/s`,
      ),
    ],
  };
}
