/** What it costs to relay a stream to another server over OVT, on both sides, and how much later it arrives there. */
import { setTimeout as delay } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { SourcePacket } from '../src/core/ingest.ts';
import type { PullSession } from '../src/core/pull.ts';
import { OvtPullSource } from '../src/providers/ovt/ovt-pull-source.ts';
import { systemClock } from '../src/util/clock.ts';
import { apiPath } from '../test/e2e/support/api-client.ts';
import type { Child } from '../test/e2e/support/child.ts';
import { until } from '../test/e2e/support/poll.ts';
import { freePorts } from '../test/e2e/support/ports.ts';
import { startServer, type TestServer } from '../test/e2e/support/server.ts';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { cpuRate, idleCpuRate, median, percentile } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { RtmpSender } from './lib/rtmp-sender.ts';
import { publishSource, readFlv, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const STREAMS = [1, 10];
/** The kernel counts CPU in ticks of 10 ms: few streams are watched for longer. */
const STREAM_SECONDS = 20;
const WARM_UP_MS = 5000;
const VIDEO_TRACK = 0;
const TICKS_PER_MS = 90;
const COLLECTION = `${apiPath.app('default', 'app')}/streams`;

/** Two servers, of which the second can pull from the first. */
interface Pair {
  readonly origin: TestServer;
  readonly edge: TestServer;
  ovt(server: 'origin' | 'edge', stream: string): string;
  close(): Promise<void>;
}

async function startPair(): Promise<Pair> {
  const [originPort = 0, edgePort = 0] = await freePorts(2);
  const settings = { segmentDuration: 2, segmentCount: 4, withoutHls: true };
  const origin = await startServer({ ...settings, ovtPort: originPort });
  const edge = await startServer({ ...settings, ovtPort: edgePort });
  return {
    origin,
    edge,
    ovt: (server, stream) => `ovt://127.0.0.1:${server === 'origin' ? originPort : edgePort}/app/${stream}`,
    close: async () => {
      await edge.close();
      await origin.close();
    },
  };
}

/** CPU ms per second of one stream: taken in over RTMP, sent to the edge, and taken in there. */
async function costs(source: string, streams: number, seconds: number): Promise<{ ingest: number; sending: number; receiving: number }> {
  const pair = await startPair();
  const encoders: Child[] = [];
  const span = Math.max(seconds, STREAM_SECONDS / streams);
  try {
    const originIdle = await idleCpuRate(pair.origin.pid);
    const edgeIdle = await idleCpuRate(pair.edge.pid);
    for (let index = 0; index < streams; index += 1) encoders.push(publishSource(source, pair.origin.rtmp(`s${index}`)));
    await until(`${streams} streams`, async () => (await pair.origin.api.get<string[]>(COLLECTION)).length === streams);
    await delay(WARM_UP_MS);
    const alone = await cpuRate(pair.origin.pid, span);
    for (let index = 0; index < streams; index += 1) {
      await pair.edge.api.create(COLLECTION, {
        name: `s${index}`,
        urls: [pair.ovt('origin', `s${index}`)],
        properties: { persistent: true, relay: true },
      });
    }
    await delay(WARM_UP_MS);
    const [relaying, receiving] = await Promise.all([cpuRate(pair.origin.pid, span), cpuRate(pair.edge.pid, span)]);
    return {
      ingest: (alone - originIdle) / streams,
      sending: (relaying - alone) / streams,
      receiving: (receiving - edgeIdle) / streams,
    };
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await pair.close();
  }
}

/** Plays a stream and notes when each picture came. */
async function listen(url: string, onPicture: (packet: SourcePacket, at: number) => void): Promise<PullSession> {
  const sink = {
    setTracks: () => undefined,
    push: (packet: SourcePacket) => {
      if (packet.trackId === VIDEO_TRACK) onPicture(packet, performance.now());
    },
    countBytes: () => undefined,
    ended: () => undefined,
  };
  const target = { url, settings: {}, ignoreSenderReports: false, sink, signal: AbortSignal.timeout(5000), logger: new RecordingLogger() };
  return await new OvtPullSource(systemClock).open(target);
}

/** Milliseconds from sending a frame to its arrival over OVT, from the origin and from the edge behind it. */
async function delays(seconds: number): Promise<{ origin: number[]; added: number[] }> {
  const tags = readFlv(await sourceFile());
  const pair = await startPair();
  const sender = await RtmpSender.open(pair.origin.ports.rtmp, 'app', 'paced');
  const stopped = new AbortController();
  const sending = sender.send(tags, stopped.signal);
  const sessions: PullSession[] = [];
  const origin: number[] = [];
  const added: number[] = [];
  /** When the origin delivered a picture, by its content. */
  const arrivals = new Map<number, number>();
  try {
    await until('the stream', async () => (await pair.origin.api.get<string[]>(COLLECTION)).includes('paced'));
    await pair.edge.api.create(COLLECTION, { name: 'paced', urls: [pair.ovt('origin', 'paced')], properties: { relay: true } });
    sessions.push(
      await listen(pair.ovt('origin', 'paced'), ({ pts, data }, at) => {
        arrivals.set(crc32(data), at);
        const frame = sender.frames[sender.indexOf(pts / TICKS_PER_MS)];
        if (frame !== undefined) origin.push(at - frame.sentAt);
      }),
    );
    const edgeStream = async (): Promise<boolean> =>
      (await pair.edge.api.get<{ outputs: { tracks: unknown[] }[] }>(apiPath.stream('paced'))).outputs.length > 0;
    await until('the stream at the edge', edgeStream);
    sessions.push(
      await listen(pair.ovt('edge', 'paced'), ({ data }, at) => {
        const before = arrivals.get(crc32(data));
        if (before !== undefined) added.push(at - before);
      }),
    );
    await delay(Math.min(seconds, SOURCE_SECONDS / 2) * 1000);
  } finally {
    stopped.abort();
    await sending;
    sender.close();
    for (const session of sessions) session.close();
    await pair.close();
  }
  return { origin, added };
}

export async function run(options: BenchOptions): Promise<Report> {
  const source = await sourceFile();
  const figures: Figure[] = [];
  for (const streams of STREAMS) {
    const { ingest, sending, receiving } = await costs(source, streams, options.seconds);
    const count = `${streams} ${streams === 1 ? 'stream' : 'streams'}`;
    figures.push(
      { name: `origin, CPU per stream sent to an edge, ${count}`, value: sending, unit: 'ms/s' },
      { name: `edge, CPU per stream received, ${count}`, value: receiving, unit: 'ms/s', baseline: ingest },
    );
  }
  const { origin, added } = await delays(options.seconds);
  return {
    bench: 'ovt-relay',
    figures: [
      ...figures,
      { name: 'frame sent over RTMP to its arrival over OVT, median', value: median(origin), unit: 'ms' },
      { name: 'added by an edge in between, median', value: median(added), unit: 'ms' },
      { name: 'added by an edge in between, p95', value: percentile(added, 95), unit: 'ms' },
    ],
    notes: [
      'each stream: 720p30, 2.5 Mbit/s; both servers make LL-HLS of it; baseline: the same stream taken in over RTMP by the origin',
      `${added.length} pictures were timed at both places`,
    ],
  };
}
