/** The cost of SRT: CPU per Mbit/s received and sent, against libsrt's own program with one process per connection. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { requireProgram } from '../scripts/ensure-tools.ts';
import { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { freePorts } from '../test/harness/ports.ts';
import { cpuRate, median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';

const CONNECTIONS = [1, 50];
const KBPS = 2500;
const LATENCY_MS = 120;
const PAYLOADS_PER_MS = KBPS / 8 / 1316;
const MIN_SHARE = 0.75;
/** The kernel counts CPU in ticks of 10 ms, so a single connection is measured for longer. */
const CONNECTION_SECONDS = 20;
/** Time for programs to listen before the first call. */
const SETTLE_MS = 2000;
/** Time with media until code that runs some hundred times a second is compiled. */
const WARM_UP_MS = 8000;
const DEADLINE_MS = 20_000;
const TARGET = 1;

/** CPU ms per second of all our, or all their, receivers and senders. */
interface Cost {
  readonly received: number;
  readonly sent: number;
}

async function ours(count: number, seconds: number): Promise<Cost> {
  const children: Child[] = [];
  try {
    const sink = await startSink(children);
    const source = await startSource(
      children,
      Array.from({ length: count }, () => sink.port),
    );
    await delay(WARM_UP_MS);
    const rates = (): Promise<[number, number]> => Promise.all([cpuRate(sink.child.pid, seconds), cpuRate(source.pid, seconds)]);
    const [received, sent] = await withMedia(sink.child, count, rates);
    return { received, sent };
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

/** Their receivers get media from our sender, and our receiver gets media that their senders read from a UDP port. */
async function theirs(count: number, seconds: number): Promise<Cost> {
  return { received: await theirReceivers(count, seconds), sent: await theirSenders(count, seconds) };
}

async function theirReceivers(count: number, seconds: number): Promise<number> {
  const children: Child[] = [];
  try {
    const ports = await freePorts(count);
    const receivers = ports.map((port) => transmit(children, `srt://127.0.0.1:${port}?mode=listener&latency=${LATENCY_MS}`, 'file://con'));
    await delay(SETTLE_MS);
    await startSource(children, ports);
    await delay(WARM_UP_MS);
    return await sumOfRates(receivers, seconds);
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

async function theirSenders(count: number, seconds: number): Promise<number> {
  const children: Child[] = [];
  try {
    const sink = await startSink(children);
    const ports = await freePorts(count);
    const url = `srt://127.0.0.1:${sink.port}?mode=caller&latency=${LATENCY_MS}`;
    const senders = ports.map((port) => transmit(children, `udp://127.0.0.1:${port}`, url));
    await delay(SETTLE_MS);
    start(children, 'feed', [KBPS, ...ports]);
    const opened = (): boolean => [...sink.child.stdout.matchAll(/^open$/gm)].length >= count;
    await until(`${count} connections`, opened, { deadlineMs: DEADLINE_MS });
    await delay(WARM_UP_MS);
    return await withMedia(sink.child, count, () => sumOfRates(senders, seconds));
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

async function sumOfRates(children: readonly Child[], seconds: number): Promise<number> {
  const rates = await Promise.all(children.map((child) => cpuRate(child.pid, seconds)));
  return rates.reduce((sum, rate) => sum + rate, 0);
}

async function startSink(children: Child[]): Promise<{ readonly child: Child; readonly port: number }> {
  const child = start(children, 'receive', []);
  const [, port] = await child.printed(/port (\d+)/, DEADLINE_MS);
  return { child, port: Number(port) };
}

/** Starts a sender that calls the ports. */
async function startSource(children: Child[], ports: readonly number[]): Promise<Child> {
  const source = start(children, 'send', ports);
  const [, inputs = ''] = await source.printed(/^inputs (.+)$/m, DEADLINE_MS);
  start(children, 'feed', [KBPS, ...inputs.split(' ').map(Number)]);
  return source;
}

function start(children: Child[], mode: string, args: readonly number[]): Child {
  const child = new Child(process.execPath, [path.join(import.meta.dirname, 'lib/srt-peer.ts'), mode, ...args.map(String)], {
    name: `srt-peer ${mode}`,
  });
  children.push(child);
  return child;
}

/** Starts libsrt's program; its output is discarded. */
function transmit(children: Child[], from: string, to: string): Child {
  const child = new Child('sh', ['-c', `exec ${requireProgram('srt-live-transmit')} -q '${from}' '${to}' > /dev/null`]);
  children.push(child);
  return child;
}

/** Throws when much less arrives than is sent, because something else was measured then. The sink counts once a second. */
async function withMedia<T>(sink: Child, connections: number, work: () => Promise<T>): Promise<T> {
  const payloads = (): number => Number([...sink.stdout.matchAll(/^payloads (\d+)$/gm)].at(-1)?.[1] ?? 0);
  const startedAt = performance.now();
  const before = payloads();
  const result = await work();
  const share = (payloads() - before) / (connections * PAYLOADS_PER_MS * (performance.now() - startedAt));
  if (share < MIN_SHARE) throw new Error(`only ${Math.round(share * 100)} % of the media arrives over SRT`);
  return result;
}

export async function run({ seconds, rounds }: BenchOptions): Promise<Report> {
  const figures: Figure[] = [];
  for (const count of CONNECTIONS) {
    const span = Math.max(seconds, CONNECTION_SECONDS / count);
    const costs: { mine: Cost; other: Cost }[] = [];
    for (let round = 0; round < rounds; round += 1) costs.push({ mine: await ours(count, span), other: await theirs(count, span) });
    const perMbit = (of: (cost: { mine: Cost; other: Cost }) => number): number => median(costs.map(of)) / ((count * KBPS) / 1000);
    const name = `${count} connection${count === 1 ? '' : 's'}`;
    figures.push(
      {
        name: `received, ${name}`,
        value: perMbit(({ mine }) => mine.received),
        baseline: perMbit(({ other }) => other.received),
        unit: 'ms/Mbit',
        target: TARGET,
      },
      {
        name: `sent, ${name}`,
        value: perMbit(({ mine }) => mine.sent),
        baseline: perMbit(({ other }) => other.sent),
        unit: 'ms/Mbit',
        target: TARGET,
      },
    );
  }
  return {
    bench: 'srt',
    figures,
    notes: [
      `${KBPS} kbit/s for each connection in payloads of 1316 bytes, latency ${LATENCY_MS} ms, loopback, no encryption; nothing is subtracted`,
      'both read from UDP ports and write to /dev/null; ours: one process, all connections on one port; srt-live-transmit: a process for each',
    ],
  };
}
