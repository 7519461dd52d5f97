/** The cost of relaying a stream over OVT, and the added delay. */
import { setTimeout as delay } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { SourcePacket } from '../src/core/ingest.ts';
import type { PullSession } from '../src/core/pull.ts';
import { OvtPullSource } from '../src/services/ovt/ovt-pull-source.ts';
import { systemClock } from '../src/util/clock.ts';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { apiPath } from '../test/harness/api-client.ts';
import type { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { freePorts } from '../test/harness/ports.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { cpuRate, idleCpuRate, median, percentile } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { RtmpSender } from './lib/rtmp-sender.ts';
import { publishSource, readFlv, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const STREAMS = [1, 10];
/** The kernel counts CPU in ticks of 10 ms, so few streams are measured for longer. */
const STREAM_SECONDS = 20;
const WARM_UP_MS = 5000;
const VIDEO_TRACK = 0;
const TICKS_PER_MS = 90;
const COLLECTION = `${apiPath.app('default', 'app')}/streams`;

/** An origin, and a server that pulls from it and serves further edges. */
interface Pair {
  readonly origin: TestServer;
  readonly relay: TestServer;
  ovt(server: 'origin' | 'relay', stream: string): string;
  close(): Promise<void>;
}

async function startPair(): Promise<Pair> {
  const [originPort = 0, relayPort = 0] = await freePorts(2);
  const origin = await startServer({ segmentDuration: 2, segmentCount: 4, withoutHls: true, ovtPort: originPort });
  const relay = await startServer({ withoutLlhls: true, withoutHls: true, ovtPort: relayPort });
  return {
    origin,
    relay,
    ovt: (server, stream) => `ovt://127.0.0.1:${server === 'origin' ? originPort : relayPort}/app/${stream}`,
    close: async () => {
      await relay.close();
      await origin.close();
    },
  };
}

/** CPU ms per second of one stream: through the relay, and received and packaged by the origin at the same time. */
async function costs(source: string, streams: number, seconds: number): Promise<{ relayed: number; ingested: number }> {
  const pair = await startPair();
  const encoders: Child[] = [];
  const sessions: PullSession[] = [];
  const names = Array.from({ length: streams }, (_, index) => `s${index}`);
  try {
    const originIdle = await idleCpuRate(pair.origin.pid);
    const relayIdle = await idleCpuRate(pair.relay.pid);
    for (const name of names) encoders.push(publishSource(source, pair.origin.rtmp(name)));
    await until(`${streams} streams`, async () => (await pair.origin.api.get<string[]>(COLLECTION)).length === streams);
    await delay(WARM_UP_MS);
    for (const name of names) {
      await pullFrom(pair, name);
      sessions.push(await listen(pair.ovt('relay', name), () => undefined));
    }
    await delay(WARM_UP_MS);
    const span = Math.max(seconds, STREAM_SECONDS / streams);
    const [ingested, relayed] = await Promise.all([cpuRate(pair.origin.pid, span), cpuRate(pair.relay.pid, span)]);
    return { relayed: (relayed - relayIdle) / streams, ingested: (ingested - originIdle) / streams };
  } finally {
    for (const session of sessions) session.close();
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await pair.close();
  }
}

/** Lets the relay pull a stream of the origin; resolves when edges can pull it from the relay. */
async function pullFrom(pair: Pair, name: string): Promise<void> {
  const properties = { persistent: true, relay: true };
  await pair.relay.api.create(COLLECTION, { name, urls: [pair.ovt('origin', name)], properties });
  await until(`${name} at the relay`, async () => {
    const { outputs } = await pair.relay.api.get<{ outputs: readonly unknown[] }>(apiPath.stream(name));
    return outputs.length > 0;
  });
}

/** Plays a stream and reports the arrival of each frame. */
async function listen(url: string, onFrame: (packet: SourcePacket, at: number) => void): Promise<PullSession> {
  const sink = {
    setTracks: () => undefined,
    push: (packet: SourcePacket) => {
      if (packet.trackId === VIDEO_TRACK) onFrame(packet, performance.now());
    },
    pushEvent: () => true,
    countBytes: () => undefined,
    heard: () => undefined,
    close: () => undefined,
  };
  const target = { url, settings: {}, ignoreSenderReports: false, sink, signal: AbortSignal.timeout(5000), logger: new RecordingLogger() };
  return await new OvtPullSource(systemClock).open(target);
}

/** Milliseconds from sending a frame to its arrival over OVT, from the origin and from the relay behind it. */
async function delays(seconds: number): Promise<{ origin: number[]; added: number[] }> {
  const tags = readFlv(await sourceFile());
  const pair = await startPair();
  const sender = await RtmpSender.open(pair.origin.ports.rtmp, 'app', 'paced');
  const stopped = new AbortController();
  const sending = sender.send(tags, stopped.signal);
  const sessions: PullSession[] = [];
  const origin: number[] = [];
  const added: number[] = [];
  /** Times at which the origin delivered frames, by their content. */
  const arrivals = new Map<number, number>();
  try {
    await until('the stream', async () => (await pair.origin.api.get<string[]>(COLLECTION)).includes('paced'));
    sessions.push(
      await listen(pair.ovt('origin', 'paced'), ({ pts, data }, at) => {
        arrivals.set(crc32(data), at);
        const frame = sender.frames[sender.indexOf(pts / TICKS_PER_MS)];
        if (frame !== undefined) origin.push(at - frame.sentAt);
      }),
    );
    await pullFrom(pair, 'paced');
    sessions.push(
      await listen(pair.ovt('relay', 'paced'), ({ data }, at) => {
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
    const { relayed, ingested } = await costs(source, streams, options.seconds);
    const count = `${streams} ${streams === 1 ? 'stream' : 'streams'}`;
    figures.push({ name: `CPU per relayed stream, ${count}`, value: relayed, unit: 'ms/s', baseline: ingested });
  }
  const { origin, added } = await delays(options.seconds);
  return {
    bench: 'ovt-relay',
    figures: [
      ...figures,
      { name: 'frame sent over RTMP to its arrival over OVT, median', value: median(origin), unit: 'ms' },
      { name: 'added by a relay in between, median', value: median(added), unit: 'ms' },
      { name: 'added by a relay in between, p95', value: percentile(added, 95), unit: 'ms' },
    ],
    notes: [
      'each stream: 720p30, 2.5 Mbit/s, in over OVT and out over OVT to one edge',
      'baseline: what the origin uses at the same time for the same stream: RTMP in, LL-HLS packaged, OVT out',
      `${added.length} frames were timed at both places`,
    ],
  };
}
