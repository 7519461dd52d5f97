/** Nodes that share a pull in a Redis of Sentinels: when the Redis that is the master dies, the pull goes on at its node. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { until } from '../harness/poll.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { masterOf, startSentinels } from '../support/redis-sets.ts';

const PASSWORD = 'secret';
/** Long enough for a failover on a busy machine. */
const LEASE_MS = 20_000;
const LEASE = 'millrace:{g}:lease:pull/default/app/film';
const DEADLINE = { deadlineMs: 40_000 };

test('a pull goes on at its node, and its viewers see nothing, when the Redis that has its lease dies', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-failover-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(path.join(folder, 'media'));
  const film = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-t', '4', '-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30'];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...film, '-bf', '0', '-threads', '1', path.join(folder, 'media', 'film.mp4')]);
  const redis = await startSentinels(PASSWORD);
  onTestFinished(async () => await redis.close());
  const place = `<RedisServer><Url>${redis.url}</Url><Auth>${PASSWORD}</Auth></RedisServer>`;
  const shared = `<SharedWork><Group>g</Group><LeaseTime>${LEASE_MS}</LeaseTime></SharedWork>`;
  const start = async (): Promise<TestServer> => {
    const server = await startServer({
      origins: `<OriginMapStore>${place}${shared}</OriginMapStore>`,
      fileProvider: `<RootPath>${folder}/media</RootPath>`,
      withoutHls: true,
      segmentDuration: 1,
    });
    onTestFinished(async () => await server.close());
    const pull = { name: 'film', urls: ['file:///film.mp4'], properties: { persistent: true } };
    await server.api.create(`${apiPath.app('default', 'app')}/streams`, pull);
    return server;
  };
  const nodes = await Promise.all([start(), start()]);
  /** When the node's pull began; null while it waits. */
  const began = async ({ api }: TestServer): Promise<string | null> => {
    const { input, outputs } = await api.get<StreamInformation>(apiPath.stream('film'));
    return outputs.length > 0 ? input.createdTime : null;
  };
  const pulling = async (): Promise<(string | null)[]> => await Promise.all(nodes.map(began));
  const ofOne = (times: readonly (string | null)[]): boolean => times.filter((time) => time !== null).length === 1;
  const before = await until(
    'one node to pull',
    async () => {
      const times = await pulling();
      return ofOne(times) ? times : null;
    },
    DEADLINE,
  );
  const holder = nodes[before.findIndex((time) => time !== null)] as TestServer;
  const [first, second] = redis.servers;
  await until('the lease at the replica', async () => (await second?.value(LEASE)) !== null, DEADLINE);
  await until('the stream to play', async () => (await fetch(holder.http('film', 'llhls.m3u8'))).status === 200, DEADLINE);
  const reader = await LlhlsReader.open([holder.http('film', 'llhls.m3u8')]);
  onTestFinished(async () => await reader.stop());
  await until('reloads', () => reader.reloads >= 2, DEADLINE);

  const lease = await second?.value(LEASE);
  await first?.stop();
  await until('the other server to be master', async () => (await masterOf(redis.servers)) === second, DEADLINE);
  const left = async (): Promise<number> => Number((await second?.ask('PTTL', LEASE))?.slice(1));
  const remaining = await left();
  await until('the lease to be renewed there', async () => (await left()) > remaining, DEADLINE);
  const { reloads } = reader;
  await until('the viewer to get further', () => reader.reloads >= reloads + 4, DEADLINE);
  expect(await second?.value(LEASE)).toBe(lease);
  expect(await pulling()).toEqual(before);
  await reader.stop();
  expect(reader.faults).toEqual([]);
}, 90_000);
