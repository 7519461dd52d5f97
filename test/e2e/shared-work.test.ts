/** Nodes with the same pull, channel and push: one node does each, and another takes over from a dead or drained node. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { RedisServer } from '../support/redis-server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const LEASE_MS = 3000;

let redis: RedisServer;
let folder: string;
let source: TestServer;
let encoder: FfmpegPublisher;
const nodes: TestServer[] = [];

beforeAll(async () => {
  redis = await RedisServer.start();
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-shared-'));
  for (const name of ['media', 'files']) mkdirSync(path.join(folder, name));
  writeFileSync(path.join(folder, 'files', 'tv.sch'), '<Schedule/>');
  const [ovtPort = 0] = await freePorts(1);
  const shared = `<SharedWork><Group>g</Group><LeaseTime>${LEASE_MS}</LeaseTime></SharedWork>`;
  const origins = `<OriginMapStore><RedisServer><Host>${redis.address}</Host></RedisServer>${shared}</OriginMapStore>`;
  const files = `<MediaRootDir>${folder}/media</MediaRootDir><ScheduleFilesDir>${folder}/files</ScheduleFilesDir>`;
  source = await startServer({ ovtPort, withoutHls: true, withoutLlhls: true });
  for (let n = 0; n < 2; n += 1) {
    nodes.push(await startServer({ origins, push: '', providers: `<Schedule>${files}</Schedule>`, withoutHls: true, segmentDuration: 1 }));
  }
  encoder = publish({ url: source.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  await encoder.sent(30);
  const pull = { name: 'pulled', urls: [`ovt://127.0.0.1:${ovtPort}/app/live`], properties: { persistent: true } };
  const push = { id: 'p', stream: { name: 'pulled' }, protocol: 'rtmp', url: source.rtmp('').slice(0, -1), streamKey: 'pushed' };
  for (const node of nodes) {
    await node.api.create(STREAMS, pull);
    await node.api.create(`${apiPath.app('default', 'app')}:startPush`, push);
  }
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([source, ...nodes].map(async (server) => await server?.close()));
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A node's present work. */
async function workOf(node: TestServer): Promise<string> {
  const plays = (await fetch(node.http('pulled', 'llhls.m3u8'))).status === 200;
  const channels = (await node.api.get<string[]>(STREAMS)).includes('tv');
  const [push] = ((await node.api.call('POST', `${apiPath.app('default', 'app')}:pushes`, {})).body as { response: { state: string }[] })
    .response;
  return [plays ? 'pull' : '', channels ? 'channel' : '', push?.state === 'pushing' ? 'push' : ''].join('|');
}

/** Resolves with the worker of each work, when each is done by exactly one of `alive`. */
async function divided(alive: readonly TestServer[]): Promise<string[]> {
  return await until(
    'each work to be done once',
    async () => {
      const works = await Promise.all(alive.map(workOf));
      const isOnce = ['pull', 'channel', 'push'].every((work) => works.filter((done) => done.split('|').includes(work)).length === 1);
      return isOnce ? works : null;
    },
    { deadlineMs: 20_000 },
  );
}

test('a node takes over the work of a dead node after its lease, and a drained node hands its work over', async () => {
  await divided(nodes);
  // Only the pulling node has a stream to push.
  const [first, second] = nodes as [TestServer, TestServer];
  const [holder, other] = (await workOf(first)).startsWith('pull') ? [first, second] : [second, first];
  await holder.kill();
  expect(await divided([other])).toEqual(['pull|channel|push']);
  await holder.restart();
  // The node starts no work of the other.
  await divided(nodes);
  expect(await workOf(other)).toBe('pull|channel|push');

  await other.api.call('POST', '/v1/server:drain');
  await until('the drained node to stop', async () => (await other.api.get<string[]>(STREAMS)).includes('tv') === false);
  await until('the work to be taken over', async () => (await workOf(holder)) === 'pull|channel|push', { deadlineMs: 20_000 });
  const owners = await Promise.all(
    ['pull/default/app/pulled', 'scheduled/default/app/tv', 'push/default/app/p'].map((work) => redis.value(`millrace:{g}:lease:${work}`)),
  );
  expect(new Set(owners.map((owner) => owner?.split(' ')[0])).size).toBe(1);
}, 90_000);
