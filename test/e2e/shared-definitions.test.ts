/** A pull and a push that are made at one node only: another node runs them when the first is drained, and the first when the other dies. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { pushes, startPush, stopPush } from '../harness/push.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { RedisServer } from '../support/redis-server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const DEADLINE = { deadlineMs: 20_000 };

let redis: RedisServer;
let source: TestServer;
let encoder: FfmpegPublisher;
let nodes: TestServer[] = [];
let pulled = '';

beforeAll(async () => {
  redis = await RedisServer.start();
  const [ovtPort = 0] = await freePorts(1);
  const shared = '<SharedWork><Group>g</Group><LeaseTime>3000</LeaseTime><ShareDefinitions>true</ShareDefinitions></SharedWork>';
  const origins = `<OriginMapStore><RedisServer><Host>${redis.address}</Host></RedisServer>${shared}</OriginMapStore>`;
  const node = { origins, push: '', withoutHls: true, segmentDuration: 1 };
  const [first, ...others] = await Promise.all([
    startServer({ ovtPort, withoutHls: true, withoutLlhls: true }),
    startServer(node),
    startServer(node),
  ]);
  [source, nodes] = [first, others];
  pulled = `ovt://127.0.0.1:${ovtPort}/app/live`;
  encoder = publish({ url: source.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  await encoder.sent(30);
}, 60_000);

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([source, ...nodes].map(async (server) => await server?.close()));
  await redis?.stop();
});

/** What a node lists, and of that what it does. */
async function workOf(node: TestServer): Promise<{ readonly lists: string; readonly does: string }> {
  const [streams, [push]] = await Promise.all([node.api.get<string[]>(STREAMS), pushes(node.api)]);
  const plays = (await fetch(node.http('pulled', 'llhls.m3u8'))).status === 200;
  const lists = [...streams, ...(push === undefined ? [] : [`push to ${push.streamKey}`])];
  return { lists: lists.join(), does: [plays ? 'pull' : '', push?.state === 'pushing' ? 'push' : ''].join('|') };
}

async function becomes(node: TestServer, wanted: Awaited<ReturnType<typeof workOf>>): Promise<void> {
  const text = JSON.stringify(wanted);
  await until(`a node with ${text}`, async () => JSON.stringify(await workOf(node)) === text, DEADLINE);
}

test('what only the API of one node defined is done by another one after a drain or a death, and deleted at either for both', async () => {
  const [a, b] = nodes as [TestServer, TestServer];
  await a.api.create(STREAMS, { name: 'pulled', urls: [pulled], properties: { persistent: true } });
  await startPush(a.api, { id: 'p', stream: 'pulled', protocol: 'rtmp', url: source.rtmp('').slice(0, -1), streamKey: 'pushed' });
  const lists = 'pulled,push to pushed';
  await becomes(a, { lists, does: 'pull|push' });
  await becomes(b, { lists, does: '|' });

  await a.api.call('POST', '/v1/server:drain');
  await becomes(b, { lists, does: 'pull|push' });
  await until('the receiver of the push', async () => (await source.api.get<string[]>(STREAMS)).includes('pushed'), DEADLINE);
  expect((await fetch(b.http('pulled', 'llhls.m3u8'))).status).toBe(200);

  await a.stop();
  await a.restart();
  await becomes(a, { lists, does: '|' });
  expect(await workOf(b)).toEqual({ lists, does: 'pull|push' });

  await b.kill();
  await becomes(a, { lists, does: 'pull|push' });
  await b.restart();
  await becomes(b, { lists, does: '|' });

  await stopPush(b.api, 'p');
  await b.api.call('DELETE', `${STREAMS}/pulled`);
  for (const node of [b, a]) await becomes(node, { lists: '', does: '|' });
  const kept = (): string[] =>
    nodes.flatMap(({ state }) => ['pulls', 'pushes', 'untold-changes'].flatMap((name) => readdirSync(path.join(state, name))));
  await until('the state folders to be empty', () => kept().length === 0, DEADLINE);
}, 90_000);
