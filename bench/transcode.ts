/**
 * The cost of transcoding: CPU against ffmpeg with the same output, latency against the encoder alone, memory, and the number of
 * simultaneous ladders.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { getFFmpegInfo } from 'node-av/lib';
import { TranscodeLab, type TranscodeRun } from '../test/fakes/transcode-run.ts';
import { until } from '../test/harness/poll.ts';
import { encoderOf, ffmpegArguments, ffmpegCost, ffmpegEncoder, ffmpegVersion } from './lib/ffmpeg-ladder.ts';
import { type AudioRung, encodesOf, judge, type Ladder, type Media, PacedRun, type Rung, readMedia } from './lib/ladder.ts';
import { compareQuality, type Likeness } from './lib/ladder-quality.ts';
import { median, percentile } from './lib/measure.ts';
import { cpuTime, memory } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { SOURCE_FPS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const CPU_TARGET = 1;
/** Factor up to which a loss of quality counts as equal. */
const QUALITY_TARGET = 1.03;
const OPUS: AudioRung = { id: 20, codec: 'opus', bitrate: 96_000 };
const HD: Rung = { id: 10, width: 1280, height: 720, bitrate: 2_000_000 };
const MIDDLE: Rung = { id: 11, width: 640, height: 360, bitrate: 700_000 };
const SMALL: Rung = { id: 12, width: 320, height: 180, bitrate: 250_000 };
/** The ladders compared with ffmpeg; the source is 720p30 with AAC. */
const LADDERS: readonly { readonly name: string; readonly ladder: Ladder }[] = [
  { name: '360p + 180p + Opus', ladder: { rungs: [MIDDLE, SMALL], audios: [OPUS] } },
  { name: '720p + 360p + 180p + Opus', ladder: { rungs: [HD, MIDDLE, SMALL], audios: [OPUS] } },
];
const SMALL_SOURCE = { width: 640, height: 360, kbps: 800 };
const SMALL_LADDER: Ladder = {
  rungs: [
    { id: 10, width: 640, height: 360, bitrate: 600_000 },
    { id: 11, width: 320, height: 180, bitrate: 200_000 },
  ],
  audios: [{ id: 12, codec: 'opus', bitrate: 64_000 }],
};
/** The encode whose latency is reported. */
const TIMED: Ladder = { rungs: [{ id: 10, width: 640, height: 360, bitrate: 700_000 }], audios: [] };
/** Frames before the measurement: the process and its caches are cold. */
const WARM_UP = SOURCE_FPS;
/** A ladder that is a second late at the end, and was not before, will soon drop its first frames, at 5 s. */
const LATE_FRAMES = SOURCE_FPS;
const MIN_TRIAL_SECONDS = 8;
const MAX_LADDERS = 64;

interface Cost {
  /** CPU ms. */
  readonly process: number;
  readonly server: number;
  readonly memoryMb: number;
  /** Version of the encoder in the first rung. */
  readonly encoder: string;
}

/** Encodes the ladder as fast as possible; the start of the process does not count. */
async function transcode(ladder: Ladder, media: Media, seconds: number): Promise<Cost> {
  const lab = new TranscodeLab();
  try {
    const pid = await processOf(lab);
    const before = cpuTime(pid);
    const server = process.cpuUsage();
    const run = lab.open(encodesOf(ladder), [media.video, media.audio]);
    await run.feed(media.packets);
    await finished(run, ladder, seconds);
    const used = process.cpuUsage(server);
    const cost = {
      process: cpuTime(pid) - before,
      server: (used.user + used.system) / 1000,
      memoryMb: memory(pid).proportional,
      encoder: encoderOf(run.made(ladder.rungs[0]?.id ?? 0).packets[0]?.data),
    };
    run.session.close();
    judge(run, ladder, seconds);
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

async function finished(run: TranscodeRun, { rungs, audios }: Ladder, seconds: number): Promise<void> {
  for (const { id } of rungs) await run.makes(id, seconds * SOURCE_FPS - 1);
  for (const { id } of audios) await until('audio is complete', () => run.end(id) > seconds - 0.2);
}

/** Ms per frame in real time: through the transcoder, and in the encoder alone. */
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

/** Whether `ladders` ladders keep up in real time. */
async function holds(ladders: number, media: Media, seconds: number): Promise<boolean> {
  // The machine must be the limit, not the setting.
  const lab = new TranscodeLab({ maxProcesses: MAX_LADDERS });
  try {
    const names = Array.from({ length: ladders }, (_, index) => `stream-${index}`);
    const runs = names.map((stream) => new PacedRun(lab, encodesOf(SMALL_LADDER), [media.video, media.audio], { stream }));
    // Small jobs share processes, so there are fewer processes than ladders.
    await until('all processes run', () => runningProcesses(lab) === lab.supervisor.pids.length, { deadlineMs: 120_000 });
    const startAt = performance.now();
    await Promise.all(runs.map((run) => run.play(media.packets, startAt)));
    const late = runs.some((run) => run.waiting() > LATE_FRAMES);
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

/** The largest number of ladders that keeps up, searched from `guess` on. */
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

/** CPU ms per second of a small ladder in real time. */
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

interface Compared {
  readonly name: string;
  readonly costs: readonly Cost[];
  readonly baselines: readonly number[];
}

/** Compares our transcoder and ffmpeg in turns. */
async function compare({ name, ladder }: (typeof LADDERS)[number], file: string, media: Media, options: BenchOptions): Promise<Compared> {
  const costs: Cost[] = [];
  const baselines: number[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    costs.push(await transcode(ladder, media, options.seconds));
    baselines.push(await ffmpegCost(ladder, file, options.seconds));
  }
  return { name, costs, baselines };
}

function figuresOf({ name, costs, baselines }: Compared, seconds: number): Figure[] {
  const perSecond = (values: readonly number[]): number => median(values) / seconds;
  const baseline = perSecond(baselines);
  return [
    { name: `CPU of ${name}, transcoder process`, value: perSecond(costs.map((cost) => cost.process)), unit: 'ms/s', baseline },
    {
      name: `CPU of ${name}, whole server`,
      value: perSecond(costs.map((cost) => cost.process + cost.server)),
      unit: 'ms/s',
      baseline,
      target: CPU_TARGET,
      remark: costs.map((cost, round) => ((cost.process + cost.server) / (baselines[round] ?? 0)).toFixed(2)).join(' '),
    },
    { name: `memory of the process for ${name}`, value: median(costs.map((cost) => cost.memoryMb)), unit: 'MB' },
  ];
}

/** Loss of quality as 1 minus SSIM, so that a smaller figure is better, as everywhere. */
function qualityFigure({ rung, ours, theirs, bytes }: Likeness): Figure {
  return {
    name: `loss of quality at ${rung.height}p (1 − SSIM)`,
    value: (1 - ours) * 1000,
    unit: '‰',
    baseline: (1 - theirs) * 1000,
    target: QUALITY_TARGET,
    remark: `with ${bytes.toFixed(3)} times the bytes`,
  };
}

export async function run(options: BenchOptions): Promise<Report> {
  const file = await sourceFile();
  const seconds = Math.min(Math.floor(options.seconds), SOURCE_SECONDS);
  const media = readMedia(file, seconds);
  const compared: Compared[] = [];
  for (const entry of LADDERS) compared.push(await compare(entry, file, media, { ...options, seconds }));
  const [, whole] = LADDERS;
  const likenesses = whole === undefined ? [] : await compareQuality(whole.ladder, file, media, seconds);
  const { through, alone } = await latencies(file, media, seconds);
  const trial = Math.min(Math.max(seconds, MIN_TRIAL_SECONDS), SOURCE_SECONDS);
  const small = readMedia(await sourceFile(SMALL_SOURCE), trial);
  const each = await smallLadderCost(small, trial);
  const ladders = await mostLadders(Math.floor((availableParallelism() * 1000 * 0.9) / each), small, trial);
  const latency = (percent: number): Figure => ({
    name: `latency through decoder, scaler and encoder, p${percent}`,
    value: percentile(through, percent),
    unit: 'ms',
    baseline: percentile(alone, percent),
  });
  const ours = compared[0]?.costs[0]?.encoder ?? '';
  return {
    bench: 'transcode',
    figures: [
      ...compared.flatMap((entry) => figuresOf(entry, seconds)),
      ...likenesses.map(qualityFigure),
      latency(50),
      latency(99),
      { name: 'CPU of a 360p ladder', value: each, unit: 'ms/s' },
      { name: `360p ladders on ${availableParallelism()} cores`, value: ladders, unit: '' },
    ],
    notes: [
      'the source is 720p30 H.264 + AAC; video is x264 faster, zerolatency, baseline; as fast as it goes',
      `the transcoder is FFmpeg ${getFFmpegInfo().version} with ${ours}`,
      `the baseline is ffmpeg ${ffmpegVersion()} with ${ffmpegEncoder()}; BENCH_FFMPEG names another. Neither start counts`,
      `ffmpeg is run so: ${ffmpegArguments(LADDERS[0]?.ladder ?? TIMED, 'SOURCE', seconds).join(' ')}`,
      'the whole server feeds and collects in the same process as the bench, which polls and probes; remarks are the ratios of the rounds',
      'quality is SSIM against the source in the size of the rendition, over all frames; keyframes are at the same frames in both',
      'latency is of 720p30 → 360p at its pace; its baseline is the encoder alone, given scaled frames at that pace',
      `a 360p ladder is 360p30 + AAC → 360p + 180p + Opus; they hold when none drops or is a second late after ${trial} s`,
    ],
  };
}
