/**
 * Whether clients delay each other: many publishers on the main thread beside programs that call the API, on the available cores. Measured
 * are the listing times of LL-HLS parts of some streams, the delay of the event loop by its own metric and by a timer of the bench, and the
 * API's response times; then the same while all publishers connect at once, and leave. `BENCH_OTHER=…/scripts/start.mjs` names the program
 * of another checkout, which takes turns with this one as the baseline. `CROWD_PUBLISHERS`, `CROWD_WATCHED` and `CROWD_REQUESTS` are their
 * numbers, `CROWD_NODE_OPTIONS` is for the server.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { until, within } from '../test/harness/poll.ts';
import { MAIN, startServer, type TestServer } from '../test/harness/server.ts';
import type { ClientAnswer, ClientOrder } from './lib/crowd-clients.ts';
import type { SenderAnswer, SenderOrder } from './lib/crowd-senders.ts';
import { median, percentile } from './lib/measure.ts';
import { memory, threadTime } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { sourceFile } from './lib/source.ts';
import { type TurnWatch, turnWatch } from './lib/turn-watch.ts';

const OTHER = process.env['BENCH_OTHER'] ?? '';
const PUBLISHERS = Number(process.env['CROWD_PUBLISHERS'] ?? 150);
const WATCHED = Number(process.env['CROWD_WATCHED'] ?? 20);
const REQUESTS = Number(process.env['CROWD_REQUESTS'] ?? 300);
const SETTLE_SECONDS = 12;
const END_SECONDS = 2;
const MIN_SECONDS = 30;
const ANSWER_DEADLINE_MS = 60_000;
const DELAY_TARGET_MS = 20;
const WINDOW = { segmentDuration: 2, segmentCount: 4 };
const DELAYS = 'millrace_event_loop_delay_seconds';

/** Measurements of a span of time. */
interface Window {
  readonly seconds: number;
  readonly server: number;
  readonly mainThread: number;
  /** Time that the main thread was ready but had no processor, ms per second. */
  readonly waited: number;
  /** Delays of the bench's timer, ms. */
  readonly delays: readonly number[];
  /** The server's own metric: an upper bound of the 99th percentile, ms. */
  readonly ownP99: number;
}

interface Sample {
  readonly start: Window & { readonly milliseconds: number };
  readonly steady: Window;
  readonly end: Window;
  readonly clients: Extract<ClientAnswer, { type: 'window' }>;
  readonly senders: Extract<SenderAnswer, { type: 'window' }>;
  readonly resident: number;
  /** CPU of both child processes, ms per second. */
  readonly generators: number;
  /** Idle time of all processors of the machine, ms per second. */
  readonly idle: number;
}

function child(name: string): ChildProcess {
  return fork(fileURLToPath(new URL(`./lib/${name}.ts`, import.meta.url)));
}

async function told<A extends { readonly type: string }, T extends A['type']>(
  process: ChildProcess,
  order: SenderOrder | ClientOrder,
  type: T,
): Promise<Extract<A, { type: T }>> {
  const answered = once(process, 'message') as Promise<[A]>;
  process.send(order);
  const [answer] = await within(`the answer to ${order.type}`, ANSWER_DEADLINE_MS, answered);
  if (answer.type !== type) throw new Error(`a child said ${answer.type}, not ${type}`);
  return answer as Extract<A, { type: T }>;
}

const sendersTold = <T extends SenderAnswer['type']>(process: ChildProcess, order: SenderOrder, type: T) =>
  told<SenderAnswer, T>(process, order, type);
const clientsTold = <T extends ClientAnswer['type']>(process: ChildProcess, order: ClientOrder, type: T) =>
  told<ClientAnswer, T>(process, order, type);

/** Total idle time of all processors, ms. */
function idleTime(): number {
  return cpus().reduce((sum, { times }) => sum + times.idle, 0);
}

/** CPU time of the main thread, and its wait for a processor, ms. */
function mainThread(pid: number): { readonly used: number; readonly waited: number } {
  const [used, waited] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number);
  return { used: (used ?? 0) / 1e6, waited: (waited ?? 0) / 1e6 };
}

/** Counts of the server's own histogram, by upper bound in seconds. */
async function ownDelays(server: TestServer): Promise<ReadonlyMap<number, number>> {
  const answer = await fetch(`${server.api.base}/metrics`, { headers: { authorization: server.api.authorization } });
  const page = await answer.text();
  const buckets = page.matchAll(new RegExp(`^${DELAYS}_bucket\\{le="([^"]+)"\\} (\\d+)`, 'gm'));
  return new Map([...buckets].map(([, bound = '', count]) => [bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), Number(count)]));
}

/** Upper bound of 99 % of the samples between two readings, ms. */
function p99Bound(before: ReadonlyMap<number, number>, after: ReadonlyMap<number, number>): number {
  const counts = [...after].map(([bound, count]) => ({ bound, count: count - (before.get(bound) ?? 0) }));
  const all = counts.at(-1)?.count ?? 0;
  return (counts.find(({ count }) => count >= 0.99 * all)?.bound ?? Number.NaN) * 1000;
}

/** Measures the server while `work` runs. */
async function windowOf(server: TestServer, watch: TurnWatch, work: () => Promise<unknown>): Promise<Window> {
  const own = await ownDelays(server);
  await watch.delays();
  const [since, total, main] = [performance.now(), threadTime(server.pid), mainThread(server.pid)];
  await work();
  const seconds = (performance.now() - since) / 1000;
  const after = mainThread(server.pid);
  const rate = (ms: number): number => ms / seconds;
  return {
    seconds,
    server: rate(threadTime(server.pid) - total),
    mainThread: rate(after.used - main.used),
    waited: rate(after.waited - main.waited),
    delays: await watch.delays(),
    ownP99: p99Bound(own, await ownDelays(server)),
  };
}

async function sample(main: string, source: string, seconds: number): Promise<Sample> {
  const watch = turnWatch(process.env['CROWD_NODE_OPTIONS']);
  // All publishers have one address, like those of a studio.
  const head = '<Limits><PerAddress><Publishers>0</Publishers><Viewers>0</Viewers></PerAddress></Limits>';
  const server = await startServer({ main, ...WINDOW, withoutHls: true, env: watch.env, head });
  const [senders, clients] = [child('crowd-senders'), child('crowd-clients')];
  try {
    const names = Array.from({ length: WATCHED }, (_, index) => `s${Math.floor((index * PUBLISHERS) / WATCHED)}`);
    const { api } = server;
    const film = seconds + SETTLE_SECONDS + 60;
    let milliseconds = 0;
    const start = await windowOf(server, watch, async () => {
      const order: SenderOrder = { type: 'publish', port: server.ports.rtmp, source, count: PUBLISHERS, seconds: film };
      ({ milliseconds } = await sendersTold(senders, order, 'published'));
      const streams = '/v1/vhosts/default/apps/app/streams';
      await until(`${PUBLISHERS} streams`, async () => (await api.get<string[]>(streams)).length === PUBLISHERS, { everyMs: 100 });
      await delay(1000);
    });
    await clientsTold(clients, { type: 'watch', playlists: names.map((name) => server.http(name, 'llhls.m3u8')) }, 'watching');
    clients.send({
      type: 'ask',
      api: api.base,
      authorization: api.authorization,
      perSecond: REQUESTS,
      streams: PUBLISHERS,
    } satisfies ClientOrder);
    await delay(SETTLE_SECONDS * 1000);
    await clientsTold(clients, { type: 'window' }, 'window');
    await sendersTold(senders, { type: 'window' }, 'window');
    const children = (): number => threadTime(senders.pid ?? 0) + threadTime(clients.pid ?? 0);
    const [generatorsBefore, idleBefore] = [children(), idleTime()];
    const steady = await windowOf(server, watch, () => delay(seconds * 1000));
    const [generators, idle] = [(children() - generatorsBefore) / steady.seconds, (idleTime() - idleBefore) / steady.seconds];
    const asked = await clientsTold(clients, { type: 'window' }, 'window');
    const sent = await sendersTold(senders, { type: 'window' }, 'window');
    const { resident } = memory(server.pid);
    clients.send({ type: 'rest' } satisfies ClientOrder);
    const end = await windowOf(server, watch, async () => {
      await sendersTold(senders, { type: 'end' }, 'ended');
      await delay(END_SECONDS * 1000);
    });
    return { start: { ...start, milliseconds }, steady, end, clients: asked, senders: sent, resident, generators, idle };
  } finally {
    senders.kill('SIGKILL');
    clients.kill('SIGKILL');
    await server.close();
  }
}

function figures(own: readonly Sample[], others: readonly Sample[]): Figure[] {
  const figure = (name: string, unit: string, of: (sample: Sample) => number, target?: number): Figure => {
    const value = median(own.map(of));
    if (others.length > 0) return { name, unit, value, baseline: median(others.map(of)) };
    return { name, unit, value, ...(target !== undefined && { target }) };
  };
  const most = (values: readonly number[]): number => values.reduce((one, other) => Math.max(one, other), 0);
  const latencies = ({ clients }: Sample): number[] => Object.values(clients.latencies).flat();
  const kinds = [...new Set(own.flatMap(({ clients }) => Object.keys(clients.latencies)))];
  const [
    {
      clients: { partTarget },
    } = { clients: { partTarget: 0 } },
  ] = own;
  return [
    figure('event loop delay, p50', 'ms', ({ steady }) => percentile(steady.delays, 50)),
    figure('  p99', 'ms', ({ steady }) => percentile(steady.delays, 99), DELAY_TARGET_MS),
    figure('  most', 'ms', ({ steady }) => most(steady.delays)),
    figure('  p99 by its metric, at most', 'ms', ({ steady }) => steady.ownP99),
    figure('  time without a processor', 'ms/s', ({ steady }) => steady.waited),
    figure('part listed later than its pace, p50', 'ms', ({ clients }) => percentile(clients.parts, 50)),
    figure('  p99', 'ms', ({ clients }) => percentile(clients.parts, 99)),
    figure('  most', 'ms', ({ clients }) => most(clients.parts), partTarget * 1000),
    figure(
      '  parts listed, of those that were due',
      '%',
      ({ clients, steady }) => (100 * clients.parts.length) / ((WATCHED * steady.seconds) / partTarget),
    ),
    figure('API answers', '/s', (one) => (latencies(one).length - one.clients.refused) / one.steady.seconds),
    figure('  refused', '', ({ clients }) => clients.refused, 0),
    figure('  p50', 'ms', (one) => percentile(latencies(one), 50)),
    figure('  p99', 'ms', (one) => percentile(latencies(one), 99)),
    ...kinds.map((kind) => figure(`  p99, ${kind}`, 'ms', ({ clients }) => percentile(clients.latencies[kind] ?? [], 99))),
    figure('CPU per stream, API and viewers included', 'ms/s', ({ steady }) => steady.server / PUBLISHERS),
    figure('  main thread', 'ms/s', ({ steady }) => steady.mainThread / PUBLISHERS),
    figure('resident memory', 'MB', ({ resident }) => resident),
    figure(`${PUBLISHERS} publishers come: until all may send`, 'ms', ({ start }) => start.milliseconds),
    figure('  event loop delay, p99', 'ms', ({ start }) => percentile(start.delays, 99)),
    figure('  most', 'ms', ({ start }) => most(start.delays)),
    figure('all leave: event loop delay, p99', 'ms', ({ end }) => percentile(end.delays, 99)),
    figure('  most', 'ms', ({ end }) => most(end.delays)),
    figure('generators: CPU', 'ms/s', ({ generators }) => generators),
    figure('  left of all processors', 'ms/s', ({ idle }) => idle),
    figure('  frame later than due, p99', 'ms', ({ senders }) => senders.lateP99),
    figure('    most', 'ms', ({ senders }) => senders.lateMost),
    figure('  publishers that were ended', '', ({ senders }) => PUBLISHERS - senders.open, 0),
  ];
}

export async function run(options: BenchOptions): Promise<Report> {
  const source = await sourceFile();
  const seconds = Math.max(options.seconds, MIN_SECONDS);
  const own: Sample[] = [];
  const others: Sample[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    if (OTHER !== '') others.push(await sample(OTHER, source, seconds));
    own.push(await sample(MAIN, source, seconds));
  }
  return {
    bench: 'crowd',
    figures: figures(own, others),
    notes: [
      `${PUBLISHERS} publishers of 720p30 at 2.5 Mbit/s over RTMP, ${WATCHED} of their streams watched by blocking reloads, ${REQUESTS} API requests a second, ${seconds} s`,
      'publishers, viewers and API clients share the cores with the server, at the lowest priority (nice 19): elsewhere they have machines of their own.',
      'What they report as late is theirs as well as the server’s: an upper bound. The bench’s timer wakes the main thread a hundred times a second more',
    ],
  };
}
