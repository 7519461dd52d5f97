/** Servers that find each other's streams in Redis. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { RedisServer } from '../support/redis-server.ts';

const STREAMS = `${apiPath.app('default', 'app')}/streams`;

let redis: RedisServer;
const origins: TestServer[] = [];
let edge: TestServer;
/** URL at the edge of a stream that it pulls itself. */
let circle = '';
let ports: readonly number[];
const encoders: FfmpegPublisher[] = [];

beforeAll(async () => {
  redis = await RedisServer.start('secret');
  const [edgePort = 0, ...originPorts] = await freePorts(3);
  ports = originPorts;
  const store = (inside: string) =>
    `<OriginMapStore>${inside}<RedisServer><Host>${redis.address}</Host><Auth>secret</Auth></RedisServer></OriginMapStore>`;
  const own = '<OriginHostName>127.0.0.1</OriginHostName>';
  circle = `ovt://127.0.0.1:${edgePort}/app/circle`;
  const back = `<Origins><Origin><Location>/app/circle</Location>
    <Pass><Scheme>ovt</Scheme><Urls><Url>127.0.0.1:${ports[0]}/app/circle</Url></Urls></Pass></Origin></Origins>`;
  edge = await startServer({ segmentDuration: 1, origins: back + store(''), ovtPort: edgePort });
  for (const ovtPort of ports) origins.push(await startServer({ ovtPort, origins: store(own), withoutHls: true }));
});

afterAll(async () => {
  await Promise.all(encoders.map(async (encoder) => await encoder.stop()));
  await Promise.all([edge, ...origins].map(async (server) => await server?.close()));
  await redis?.stop();
});

const address = (index: number): string => `ovt://127.0.0.1:${ports[index]}/app/live`;

async function watch(): Promise<StreamInformation> {
  const probed = await until('the edge to play', async () => {
    const found = await probe(edge.http('live', 'llhls.m3u8'));
    return found.video === undefined ? null : found;
  });
  expect(probed.video).toMatchObject({ codec_name: 'h264', width: 640, height: 360 });
  return await edge.api.get<StreamInformation>(apiPath.stream('live'));
}

test('a circle of origins is a fast 404 with a log line', async () => {
  await redis.ask('SET', 'app/circle', circle);
  const began = performance.now();
  expect((await fetch(edge.http('circle', 'llhls.m3u8'))).status).toBe(404);
  // An origin that does not answer is given up after four seconds.
  expect(performance.now() - began).toBeLessThan(4000);
  await until('the circle in the log of the edge', () => /cannot pull from .*: The stream would go in a circle/.test(edge.log));
  await until('the circle in the log of the origin', () => /cannot pull from .*: The stream would go in a circle/.test(origins[0]!.log));
  expect(edge.log).toContain('an OVT edge was refused: The stream would go in a circle');
});

test('an edge finds a stream at its origin, and at another one when that dies', async () => {
  expect((await fetch(edge.http('live', 'llhls.m3u8'))).status).toBe(404);
  const [first, second] = origins;
  const publishTo = async (origin: TestServer): Promise<void> => {
    const encoder = publish({ url: origin.rtmp('live') });
    encoders.push(encoder);
    await encoder.sent(30);
  };
  await publishTo(first!);
  await until('the stream to be in Redis', async () => (await redis.value('app/live')) === address(0));
  const firstLook = await watch();
  expect(firstLook.input).toMatchObject({ sourceType: 'Ovt', sourceUrl: address(0) });
  const began = firstLook.input.createdTime;
  expect(began).toMatch(/^\d{4}-/);

  await publishTo(second!);
  await until('the second origin to wait', () => second!.log.includes('ours waits'));
  await first!.kill();
  const sourceUrl = async () => (await edge.api.get<StreamInformation>(apiPath.stream('live'))).input.sourceUrl;
  // The entry would expire by itself after ten seconds.
  await redis.ask('PEXPIRE', 'app/live', '100');
  await until('the second origin to be in Redis', async () => (await redis.value('app/live')) === address(1));
  await until('the edge to go over to the second origin', async () => (await sourceUrl()) === address(1), { deadlineMs: 20_000 });
  // Viewers keep their stream.
  expect((await edge.api.get<StreamInformation>(apiPath.stream('live'))).input.createdTime).toBe(began);
  expect((await watch()).input).toMatchObject({ sourceUrl: address(1) });
  // The edge must not register streams from the map.
  expect(edge.log).not.toContain('is in the origin map as');

  await second!.stop();
  await until('the stream to be gone from Redis', async () => (await redis.value('app/live')) === null);
  // No further viewer is expected.
  await until('the edge to give the stream up', async () => !(await edge.api.get<string[]>(STREAMS)).includes('live'), {
    deadlineMs: 30_000,
  });
});
