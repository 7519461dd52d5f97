/**
 * The cluster of `deploy/cluster/` with real programs: viewers behind nginx while an edge dies, returns, and the other edge is drained.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openBrowser } from '../harness/browser.ts';
import { Cluster, type ClusterNode } from '../harness/cluster.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { figure } from '../harness/metrics-page.ts';
import { until } from '../harness/poll.ts';
import { Prometheus } from '../harness/prometheus.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { ROOT } from '../harness/server.ts';
import { allBlocksIn } from '../support/page-blocks.ts';

const DEADLINE = { deadlineMs: 40_000 };
/** Viewers that nginx sends to the first edge, and to the second. */
const VIEWERS = ['viewer four', 'viewer two'] as const;
/** A reload takes a part, 0.5 s; a viewer of an edge that first has to pull the stream waits for that, too. */
const MAX_RELOAD_MS = 3000;

let cluster: Cluster;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  cluster = await Cluster.start();
  encoder = publish({ url: cluster.rtmp('live'), gop: 60 });
  await encoder.sent(60);
}, 90_000);

afterAll(async () => {
  await encoder?.stop();
  await cluster?.close();
});

const agent = (name: string) => ({ 'user-agent': name });
const playlist = async (name: string): Promise<number> => (await fetch(cluster.url('live', 'llhls.m3u8'), { headers: agent(name) })).status;

async function sentBy(node: ClusterNode): Promise<number> {
  return figure(await node.metrics(), 'millrace_sent_bytes_total') ?? 0;
}

/** Waits until all readers have reloaded `times` more. */
async function reloaded(readers: readonly LlhlsReader[], times: number): Promise<void> {
  const before = readers.map(({ reloads }) => reloads);
  await until('reloads', () => readers.every(({ reloads }, index) => reloads >= (before[index] ?? 0) + times), DEADLINE);
}

test('viewers keep playing while an edge is killed and restarted, and while the other edge is drained', async () => {
  const [first, second] = cluster.edges;
  await until('the stream to play', async () => (await playlist(VIEWERS[0])) === 200, DEADLINE);
  const readers = await Promise.all(
    VIEWERS.map(async (name) => await LlhlsReader.open([cluster.url('live', 'llhls.m3u8')], { headers: agent(name) })),
  );
  onTestFinished(async () => void (await Promise.all(readers.map(async (reader) => await reader.stop()))));
  const browser = await openBrowser();
  onTestFinished(async () => await browser.close());
  const player = await browser.play(cluster.url('live', 'llhls.m3u8'));
  await player.played(2, 40_000);
  await reloaded(readers, 6);
  // Each has a reader of its own.
  for (const edge of cluster.edges) expect(await sentBy(edge), edge.name).toBeGreaterThan(100_000);

  const before = await player.state();
  await first.child.kill();
  await reloaded(readers, 10);
  await player.played(5, 40_000);
  expect(await first.health()).toBe(0);

  await first.start();
  const began = await sentBy(first);
  await until('the first edge to serve again', async () => (await sentBy(first)) > began + 100_000, DEADLINE);
  await reloaded(readers, 4);

  // New viewers go to the other edge. Present viewers stay, and are counted although they have no sessions.
  const drained = await second.api.call('POST', '/v1/server:drain');
  expect(drained.body).toMatchObject({ response: { draining: true, publishers: 0 } });
  expect((drained.body as { response: { sessions: number } }).response.sessions).toBeGreaterThan(0);
  await until('the second edge to be drained', async () => (await second.health()) === 503);
  // Alive, by the probe of the chart.
  expect(await sentBy(second)).toBeGreaterThan(0);
  const refusals = async (node: ClusterNode): Promise<number> =>
    (await fetch(`http://127.0.0.1:${node.ports.http}/app/live/llhls.m3u8`)).status;
  await until('the threads of the edge refuse viewers', async () => (await refusals(second)) === 503);
  expect(await Promise.all(VIEWERS.map(playlist))).toEqual([200, 200]);
  second.child.signal('SIGTERM');
  await until('the signal to be heard', () => second.child.output.includes('SIGTERM: the server stops when all clients have left'));
  await reloaded(readers, 6);
  expect(second.child.exit).toBeNull();
  // A second signal forces the stop.
  second.child.signal('SIGTERM');
  expect(await second.child.exited).toEqual({ code: 0, signal: null });
  await reloaded(readers, 10);

  const after = await player.state();
  expect([after.stalls - before.stalls, after.errors.slice(before.errors.length), after.restarts]).toEqual([0, [], 0]);
  for (const reader of readers) {
    await reader.stop();
    expect(reader.faults).toEqual([]);
    expect(reader.slowest).toBeLessThan(MAX_RELOAD_MS);
    const numbers = [...reader.segments.keys()].sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from(numbers, (_, index) => (numbers[0] ?? 0) + index));
  }
}, 180_000);

test('the API answers inside of a container, by the command of the page', async () => {
  const block = allBlocksIn('docs/guide/cluster.md').find(({ text }) => text.includes(' exec origin'));
  const [, words = ''] = /dist\/main\.js (.*)/.exec(block?.text ?? '') ?? [];
  expect(await cluster.origin.exec(words.trim().split(' '))).toContain('default/app/live');
});

test("the chart's autoscaler query returns the bytes that an edge sends", async () => {
  const file = readFileSync(path.join(ROOT, 'deploy/helm/prometheus-adapter.yaml'), 'utf8');
  const { rules } = load(file) as { rules: { custom: readonly { metricsQuery: string; name: { matches: string } }[] } };
  const [rule] = rules.custom;
  // The adapter's values for a pod.
  const query = rule?.metricsQuery
    .replace('<<.Series>>', rule.name.matches.replace(/[$^]/g, ''))
    .replace('<<.LabelMatchers>>', 'job="millrace"')
    .replace('<<.GroupBy>>', 'instance');
  const [edge] = cluster.edges;
  const reader = await LlhlsReader.open([`http://127.0.0.1:${edge.ports.http}/app/live/llhls.m3u8`]);
  onTestFinished(async () => await reader.stop());
  const prometheus = await Prometheus.start(`127.0.0.1:${edge.ports.metrics}`, 'none');
  onTestFinished(async () => await prometheus.close());
  const value = async (expression: string): Promise<number> => Number((await prometheus.query(expression))[0]?.value[1]);
  const series = 'millrace_sent_bytes_total[1m]';
  const grown = await value(`max_over_time(${series}) - min_over_time(${series})`);
  expect(grown).toBeGreaterThan(100_000);
  // The rate over a minute, of which only some seconds have data; the result may be off by one scrape at either end.
  const perMinute = (await value(query ?? '')) * 60;
  expect(perMinute / grown).toBeGreaterThan(0.9);
  expect(perMinute / grown).toBeLessThan(2);
});

test('an unknown stream is 404 on each edge', async () => {
  expect(
    await Promise.all(VIEWERS.map(async (name) => (await fetch(cluster.url('nowhere', 'llhls.m3u8'), { headers: agent(name) })).status)),
  ).toEqual([404, 404]);
});
