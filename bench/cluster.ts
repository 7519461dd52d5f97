/**
 * An origin and up to three edges: the cost of viewers as edges are added, the cost of an edge for the origin, and the time to the first
 * frame through an edge. All run on one machine, so all figures except the last are CPU times of processes. `CLUSTER_PARTS=llhls,webrtc`
 * selects parts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { apiPath } from '../test/harness/api-client.ts';
import type { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import type { TestServer } from '../test/harness/server.ts';
import type { EdgeLoadOrder } from './lib/edge-load.ts';
import { EdgeTopology, withViewers } from './lib/edge-topology.ts';
import { firstLlhlsFrame, firstWebrtcFrame } from './lib/first-frame.ts';
import { median, percentile } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { compileDrain } from './lib/socket-drain.ts';
import { publishSource, SOURCE_GOP_SECONDS, sourceFile } from './lib/source.ts';

const EDGES = [1, 2, 3];
/** Viewers of each edge. */
const VIEWERS = 100;
/**
 * Allowed cost of a viewer with two or three edges, relative to one edge. Much less is as wrong as more: edges share nothing that a further one could
 * make cheaper, so the cost with one edge was then measured too high.
 */
const LINEAR = { least: 0.9, target: 1.1 };
const STREAMS = 10;
const WARM_UP_MS = 5000;
/** Pause before and after measurements, ms. */
const REST_MS = 1000;
/** New viewers of each kind in a round. */
const FIRSTS = 15;
/** New viewers within a GOP, few enough not to disturb each other. */
const MAX_FIRSTS_AT_ONCE = 5;
/** The stream that all viewers watch; `withTopology` names streams by number. */
const STREAM = 's0';
const COLLECTION = `${apiPath.app('default', 'app')}/streams`;

/** Opens origin and edges with `streams` streams at the origin for `work`, and closes them afterwards. */
async function withTopology<T>(streams: number, work: (topology: EdgeTopology, names: readonly string[]) => Promise<T>): Promise<T> {
  const source = await sourceFile();
  const topology = await EdgeTopology.open(EDGES.length);
  const names = Array.from({ length: streams }, (_, n) => `s${n}`);
  const encoders: Child[] = [];
  try {
    for (const name of names) encoders.push(publishSource(source, topology.origin.rtmp(name)));
    await until(`${streams} streams`, async () => (await topology.origin.api.get<string[]>(COLLECTION)).length === streams);
    await delay(WARM_UP_MS);
    return await work(topology, names);
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await topology.close();
  }
}

async function hasStreams(server: TestServer, count: number): Promise<void> {
  await until(`${count} streams at the edge`, async () => (await server.api.get<string[]>(COLLECTION)).length === count);
}

/** CPU that each further edge with `STREAMS` streams costs the origin, and that an edge without viewers uses itself; ms/s per stream. */
async function originCosts({ seconds, rounds }: BenchOptions): Promise<Figure[]> {
  const further = EDGES.map((): number[] => []);
  const atEdges: number[] = [];
  const alone: number[] = [];
  await withTopology(STREAMS, async (topology, names) => {
    const idle = await topology.rates(seconds);
    for (let round = 0; round < rounds; round += 1) {
      let [before = 0] = await topology.rates(seconds);
      alone.push(before / STREAMS);
      for (const [n, edge] of topology.edges.entries()) {
        for (const name of names)
          await edge.api.create(COLLECTION, { name, urls: [topology.source(name)], properties: { persistent: true, relay: true } });
        await hasStreams(edge, STREAMS);
        await delay(REST_MS);
        const rates = await topology.rates(seconds);
        further[n]?.push(((rates[0] ?? 0) - before) / STREAMS);
        atEdges.push(((rates[n + 1] ?? 0) - (idle[n + 1] ?? 0)) / STREAMS);
        before = rates[0] ?? 0;
      }
      for (const edge of topology.edges) {
        for (const name of names) await edge.api.call('DELETE', apiPath.stream(name));
        await hasStreams(edge, 0);
      }
      await delay(REST_MS);
    }
  });
  const baseline = median(alone);
  return [
    ...EDGES.map((edges, n) => ({
      name: `CPU of the origin for a stream, more with edge ${edges}`,
      value: median(further[n] ?? []),
      unit: 'ms/s',
      baseline,
      remark: n === 0 ? `baseline: without edges; ${STREAMS} streams, nobody watches` : '',
    })),
    { name: 'CPU of an edge for a stream that nobody watches', value: median(atEdges), unit: 'ms/s' },
  ];
}

/** CPU of all edges per viewer, ms/s, with one, two and three edges. */
async function viewerCosts(
  { title, unit }: { title: string; unit: string },
  { seconds, rounds }: BenchOptions,
  order: (ports: readonly number[]) => EdgeLoadOrder,
  remark: (each: number, least: number, bytes: number) => string,
): Promise<Figure[]> {
  const costs = EDGES.map((): number[] => []);
  const remarks = EDGES.map(() => '');
  const units: number[] = [];
  await withTopology(1, async (topology) => {
    const idle = await topology.rates(seconds);
    // Code is compiled in its first run, at every edge.
    await withViewers(order(topology.edges.map(({ ports }) => ports.http)), () => delay(WARM_UP_MS));
    for (let round = 0; round < rounds; round += 1) {
      // Each round begins with another number of edges, so that cold caches do not always hit the same number.
      for (let turn = 0; turn < EDGES.length; turn += 1) {
        const at = (turn + round) % EDGES.length;
        const edges = topology.edges.slice(0, EDGES[at]);
        const { result, counted } = await withViewers(order(edges.map(({ ports }) => ports.http)), async () => {
          await delay(REST_MS);
          return await topology.rates(seconds);
        });
        if (counted.failed > 0) throw new Error(`${counted.failed} of the viewers' requests failed`);
        const used = edges.reduce((sum, _edge, n) => sum + (result[n + 1] ?? 0) - (idle[n + 1] ?? 0), 0);
        const viewers = edges.length * VIEWERS;
        costs[at]?.push(used / viewers);
        units.push((used * 1000 * counted.seconds) / (counted.each * viewers));
        remarks[at] = remark(
          counted.each / counted.seconds,
          counted.least / counted.seconds,
          (counted.bytes ?? 0) / viewers / counted.seconds,
        );
        await delay(REST_MS);
      }
    }
  });
  const [one] = costs.map(median);
  return [
    { name: `CPU for each viewer over ${title}, 1 edge of ${VIEWERS} viewers`, value: one ?? 0, unit: 'ms/s', remark: remarks[0] ?? '' },
    ...EDGES.slice(1).map((edges, n) => ({
      name: `CPU for each viewer over ${title}, ${edges} edges of ${VIEWERS} viewers`,
      value: median(costs[n + 1] ?? []),
      unit: 'ms/s',
      baseline: one ?? 0,
      ...LINEAR,
      remark: remarks[n + 1] ?? '',
    })),
    { name: `CPU of an edge for each ${unit} over ${title}`, value: median(units), unit: 'µs' },
  ];
}

/** Times to the first frame: at an edge with the stream, at an edge without it, and at the origin. */
function firstFigures(title: string, atOrigin: readonly number[], warm: readonly number[], cold: readonly number[]): Figure[] {
  return [
    { has: 'with', times: warm },
    { has: 'without', times: cold },
  ].flatMap(({ has, times }) =>
    [50, 99].map((percent) => ({
      name: `first frame over ${title} at an edge ${has} the stream, ${percent === 50 ? 'median' : 'p99'}`,
      value: percentile(times, percent),
      unit: 'ms',
      baseline: percentile(atOrigin, percent),
      remark: percent === 50 ? `${times.length} viewers; baseline: ${atOrigin.length} at the origin` : '',
    })),
  );
}

/** Times of `count` new viewers, spread between two keyframes, `at once` of them at a time; `prepare` runs before each group. */
async function firstTimes(
  first: typeof firstLlhlsFrame,
  { ports }: TestServer,
  { count, atOnce, pauseMs }: { count: number; atOnce: number; pauseMs: number },
  prepare: () => Promise<void> = () => Promise.resolve(),
): Promise<number[]> {
  const times: number[] = [];
  while (times.length < count) {
    await prepare();
    const group = Array.from({ length: atOnce }, async () => {
      await delay(Math.random() * pauseMs);
      return await first(ports.http, STREAM);
    });
    times.push(...(await Promise.all(group)));
  }
  return times;
}

/**
 * ms to the first frame of new viewers. WebRTC viewers start at the next keyframe, so they come together; an edge without the stream can
 * have only one.
 */
async function firstFrames(title: string, first: typeof firstLlhlsFrame, { rounds }: BenchOptions): Promise<Figure[]> {
  return await withTopology(1, async ({ origin, edges: [edge] }) => {
    if (edge === undefined) throw new Error('there is no edge');
    const veryFirst = await first(edge.ports.http, STREAM);
    await first(origin.ports.http, STREAM);
    const many = { count: rounds * FIRSTS, atOnce: MAX_FIRSTS_AT_ONCE, pauseMs: SOURCE_GOP_SECONDS * 1000 };
    const atOrigin = await firstTimes(first, origin, many);
    const warm = await firstTimes(first, edge, many);
    const cold = await firstTimes(first, edge, { ...many, atOnce: 1 }, async () => {
      await edge.api.call('DELETE', apiPath.stream(STREAM));
      await hasStreams(edge, 0);
    });
    return [
      ...firstFigures(title, atOrigin, warm, cold),
      {
        name: `first frame over ${title} of the first stream that any edge asks an origin for`,
        value: veryFirst,
        unit: 'ms',
        remark: '1 viewer',
      },
    ];
  });
}

export async function run(options: BenchOptions): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  const parts: Record<string, () => Promise<Figure[]>> = {
    origin: async () => await originCosts(options),
    llhls: async () =>
      await viewerCosts(
        { title: 'LL-HLS', unit: 'part with its playlist' },
        options,
        (ports) => ({ type: 'llhls', ports, viewers: VIEWERS, stream: STREAM }),
        (each, _least, bytes) => `${each.toFixed(2)} parts a second and viewer, ${((bytes * 8) / 1e6).toFixed(2)} Mbit/s`,
      ),
    webrtc: async () => {
      const drain = await compileDrain(folder);
      return await viewerCosts(
        { title: 'WebRTC', unit: 'packet' },
        options,
        (ports) => ({ type: 'webrtc', ports, viewers: VIEWERS, stream: STREAM, drain }),
        (each, least) => `${each.toFixed(0)} packets a second and viewer, ${least.toFixed(0)} at the worst`,
      );
    },
    'first-llhls': async () => await firstFrames('LL-HLS', firstLlhlsFrame, options),
    'first-webrtc': async () => await firstFrames('WebRTC', firstWebrtcFrame, options),
  };
  const chosen = process.env['CLUSTER_PARTS']?.split(',') ?? Object.keys(parts);
  const figures: Figure[] = [];
  try {
    for (const name of chosen) {
      const part = parts[name];
      if (part === undefined) throw new Error(`CLUSTER_PARTS: there is no part '${name}', but ${Object.keys(parts).join(', ')}`);
      figures.push(...(await part()));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return {
    bench: 'cluster',
    figures,
    notes: [
      'one machine: an origin that takes 720p30 of 2.5 Mbit/s with AAC over RTMP, three edges over OVT; CPU of the whole process less what it uses idle',
      'LL-HLS: plain HTTP, no sessions, blocking reloads of video and audio with gzip, parts of 0.5 s; WebRTC: DTLS, SRTP, real ICE',
      'the first frame over LL-HLS: multivariant and media playlist, initialisation and the newest part with a keyframe, on one connection',
    ],
  };
}
