/** Two edges of one origin use the same numbers, so that a load balancer may switch viewers between them at any time. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openBrowser } from '../harness/browser.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SwitchingProxy } from '../harness/switching-proxy.ts';

const DEADLINE = { deadlineMs: 40_000 };
const SEGMENT = 2;
const RELOADS = 30;
const PLAYED_SECONDS = 8;
const WINDOWS = 3;

let origin: TestServer;
const edges: TestServer[] = [];
let encoder: FfmpegPublisher;

beforeAll(async () => {
  const [ovtPort = 0] = await freePorts(1);
  const origins = `<Origins><Origin><Location>/</Location>
    <Pass><Scheme>ovt</Scheme><Urls><Url>127.0.0.1:${ovtPort}/</Url></Urls></Pass></Origin></Origins>`;
  origin = await startServer({ ovtPort, withoutHls: true, segmentDuration: SEGMENT });
  // Segments of this length cannot end at the keyframes.
  encoder = publish({ url: origin.rtmp('live'), gop: 25 });
  await encoder.sent(60);
  // The edges' own settings have no effect on relayed streams.
  for (const segmentDuration of [1, 4]) edges.push(await startServer({ origins, segmentDuration, withoutHls: true, originMode: true }));
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([origin, ...edges].map(async (server) => await server?.close()));
});

const playlist = (edge: TestServer): string => edge.http('live', 'llhls.m3u8');

async function playable(edge: TestServer): Promise<void> {
  await until('the edge to play', async () => (await fetch(playlist(edge))).status === 200, DEADLINE);
}

/** Content of a file at each edge. */
async function copies(uri: string): Promise<readonly Buffer[]> {
  return await Promise.all(edges.map(async (edge) => Buffer.from(await (await fetch(edge.http('live', uri))).arrayBuffer())));
}

test('a reader that switches between edges finds the same segments and parts at both', async () => {
  const [first, second] = edges as [TestServer, TestServer];
  await playable(first);
  // The second edge begins to pull later, at another position in a segment.
  await encoder.sent(100);
  await playable(second);
  const readers = await Promise.all(
    [false, true].map(async (audio) => await LlhlsReader.open([playlist(first), playlist(second)], { every: 3, audio })),
  );
  onTestFinished(async () => void (await Promise.all(readers.map(async (reader) => await reader.stop()))));
  await until('reloads', () => readers.every(({ reloads }) => reloads > RELOADS), DEADLINE);
  for (const reader of readers) {
    await reader.stop();
    expect(reader.faults).toEqual([]);
    expect(reader.playlist?.targetDuration).toBe(SEGMENT);
    // Each part is available in time at every edge.
    expect(reader.slowest).toBeLessThan(2500);
    const uris = [...reader.segments.values()].flatMap(({ uri, map }) => (uri === null ? [] : [uri, map ?? uri]));
    expect(uris.length).toBeGreaterThan(4);
    for (const uri of uris.slice(-6)) {
      const [one, other] = await copies(uri);
      expect(one?.length).toBeGreaterThan(100);
      expect(Buffer.compare(one ?? Buffer.alloc(0), other ?? Buffer.alloc(0)), uri).toBe(0);
    }
  }
});

test('hls.js plays on while a load balancer sends it from edge to edge', async () => {
  await Promise.all(edges.map(playable));
  const proxy = await SwitchingProxy.start(
    edges.map(({ ports }) => ports.http),
    4,
  );
  onTestFinished(async () => await proxy.stop());
  const browser = await openBrowser();
  onTestFinished(async () => await browser.close());
  const player = await browser.play(`http://127.0.0.1:${proxy.port}/app/live/llhls.m3u8`);
  await player.played(2, 40_000);
  // Each window is judged separately, because a busy machine stalls players, too.
  let stalls = Number.POSITIVE_INFINITY;
  for (let window = 0; window < WINDOWS && stalls > 0; window += 1) {
    const before = await player.state();
    const state = await player.played(PLAYED_SECONDS, 40_000);
    stalls = state.stalls - before.stalls + state.errors.length - before.errors.length;
    expect(state.restarts).toBe(0);
  }
  expect(stalls).toBe(0);
  expect(proxy.refusals).toEqual([]);
  expect(Math.min(...proxy.requests)).toBeGreaterThan(20);
});
