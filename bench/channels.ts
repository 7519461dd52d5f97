/** The cost of a scheduled channel beside an RTMP ingest of the same media, and its deviation from the wall clock after a day. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { playDay } from './lib/channel-day.ts';
import { median } from './lib/measure.ts';
import { cpuTime } from './lib/process-usage.ts';
import { type BenchOptions, RESULTS_FOLDER, type Report } from './lib/report.ts';
import { movieFile, publishSource, SOURCE_GOP_SECONDS, sourceFile } from './lib/source.ts';

const STREAMS = 20;
/** Length of each file: a channel passes to the next file once a minute. */
const ITEM_SECONDS = 60;
/** Time until the code of a stream is compiled, and windows are full. */
const WARM_UP_SECONDS = 60;
const IDLE_SECONDS = 10;
const LEAST_SECONDS = 20;
const STREAMS_PATH = '/v1/vhosts/default/apps/app/streams';
const WINDOW = { segmentDuration: SOURCE_GOP_SECONDS, segmentCount: 4, withoutHls: true } as const;
const CPU_TARGET = 1.5;
const DRIFT_TARGET_MS = 50;

/** CPU ms per second, and received bytes per second, of both servers over the same span. */
interface Span {
  readonly cpu: readonly [channels: number, ingests: number];
  readonly bytes: readonly [channels: number, ingests: number];
}

async function startChannels(media: string): Promise<TestServer> {
  return await startServer({
    ...WINDOW,
    providers: `<Schedule><MediaRootDir>${media}</MediaRootDir><ScheduleFilesDir>channels</ScheduleFilesDir></Schedule>`,
  });
}

/** Writes schedules whose boundaries never coincide. */
function schedule({ folder }: TestServer, file: string): void {
  mkdirSync(path.join(folder, 'channels'), { recursive: true });
  for (let index = 0; index < STREAMS; index += 1) {
    const scheduled = new Date(Date.now() - 86_400_000 - (index * ITEM_SECONDS * 1000) / STREAMS).toISOString();
    const program = `<Program name="day" scheduled="${scheduled}" repeat="true"><Item url="file://${file}"/></Program>`;
    const xml = `<Schedule><Stream><Name>s${index}</Name><BypassTranscoder>true</BypassTranscoder></Stream>${program}</Schedule>`;
    writeFileSync(path.join(folder, 'channels', `s${index}.sch`), xml);
  }
}

async function streamCount(server: TestServer): Promise<void> {
  await until(`${STREAMS} streams`, async () => (await server.api.get<string[]>(STREAMS_PATH)).length === STREAMS, { deadlineMs: 30_000 });
}

async function bytesIn(server: TestServer): Promise<number> {
  return (await server.api.get<{ totalBytesIn: number }>('/v1/stats/current/vhosts/default/apps/app')).totalBytesIn;
}

async function watch(servers: readonly [TestServer, TestServer], seconds: number): Promise<Span> {
  const figures = async () => Promise.all(servers.map(async (server) => ({ bytes: await bytesIn(server), cpu: cpuTime(server.pid) })));
  const since = performance.now();
  const before = await figures();
  await delay(seconds * 1000);
  const after = await figures();
  const passed = (performance.now() - since) / 1000;
  const rate = (key: 'cpu' | 'bytes', index: 0 | 1): number => ((after[index]?.[key] ?? 0) - (before[index]?.[key] ?? 0)) / passed;
  return { cpu: [rate('cpu', 0), rate('cpu', 1)], bytes: [rate('bytes', 0), rate('bytes', 1)] };
}

/** Both servers play at the same time, so that other load affects both. */
async function measure({ seconds, rounds }: BenchOptions): Promise<{ readonly idle: Span; readonly spans: readonly Span[] }> {
  const source = await sourceFile();
  const film = await movieFile(source, ITEM_SECONDS);
  const encoders: Child[] = [];
  const opened: TestServer[] = [];
  try {
    const servers = [await startChannels(path.dirname(film)), await startServer(WINDOW)] as const;
    opened.push(...servers);
    const idle = await watch(servers, IDLE_SECONDS);
    schedule(servers[0], path.basename(film));
    for (let index = 0; index < STREAMS; index += 1) encoders.push(publishSource(source, servers[1].rtmp(`s${index}`)));
    await Promise.all(servers.map(streamCount));
    await delay(WARM_UP_SECONDS * 1000);
    const spans: Span[] = [];
    for (let round = 0; round < rounds; round += 1) spans.push(await watch(servers, Math.max(LEAST_SECONDS, seconds)));
    await Promise.all(servers.map(streamCount));
    return { idle, spans };
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await Promise.all(opened.map((server) => server.close()));
  }
}

export async function run(options: BenchOptions): Promise<Report> {
  const { idle, spans } = await measure(options);
  const perStream = (index: 0 | 1): number => median(spans.map(({ cpu }) => (cpu[index] - idle.cpu[index]) / STREAMS));
  const whole = (index: 0 | 1): number => median(spans.map(({ cpu }) => cpu[index] / STREAMS));
  const received = (index: 0 | 1): string => ((median(spans.map(({ bytes }) => bytes[index])) * 8) / STREAMS / 1e6).toFixed(2);
  const day = await playDay(path.join(RESULTS_FOLDER, 'channel-day'));
  return {
    bench: 'channels',
    figures: [
      { name: `CPU per channel, ${STREAMS} bypassed`, value: perStream(0), unit: 'ms/s', baseline: perStream(1), target: CPU_TARGET },
      { name: '  with the idle share', value: whole(0), unit: 'ms/s', baseline: whole(1) },
      { name: 'drift of an item against the wall clock in a day, most', value: day.most, unit: 'ms', target: DRIFT_TARGET_MS },
      { name: '  of the last item of the day', value: day.last, unit: 'ms', target: DRIFT_TARGET_MS },
      { name: '  hole between two frames, most', value: day.hole, unit: 'ms' },
    ],
    notes: [
      `baseline: RTMP ingests of the same media at the same time; 720p30, 2.5 Mbit/s, LL-HLS with 0.5 s parts, nobody watches; items of ${ITEM_SECONDS} s`,
      `received by each: channels ${received(0)} Mbit/s, ingests ${received(1)} Mbit/s`,
      `the day: ${day.items} items of ${day.files} files, ${day.packets} packets, in ${day.seconds.toFixed(0)} s`,
    ],
  };
}
