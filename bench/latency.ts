/** Waiting times: from a frame to its playlist, from the start of the program to its API, and from a new viewer to the first frame. */
import { Agent, get, type IncomingMessage } from 'node:http';
import { requireProgram } from '../scripts/ensure-tools.ts';
import { openBrowser } from '../test/harness/browser.ts';
import { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { spawnServer, startServer, type TestServer } from '../test/harness/server.ts';
import { openSession, readMediaPlaylist } from '../test/harness/viewer.ts';
import { framesOfPart, timescaleOf } from './lib/fmp4.ts';
import { median, percentile } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { RtmpSender } from './lib/rtmp-sender.ts';
import { publishSource, readFlv, SOURCE_FPS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const UNBLOCK_TARGET_MS = 10;
const START_TARGET_MS = 600;
const STARTS = 5;
/** Media, in seconds, before playlists are offered. */
const WARM_UP_SECONDS = 6;

interface TimedAnswer {
  readonly body: Buffer;
  /** `performance.now()` at the first byte of the answer. */
  readonly arrivedAt: number;
}

async function timedGet(agent: Agent, url: string): Promise<TimedAnswer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => get(url, { agent }, resolve).once('error', reject));
  const arrivedAt = performance.now();
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  if (answer.statusCode !== 200) throw new Error(`GET ${url} answered ${answer.statusCode}`);
  return { body: Buffer.concat(pieces), arrivedAt };
}

/** Milliseconds between sending the last frame of a part and the arrival of the playlist that lists it. */
async function unblockDelays(server: TestServer, seconds: number): Promise<number[]> {
  const tags = readFlv(await sourceFile());
  const sender = await RtmpSender.open(server.ports.rtmp, 'app', 'paced');
  const stopped = new AbortController();
  const sending = sender.send(tags, stopped.signal);
  const agent = new Agent({ keepAlive: true });
  const delays: number[] = [];
  try {
    await until('media to be sent', () => sender.frames.length > WARM_UP_SECONDS * SOURCE_FPS || null);
    const { video } = await openSession(server.http('paced', 'llhls.m3u8'));
    let { body } = await timedGet(agent, video);
    const first = readMediaPlaylist(body.toString(), video);
    const timescale = timescaleOf((await timedGet(agent, first.init)).body);
    const end = performance.now() + Math.min(seconds, SOURCE_SECONDS - WARM_UP_SECONDS - 2) * 1000;
    while (performance.now() < end) {
      const { lastSequence, lastPart } = readMediaPlaylist(body.toString(), video);
      const next = new URL(video);
      next.searchParams.set('_HLS_msn', `${lastSequence}`);
      next.searchParams.set('_HLS_part', `${lastPart + 1}`);
      const unblocked = await timedGet(agent, next.href);
      body = unblocked.body;
      const newest = readMediaPlaylist(body.toString(), video).parts.at(-1) ?? '';
      const { start, count } = framesOfPart((await timedGet(agent, newest)).body);
      const last = sender.indexOf((start * 1000) / timescale) + count - 1;
      const frame = sender.frames[last];
      if (frame === undefined) throw new Error(`frame ${last} was served before it was sent`);
      delays.push(unblocked.arrivedAt - frame.sentAt);
    }
  } finally {
    stopped.abort();
    await sending;
    sender.close();
    agent.destroy();
  }
  return delays;
}

/** Milliseconds from starting the program to the first answer of its API: with an empty state folder, and with a used one. */
async function startTimes(): Promise<{ first: number; later: number }> {
  const server = await spawnServer({ compileCache: true });
  try {
    const first = await untilApiAnswers(server);
    await server.respawn();
    return { first, later: await untilApiAnswers(server) };
  } finally {
    await server.close();
  }
}

async function untilApiAnswers(server: TestServer): Promise<number> {
  await until('the API to answer', async () => (await server.api.call('GET', '/v1/version')).status === 200, { everyMs: 2 });
  return performance.now() - server.startedAt;
}

/** Milliseconds from starting ffmpeg on the playlist to its first decoded frame. */
async function firstFrameOfFfmpeg(url: string): Promise<number> {
  const startedAt = performance.now();
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-i', url, '-frames:v', '1', '-f', 'null', '-']);
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`ffmpeg ${url}: ${child.stderr}`);
  return performance.now() - startedAt;
}

async function firstFrames(server: TestServer, rounds: number): Promise<Figure[]> {
  const encoder = publishSource(await sourceFile(), server.rtmp('live'));
  const browser = await openBrowser();
  const url = server.http('live', 'llhls.m3u8');
  try {
    await until('the playlist', async () => (await fetch(url)).status === 200, { deadlineMs: 30_000 });
    const byFfmpeg: number[] = [];
    const byHlsJs: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      byFfmpeg.push(await firstFrameOfFfmpeg(url));
      const player = await browser.play(url);
      byHlsJs.push(await until('the first frame', async () => (await player.state()).firstFrameMs, { deadlineMs: 20_000 }));
      await player.page.close();
    }
    return [
      { name: 'new viewer to first frame, ffmpeg', value: median(byFfmpeg), unit: 'ms' },
      { name: 'new viewer to first frame, hls.js', value: median(byHlsJs), unit: 'ms' },
    ];
  } finally {
    await browser.close();
    await encoder.kill();
  }
}

export async function run(options: BenchOptions): Promise<Report> {
  const starts: { first: number; later: number }[] = [];
  for (let round = 0; round < STARTS; round += 1) starts.push(await startTimes());
  const server = await startServer({ segmentDuration: 2, withoutHls: true });
  try {
    const delays = await unblockDelays(server, options.seconds);
    return {
      bench: 'latency',
      figures: [
        { name: 'first start to API answer', value: median(starts.map(({ first }) => first)), unit: 'ms' },
        { name: 'later start to API answer', value: median(starts.map(({ later }) => later)), unit: 'ms', target: START_TARGET_MS },
        { name: 'frame to unblocked playlist, median', value: median(delays), unit: 'ms', target: UNBLOCK_TARGET_MS },
        { name: 'frame to unblocked playlist, p95', value: percentile(delays, 95), unit: 'ms' },
        ...(await firstFrames(server, options.rounds)),
      ],
      notes: [
        'the first start compiles the program; what it compiled is kept in the state folder for later starts',
        `${delays.length} parts; a playlist that waits for the frame after the part would show at least ${(1000 / SOURCE_FPS).toFixed(0)} ms`,
      ],
    };
  } finally {
    await server.close();
  }
}
