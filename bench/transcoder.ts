/** What a ladder costs: CPU of the transcoder process per stream second, against ffmpeg making the same with the same settings. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { requireProgram } from '../scripts/ensure-tools.ts';
import { describeAudio, describeVideo } from '../src/codecs/describe.ts';
import type { EncodeRequest } from '../src/core/transcoding.ts';
import { AudioCodec, VideoCodec } from '../src/media/codec.ts';
import type { Packet } from '../src/media/packet.ts';
import { MPEG_90K } from '../src/media/timebase.ts';
import type { AudioTrack, VideoTrack } from '../src/media/track.ts';
import { ENCODERS } from '../src/transcoder/encoder-catalogue.ts';
import { tuneVideo } from '../src/transcoder/encoder-tuning.ts';
import { until } from '../test/e2e/support/poll.ts';
import { audioTrack, videoTrack } from '../test/fakes/synthetic-media.ts';
import { audioConfig, TranscodeLab, type TranscodeRun, videoConfig } from '../test/fakes/transcode-run.ts';
import { decodeComplaints, ffprobe } from '../test/support/ffprobe.ts';
import { median } from './lib/measure.ts';
import { cpuTime, memory } from './lib/process-usage.ts';
import type { BenchOptions, Report } from './lib/report.ts';
import { isAudioFrame, isVideoFrame, readFlv, SOURCE_FPS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const CPU_TARGET = 1.05;
const LADDER = [
  { id: 10, width: 1280, height: 720, bitrate: 2_000_000 },
  { id: 11, width: 856, height: 480, bitrate: 1_000_000 },
  { id: 12, width: 428, height: 240, bitrate: 400_000 },
] as const;
const OPUS = 13;
const OPUS_BITRATE = 96_000;

interface Source {
  readonly video: VideoTrack;
  readonly audio: AudioTrack;
  readonly packets: readonly Packet[];
}

/** The first `seconds` of the source as the router would hand it on. */
function readSource(file: string, seconds: number): Source {
  const tags = readFlv(file).filter(({ timestamp }) => timestamp < seconds * 1000);
  const avcc = tags.find(({ type, data }) => type === 9 && data[1] === 0)?.data.subarray(5);
  const config = tags.find(({ type, data }) => type === 8 && data[1] === 0)?.data.subarray(2);
  if (avcc === undefined || config === undefined) throw new Error('the source has no configuration');
  const video = videoTrack({ id: 0, codec: VideoCodec.H264, config: avcc, ...pick(describeVideo(VideoCodec.H264, avcc)) });
  const { sampleRate, channels, codecString } = describeAudio(AudioCodec.AAC, config);
  const audio = audioTrack({ id: 1, config, sampleRate, channels, codecString, timebase: { num: 1, den: sampleRate } });
  const packets: Packet[] = [];
  let samples = 0;
  for (const tag of tags) {
    if (isVideoFrame(tag)) {
      const pts = Math.round((tag.timestamp * SOURCE_FPS) / 1000) * (MPEG_90K.den / SOURCE_FPS);
      const keyframe = (tag.data[0] ?? 0) >> 4 === 1;
      packets.push({ track: video, pts, dts: pts, duration: MPEG_90K.den / SOURCE_FPS, keyframe, data: tag.data.subarray(5) });
    } else if (isAudioFrame(tag)) {
      packets.push({ track: audio, pts: samples, dts: samples, duration: 1024, keyframe: true, data: tag.data.subarray(2) });
      samples += 1024;
    }
  }
  return { video, audio, packets };
}

function pick({ width, height, codecString }: { width: number; height: number; codecString: string }) {
  return { width, height, codecString };
}

function encodes(): EncodeRequest[] {
  const pictures = LADDER.map(
    ({ id, width, height, bitrate }): EncodeRequest => ({
      id,
      sourceId: 0,
      type: 'video',
      encode: videoConfig({ width, height, bitrate, keyFrameInterval: SOURCE_FPS }),
    }),
  );
  return [...pictures, { id: OPUS, sourceId: 1, type: 'audio', encode: audioConfig({ codec: 'opus', bitrate: OPUS_BITRATE }) }];
}

interface Cost {
  /** CPU ms. */
  readonly process: number;
  readonly server: number;
  readonly memoryMb: number;
}

async function transcode(lab: TranscodeLab, source: Source, seconds: number): Promise<{ run: TranscodeRun; cost: Cost }> {
  await lab.supervisor.codecModules();
  const [pid] = lab.supervisor.pids;
  if (pid === undefined) throw new Error('no transcoder process runs');
  const before = cpuTime(pid);
  const server = process.cpuUsage();
  const run = lab.open(encodes(), [source.video, source.audio]);
  await run.feed(source.packets);
  for (const { id } of LADDER) await run.makes(id, seconds * SOURCE_FPS - 1);
  await until('sound is complete', () => run.end(OPUS) > seconds - 0.2);
  const used = process.cpuUsage(server);
  const cost = { process: cpuTime(pid) - before, server: (used.user + used.system) / 1000, memoryMb: memory(pid).proportional };
  run.session.close();
  return { run, cost };
}

/** CPU ms of ffmpeg for the same ladder: same sizes, rates, threads and x264 settings. */
async function ffmpeg(file: string, seconds: number): Promise<number> {
  const x264 = ENCODERS.find(({ name }) => name === 'libx264');
  if (x264 === undefined) throw new Error('the catalogue has no x264');
  const outputs = LADDER.flatMap(({ width, height, bitrate }, index) => {
    const { threads, options, bufferBits } = tuneVideo(x264, videoConfig(), bitrate, width * height, availableParallelism());
    const settings = Object.entries(options).flatMap(([key, value]) => [`-${key}`, value]);
    const rate = ['-b:v', `${bitrate}`, '-maxrate', `${bitrate}`, '-bufsize', `${bufferBits}`];
    const gop = ['-g', `${SOURCE_FPS}`, '-keyint_min', `${SOURCE_FPS}`, '-bf', '0'];
    return ['-map', `[v${index}]`, '-c:v', 'libx264', '-threads', `${threads}`, ...settings, ...rate, ...gop, '-f', 'mpegts', '/dev/null'];
  });
  const scales = LADDER.map(({ width, height }, index) => `[s${index}]scale=${width}:${height}:flags=bicubic[v${index}]`);
  const graph = `[0:v]split=${LADDER.length}${LADDER.map((_, index) => `[s${index}]`).join('')};${scales.join(';')}`;
  const opus = ['-map', '0:a', '-c:a', 'libopus', '-b:a', `${OPUS_BITRATE}`, '-f', 'mpegts', '/dev/null'];
  const args = ['-v', 'error', '-nostdin', '-y', '-thread_type', 'slice', '-threads', '2', '-t', `${seconds}`, '-i', file];
  const before = childrenCpu();
  const child = spawn(requireProgram('ffmpeg'), [...args, '-filter_complex', graph, ...outputs, ...opus], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}`);
  return childrenCpu() - before;
}

/** CPU ms of all children, those that have ended included. */
function childrenCpu(): number {
  const { user, system } = process.cpuUsage();
  return cpuTime(process.pid) - (user + system) / 1000;
}

/** Throws unless every output of the run decodes, complete. */
function judge(run: TranscodeRun, seconds: number): void {
  for (const { id, width, height } of LADDER) {
    const file = run.file(id);
    const { streams, packets } = ffprobe(file);
    const complaints = decodeComplaints(file);
    const fits = streams[0]?.width === width && streams[0]?.height === height && packets.length >= seconds * SOURCE_FPS - 1;
    if (!fits || complaints.length > 0) throw new Error(`the ${height}p rendition is not right: ${complaints.join('; ')}`);
  }
  const complaints = decodeComplaints(run.file(OPUS));
  if (complaints.length > 0) throw new Error(`the sound is not right: ${complaints.join('; ')}`);
}

export async function run(options: BenchOptions): Promise<Report> {
  const file = await sourceFile();
  const seconds = Math.min(Math.floor(options.seconds), SOURCE_SECONDS);
  const source = readSource(file, seconds);
  const costs: Cost[] = [];
  const baselines: number[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    const lab = new TranscodeLab();
    try {
      const made = await transcode(lab, source, seconds);
      judge(made.run, seconds);
      costs.push(made.cost);
    } finally {
      await lab.close();
    }
    baselines.push(await ffmpeg(file, seconds));
  }
  const perSecond = (values: readonly number[]): number => median(values) / seconds;
  return {
    bench: 'transcoder',
    figures: [
      {
        name: 'CPU of the transcoder process',
        value: perSecond(costs.map((cost) => cost.process)),
        unit: 'ms/s',
        baseline: perSecond(baselines),
        target: CPU_TARGET,
      },
      { name: 'CPU of the server beside it', value: perSecond(costs.map((cost) => cost.server)), unit: 'ms/s' },
      { name: 'memory of the transcoder process', value: median(costs.map((cost) => cost.memoryMb)), unit: 'MB' },
    ],
    notes: [
      '720p30 H.264 + AAC → 720p + 480p + 240p H.264 (x264 faster, zerolatency, baseline) + Opus, as fast as it goes',
      "the baseline is Debian's ffmpeg, which has an older FFmpeg and x264; its start is part of its figure, ours is not",
      'the server feeds and collects in the same process as the bench, which polls',
      ...costs.map(
        (cost, index) =>
          `round ${index}: ${(cost.process / seconds).toFixed(0)} against ${((baselines[index] ?? 0) / seconds).toFixed(0)} ms/s`,
      ),
    ],
  };
}
