/**
 * The cost of a fresh server: until its API answers, idle, and with one publisher. `BENCH_OTHER=…/scripts/start.mjs` names the program of
 * another checkout, which takes turns with this one as the baseline; without it the baseline is a bare Node.js.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { MAIN, spawnServer, type TestServer } from '../test/harness/server.ts';
import { median } from './lib/measure.ts';
import { cpuTime, memory, threadTime } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';

const OTHER = process.env['BENCH_OTHER'] ?? '';
const FIRST_START_TARGET_MS = 600;
const START_TARGET_MS = 300;
const RESIDENT_TARGET_MB = 90;
const PUBLISHER_TARGET = 12;
/** Time that a publisher counts as fresh. */
const PUBLISHER_SECONDS = 12;
/** Time for the rest of the start after the server is ready. */
const SETTLE_MS = 700;

const BARE = "setInterval(() => {}, 1e6); console.log('ready');";

/** Measurements of a round. */
interface Sample {
  readonly firstMs: number;
  readonly firstCpu: number;
  readonly laterMs: number;
  readonly laterCpu: number;
  readonly resident: number;
  readonly proportional: number;
  readonly idle: number;
  readonly viewerMs: number;
  readonly publisher: number;
}

/** Milliseconds until the API answers, and the CPU time of the process, children included, when it has settled. */
async function startOf(server: TestServer): Promise<{ ms: number; cpu: number }> {
  await until('the API to answer', async () => (await server.api.call('GET', '/v1/version')).status === 200, { everyMs: 2 });
  const ms = performance.now() - server.startedAt;
  await server.ready();
  await delay(SETTLE_MS);
  return { ms, cpu: cpuTime(server.pid) };
}

/** CPU ms per second of the server's own threads. */
async function rate(server: TestServer, seconds: number): Promise<number> {
  const [before, since] = [threadTime(server.pid), performance.now()];
  await delay(seconds * 1000);
  return ((threadTime(server.pid) - before) * 1000) / (performance.now() - since);
}

/** Wait of the first HTTP client, ms, which includes the start of delivery threads. */
async function firstViewer(server: TestServer): Promise<number> {
  const since = performance.now();
  const { status } = await fetch(server.http('nobody', 'llhls.m3u8'));
  if (status !== 404) throw new Error(`a stream that is not there was answered with ${status}`);
  return performance.now() - since;
}

async function sample(main: string, source: string, seconds: number): Promise<Sample> {
  const server = await spawnServer({ main, compileCache: true, webrtc: {}, withoutHls: true });
  try {
    const first = await startOf(server);
    // The second start still writes compiled code that the first had no time for.
    await server.restart();
    await server.respawn();
    const later = await startOf(server);
    await delay(2000);
    const idle = await rate(server, seconds);
    const { resident, proportional } = memory(server.pid);
    const viewerMs = await firstViewer(server);
    await server.restart();
    await delay(SETTLE_MS);
    const encoder = publishSource(source, server.rtmp('live'));
    try {
      await until('the stream', async () => (await server.api.get<string[]>('/v1/vhosts/default/apps/app/streams')).length === 1);
      const publisher = await rate(server, PUBLISHER_SECONDS);
      return {
        firstMs: first.ms,
        firstCpu: first.cpu,
        laterMs: later.ms,
        laterCpu: later.cpu,
        resident,
        proportional,
        idle,
        viewerMs,
        publisher,
      };
    } finally {
      await encoder.kill();
    }
  } finally {
    await server.close();
  }
}

/** CPU time of the start of an idle Node.js, ms, and its memory, MB. */
async function bareStart(): Promise<{ cpu: number; resident: number; proportional: number }> {
  const node = new Child(process.execPath, ['-e', BARE]);
  try {
    await node.printed(/ready/, 10_000);
    await delay(SETTLE_MS);
    return { cpu: cpuTime(node.pid), ...memory(node.pid) };
  } finally {
    await node.kill();
  }
}

export async function run(options: BenchOptions): Promise<Report> {
  const source = await sourceFile();
  const own: Sample[] = [];
  const others: Sample[] = [];
  const bare: Awaited<ReturnType<typeof bareStart>>[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    if (OTHER !== '') others.push(await sample(OTHER, source, options.seconds));
    own.push(await sample(MAIN, source, options.seconds));
    bare.push(await bareStart());
  }
  const figure = (name: string, unit: string, of: (sample: Sample) => number, target?: number): Figure => {
    const value = median(own.map(of));
    if (OTHER !== '') return { name, unit, value, baseline: median(others.map(of)) };
    return { name, unit, value, ...(target !== undefined && { target }) };
  };
  return {
    bench: 'start',
    figures: [
      figure('first start to API answer', 'ms', ({ firstMs }) => firstMs, FIRST_START_TARGET_MS),
      figure('  its CPU, children included', 'ms', ({ firstCpu }) => firstCpu),
      figure('later start to API answer', 'ms', ({ laterMs }) => laterMs, START_TARGET_MS),
      figure('  its CPU', 'ms', ({ laterCpu }) => laterCpu),
      { name: '  CPU of a bare Node.js', unit: 'ms', value: median(bare.map(({ cpu }) => cpu)) },
      figure('resident memory, idle', 'MB', ({ resident }) => resident, RESIDENT_TARGET_MB),
      { name: '  of a bare Node.js', unit: 'MB', value: median(bare.map(({ resident }) => resident)) },
      figure('  shared pages divided', 'MB', ({ proportional }) => proportional),
      { name: '  of a bare Node.js', unit: 'MB', value: median(bare.map(({ proportional }) => proportional)) },
      figure('first connection over HTTP to its answer', 'ms', ({ viewerMs }) => viewerMs),
      figure('CPU, idle', 'ms/s', ({ idle }) => idle),
      figure(`CPU of one publisher, first ${PUBLISHER_SECONDS} s of a process`, 'ms/s', ({ publisher }) => publisher, PUBLISHER_TARGET),
    ],
    notes: [
      'a start has what the one before has compiled; the publisher comes to the third start, whose predecessors had none',
      OTHER === '' ? 'BENCH_OTHER names a program to compare with' : `the baseline is ${OTHER}`,
    ],
  };
}
