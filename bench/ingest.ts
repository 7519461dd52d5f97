/** The cost of one incoming stream: CPU per stream second and resident memory, with LL-HLS packaging. */
import { statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { cpuRate, idleCpuRate } from './lib/measure.ts';
import { memory } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, SOURCE_GOP_SECONDS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

interface Window {
  readonly segmentDuration: number;
  readonly segmentCount: number;
}

const PUBLISHERS = [1, 10, 30];
const SMALL: Window = { segmentDuration: SOURCE_GOP_SECONDS, segmentCount: 4 };
/** The window in `conf/Server.xml`. */
const SHIPPED: Window = { segmentDuration: 6, segmentCount: 10 };
/** Memory is compared between these two numbers of publishers. */
const FEW = 10;
const MANY = 30;
/** Segments held beyond the listed ones, including the growing segment. */
const SEGMENTS_BEYOND = 4;
/** The kernel counts CPU in ticks of 10 ms, so few streams, or an idle server, are measured for longer. */
const STREAM_SECONDS = 20;
const IDLE_SECONDS = 20;
/** Publishers before the measurement, and their time: afterwards the code of a stream is compiled. */
const WARM_UP_PUBLISHERS = 10;
const WARM_UP_SECONDS = 60;
/** Time for the server to forget them. */
const FORGET_SECONDS = 5;
const CPU_TARGETS: ReadonlyMap<number, number> = new Map([
  [1, 7],
  [10, 2.5],
  [30, 2.2],
]);
/** Streams with a viewer each. */
const WATCHED = [10, 30];
const VIEWERS = ['playlist', 'player'] as const;
const WATCHED_TARGET = 2.5;
const WATCHED_WARM_UP_SECONDS = 20;
const WATCHED_SECONDS = 20;
const MEMORY_FACTOR = 1.3;
const MEMORY_BASE_MB = 3;
const SINK_WARM_UP_MS = 3000;

interface IngestCost {
  readonly publishers: number;
  readonly window: Window;
  /** CPU ms per second of the server without publishers: after its start, and after the publishers of the warm-up have left. */
  readonly coldIdle: number;
  readonly idle: number;
  /** CPU ms per second of the server with its publishers. */
  readonly busy: number;
  /** Bytes per second received from all publishers: less than expected when the machine is too busy. */
  readonly received: number;
  /** Resident MB: before the first publisher, with a full window, and at the end. */
  readonly memoryIdle: number;
  readonly memoryFirst: number;
  readonly memoryLast: number;
}

function windowSeconds({ segmentDuration, segmentCount }: Window): number {
  return (segmentCount + SEGMENTS_BEYOND) * segmentDuration;
}

async function measure(source: string, publishers: number, window: Window, seconds: number): Promise<IngestCost> {
  const server = await startServer({ ...window, withoutHls: true });
  const encoders: Child[] = [];
  try {
    const coldIdle = await idleCpuRate(server.pid);
    const memoryIdle = memory(server.pid).resident;
    await warmUp(server, source);
    const idle = await cpuRate(server.pid, IDLE_SECONDS);
    for (let index = 0; index < publishers; index += 1) encoders.push(publishSource(source, server.rtmp(`s${index}`)));
    await streamCount(server, publishers);
    await delay(windowSeconds(window) * 1000);
    const memoryFirst = memory(server.pid).resident;
    const before = await bytesIn(server);
    const since = performance.now();
    const busy = await cpuRate(server.pid, Math.max(seconds, STREAM_SECONDS / publishers));
    const received = ((await bytesIn(server)) - before) / ((performance.now() - since) / 1000);
    const memoryLast = memory(server.pid).resident;
    await streamCount(server, publishers);
    return { publishers, window, coldIdle, idle, busy, received, memoryIdle, memoryFirst, memoryLast };
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await server.close();
  }
}

/** A new server compiles for a minute, which belongs neither to a stream's cost nor to the idle cost. */
async function warmUp(server: TestServer, source: string): Promise<void> {
  const encoders = Array.from({ length: WARM_UP_PUBLISHERS }, (_, index) => publishSource(source, server.rtmp(`warm${index}`)));
  try {
    await streamCount(server, WARM_UP_PUBLISHERS);
    await delay(WARM_UP_SECONDS * 1000);
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
  }
  await streamCount(server, 0);
  await delay(FORGET_SECONDS * 1000);
}

/** CPU ms per second of one stream in a program that reads the same bytes and drops them: the present speed of the machine. */
async function measureSink(source: string, publishers: number, seconds: number): Promise<number> {
  const sink = new Child(process.execPath, [path.join(import.meta.dirname, 'lib/bare-sink-server.ts')], { name: 'bare node:net' });
  const encoders: Child[] = [];
  try {
    const [, port] = await sink.printed(/port (\d+)/, 10_000);
    for (let index = 0; index < publishers; index += 1) encoders.push(publishSource(source, `tcp://127.0.0.1:${port}`));
    await sink.printed(new RegExp(`open ${publishers}\\b`), 10_000);
    await delay(SINK_WARM_UP_MS);
    return (await cpuRate(sink.pid, Math.max(seconds, STREAM_SECONDS / publishers))) / publishers;
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await sink.stop();
  }
}

/** CPU ms per second of one stream with a viewer of LL-HLS (see `hls-watchers.ts`). The idle share is in it. */
async function measureWatched(source: string, publishers: number, viewer: (typeof VIEWERS)[number]): Promise<number> {
  const server = await startServer({ ...SMALL, withoutHls: true });
  const children: Child[] = [];
  try {
    await warmUp(server, source);
    const names = Array.from({ length: publishers }, (_, index) => `s${index}`);
    for (const name of names) children.push(publishSource(source, server.rtmp(name)));
    await streamCount(server, publishers);
    await delay(windowSeconds(SMALL) * 1000);
    const urls = names.map((name) => server.http(name, 'llhls.m3u8'));
    const watchers = new Child(process.execPath, [path.join(import.meta.dirname, 'lib/hls-watchers.ts'), viewer, ...urls], {
      name: 'watchers',
    });
    children.push(watchers);
    await watchers.printed(/watching/, 30_000);
    await delay(WATCHED_WARM_UP_SECONDS * 1000);
    const reloads = async (): Promise<number> => Number((await watchers.printed(/.*watching \d+ playlists, (\d+) reloads/s, 5000))[1]);
    const before = await reloads();
    const busy = await cpuRate(server.pid, WATCHED_SECONDS);
    // A rendition has two parts a second.
    const due = publishers * (viewer === 'player' ? 4 : 2) * WATCHED_SECONDS;
    const share = ((await reloads()) - before) / due;
    if (share < 0.8) throw new Error(`viewers reloaded for ${(100 * share).toFixed(0)} % of the parts`);
    return busy / publishers;
  } finally {
    await Promise.all(children.map((child) => child.kill()));
    await server.close();
  }
}

function targetOf(publishers: number): { readonly target?: number } {
  const target = CPU_TARGETS.get(publishers);
  return target === undefined ? {} : { target };
}

async function streamCount(server: TestServer, publishers: number): Promise<void> {
  const names = '/v1/vhosts/default/apps/app/streams';
  await until(`${publishers} streams`, async () => (await server.api.get<string[]>(names)).length === publishers);
}

async function bytesIn(server: TestServer): Promise<number> {
  return (await server.api.get<{ totalBytesIn: number }>('/v1/stats/current/vhosts/default/apps/app')).totalBytesIn;
}

/** Resident memory of one more stream, against the media in its window. */
function furtherStream(costs: readonly IngestCost[], mediaRate: number): Figure[] {
  return [SMALL, SHIPPED].flatMap((window): Figure[] => {
    const [few, many] = [FEW, MANY].map((publishers) => costs.find((cost) => cost.window === window && cost.publishers === publishers));
    if (few === undefined || many === undefined) return [];
    const { segmentDuration, segmentCount } = window;
    const value = (many.memoryLast - few.memoryLast) / (MANY - FEW);
    const target = Number((MEMORY_FACTOR * mediaRate * windowSeconds(window) + MEMORY_BASE_MB).toFixed(2));
    return [{ name: `memory of each further stream, ${segmentCount} x ${segmentDuration} s`, value, unit: 'MB', target }];
  });
}

function describeCost(cost: IngestCost, mediaRate: number): string {
  const { publishers, window, coldIdle, idle, busy, received, memoryIdle, memoryFirst, memoryLast } = cost;
  const { segmentDuration, segmentCount } = window;
  return (
    `${publishers} streams, ${segmentCount} x ${segmentDuration} s: ${busy.toFixed(1)} ms/s at ${((100 * received) / publishers / 2 ** 20 / mediaRate).toFixed(0)} % ` +
    `of real time, idle ${idle.toFixed(1)} (${coldIdle.toFixed(1)} before the first publisher); ${((memoryLast - memoryIdle) / publishers).toFixed(2)} MB each with what the program allocates once under load, ` +
    `${(memoryLast - memoryFirst).toFixed(2)} MB more at the end than when the window was full`
  );
}

export async function run(options: BenchOptions): Promise<Report> {
  const source = await sourceFile();
  const costs: IngestCost[] = [];
  const figures: Figure[] = [];
  const parts = (process.env['INGEST_PARTS'] ?? 'cost,watched,memory').split(',');
  for (const publishers of parts.includes('cost') ? PUBLISHERS : []) {
    const cost = await measure(source, publishers, SMALL, options.seconds);
    costs.push(cost);
    figures.push(
      { name: `CPU per stream, ${publishers} streams`, value: (cost.busy - cost.idle) / publishers, unit: 'ms/s', ...targetOf(publishers) },
      { name: '  with the idle share', value: cost.busy / publishers, unit: 'ms/s' },
      { name: '  the same bytes read by a bare node:net', value: await measureSink(source, publishers, options.seconds), unit: 'ms/s' },
    );
  }
  for (const publishers of parts.includes('watched') ? WATCHED : []) {
    for (const viewer of VIEWERS) {
      const value = await measureWatched(source, publishers, viewer);
      const seen = viewer === 'player' ? 'a player each' : 'a viewer each who reloads the video playlist';
      figures.push({
        name: `CPU per stream, ${publishers} streams, ${seen}, with the idle share`,
        value,
        unit: 'ms/s',
        target: WATCHED_TARGET,
      });
    }
  }
  for (const publishers of parts.includes('memory') ? [FEW, MANY] : [])
    costs.push(await measure(source, publishers, SHIPPED, options.seconds));
  const mediaRate = statSync(source).size / SOURCE_SECONDS / 2 ** 20;
  return {
    bench: 'ingest',
    figures: [...figures, ...furtherStream(costs, mediaRate)],
    notes: [
      `each stream: 720p30, 2.5 Mbit/s, LL-HLS with 0.5 s parts; memory target: ${MEMORY_FACTOR} x the media in the window + ${MEMORY_BASE_MB} MB`,
      'elsewhere, same source, CPU ms/s: OvenMediaEngine LL-HLS only 19, its usual profile 44; SRS plain HLS 6; C reading sockets 1.2',
      ...costs.map((cost) => describeCost(cost, mediaRate)),
    ],
  };
}
