/** Nodes that share a Redis: one is drained, Redis fails and returns, a node ends when it is empty. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { RedisServer } from '../support/redis-server.ts';

let redis: RedisServer;
let edge: TestServer;
const origins: TestServer[] = [];
const encoders: FfmpegPublisher[] = [];
let ports: readonly number[];

beforeAll(async () => {
  redis = await RedisServer.start();
  const [edgePort = 0, ...originPorts] = await freePorts(3);
  ports = originPorts;
  const store = (inside: string) =>
    `<OriginMapStore>${inside}<RedisServer><Url>redis://${redis.address}</Url></RedisServer></OriginMapStore>`;
  const own = store('<OriginHostName>127.0.0.1</OriginHostName>');
  const head = '<Drain><GracePeriod>60000</GracePeriod></Drain>';
  edge = await startServer({ segmentDuration: 1, origins: store(''), ovtPort: edgePort });
  for (const ovtPort of ports) origins.push(await startServer({ ovtPort, origins: own, withoutHls: true, head }));
});

afterAll(async () => {
  await Promise.all(encoders.map(async (encoder) => await encoder.stop()));
  await Promise.all([edge, ...origins].map(async (server) => await server?.close()));
  await redis?.stop();
});

const address = (index: number): string => `ovt://127.0.0.1:${ports[index]}/app/live`;
const health = async (server: TestServer): Promise<[number, unknown]> => {
  const response = await fetch(`${server.api.base}/health`);
  return [response.status, ((await response.json()) as { status: string }).status];
};

async function publishTo(origin: TestServer | undefined): Promise<FfmpegPublisher> {
  const encoder = publish({ url: origin?.rtmp('live') ?? '', width: 320, height: 180, videoKbps: 200 });
  encoders.push(encoder);
  await encoder.sent(30);
  return encoder;
}

/** Plays the present media of the edge up to the newest segment. */
async function plays(): Promise<boolean> {
  return (await probe(edge.http('live', 'llhls.m3u8'))).video?.codec_name === 'h264';
}

test('viewers of an edge stay while a node is drained, while Redis is away, and until a node has ended', async () => {
  const [first, second] = origins;
  const encoder = await publishTo(first);
  await until('the stream to be in Redis', async () => (await redis.value('app/live')) === address(0));
  await until('the edge to play', plays);

  // Drained: the node takes no new viewers and leaves the map, and waiting streams take over at the other node.
  const drained = await first?.api.call('POST', '/v1/server:drain');
  expect(drained?.body).toMatchObject({ response: { draining: true, publishers: 1 } });
  await until('the entry to go', async () => (await redis.value('app/live')) === null);
  expect(await health(first as TestServer)).toEqual([503, 'draining']);
  expect((await fetch(first?.http('live', 'llhls.m3u8') ?? '')).status).toBe(503);
  await publishTo(second);
  await until('the other node to be in Redis', async () => (await redis.value('app/live')) === address(1));
  expect(await plays()).toBe(true);

  // Redis fails: running streams continue, lookups fail, and everything recovers when it returns.
  await redis.stop();
  await until('the edge is degraded', async () => (await health(edge))[1] === 'degraded');
  const unknown = await fetch(edge.http('other', 'llhls.m3u8'));
  expect([unknown.status, await unknown.text()]).toEqual([503, expect.stringContaining('the origin map does not answer')]);
  expect(await plays()).toBe(true);
  await redis.restart();
  await until('the entry to be back', async () => (await redis.value('app/live')) === address(1));
  await until('the edge to be well', async () => (await health(edge))[1] === 'ok');
  expect((await fetch(edge.http('other', 'llhls.m3u8'))).status).toBe(404);

  // A stopping node waits for its publisher.
  process.kill(first?.pid ?? 0, 'SIGTERM');
  await until('the signal to be heard', () => first?.log.includes('SIGTERM: the server stops when all clients have left') === true);
  expect(first?.child.exit).toBeNull();
  await encoder.stop();
  await until('the node to end', () => first?.child.exit?.code === 0, { deadlineMs: 20_000 });
  await until('the edge to play from the other node', async () => (await plays()) && edge.log.includes(`${ports[1]}`), {
    deadlineMs: 20_000,
  });
}, 90_000);
