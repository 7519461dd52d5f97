/** The origin map over every kind of Redis, each a real one. */
import net from 'node:net';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { masterOf, type RedisSet, startCluster, startSentinels, startTls } from '../../test/support/redis-sets.ts';
import type { RedisServerConfig } from '../config/index.ts';
import { systemClock } from '../util/clock.ts';
import { OriginMap } from './origin-map.ts';

const REFRESH_MS = 150;
const PATIENCE = { timeout: 30_000 };

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function started<S extends RedisSet>(starting: Promise<S>): Promise<S> {
  const set = await starting;
  stops.push(() => set.close());
  return set;
}

function open(redisServer: RedisServerConfig, originHostName?: string) {
  const logger = new RecordingLogger();
  const config = { redisServer, ...(originHostName !== undefined && { originHostName }) };
  const map = new OriginMap({ config, ovtPort: 9000, clock: systemClock, logger, expiryS: 3, refreshMs: REFRESH_MS });
  stops.push(async () => await map.close());
  const said = () => logger.lines.map(({ message }) => message);
  return { map, said };
}

describe('the origin map', () => {
  it('follows a failover of Sentinels, and has every stream on the new master', { timeout: 60_000 }, async () => {
    const set = await started(startSentinels('secret'));
    const redisServer = { url: set.url, auth: 'secret' };
    const origin = open(redisServer, 'a');
    const edge = open(redisServer);
    origin.map.add('app', 's');
    await expect.poll(() => edge.map.locate('app', 's'), PATIENCE).toBe('ovt://a:9000/app/s');
    const [first, second] = set.servers;
    await first?.stop();
    await expect.poll(() => masterOf(set.servers), PATIENCE).toBe(second);
    await second?.ask('FLUSHALL');
    await expect.poll(() => second?.value('app/s'), PATIENCE).toBe('ovt://a:9000/app/s');
    await expect.poll(() => edge.map.locate('app', 's'), PATIENCE).toBe('ovt://a:9000/app/s');
    origin.map.add('app', 'later');
    await expect.poll(() => second?.value('app/later'), PATIENCE).toBe('ovt://a:9000/app/later');
    expect(edge.said()).toContain(`Redis at ${set.url} is back`);
  });

  it('logs once that no Sentinel answers, and that there is no cluster', PATIENCE, async () => {
    const connects = vi.spyOn(net.Socket.prototype, 'connect');
    onTestFinished(() => connects.mockRestore());
    /** Connections tried: to a Sentinel, and to the cluster. */
    const attempts = (): number[] =>
      ['"port":2,', '"port":3,'].map((port) => connects.mock.calls.filter((call) => JSON.stringify(call).includes(port)).length);
    const { map, said } = open({ url: 'redis+sentinel://127.0.0.1:1,127.0.0.1:2/shared' });
    const cluster = open({ url: 'redis+cluster://127.0.0.1:3' });
    await expect.poll(() => said().length, PATIENCE).toBe(1);
    expect(said()[0]).toMatch(/^Redis at redis\+sentinel:.* cannot be used: no Sentinel answers: .+/);
    await expect.poll(() => cluster.said()[0], PATIENCE).toMatch(/^Redis at redis\+cluster:.* cannot be used: .+/);
    expect(await map.locate('app', 's')).toBeNull();
    const before = attempts();
    await expect.poll(() => attempts().every((count, index) => count >= (before[index] ?? 0) + 2), PATIENCE).toBe(true);
    expect(said().length).toBe(1);
    expect(cluster.said().length).toBe(1);
  });

  it('is spread over a cluster, and works without the streams of a failed shard', { timeout: 60_000 }, async () => {
    const set = await started(startCluster('secret'));
    const redisServer = { url: set.url, auth: 'secret' };
    const origin = open(redisServer, 'a');
    const edge = open(redisServer);
    const names = Array.from({ length: 30 }, (_none, index) => `s${index}`);
    for (const name of names) origin.map.add('app', name);
    for (const name of names) await expect.poll(() => edge.map.locate('app', name), PATIENCE).toBe(`ovt://a:9000/app/${name}`);
    const sizes = await Promise.all(set.servers.map(async (server) => Number((await server.ask('DBSIZE')).slice(1))));
    expect(sizes.reduce((sum, size) => sum + size)).toBe(names.length);
    expect(Math.min(...sizes)).toBeGreaterThan(0);
    for (const server of set.servers) await server.ask('FLUSHALL');
    for (const name of names) await expect.poll(() => edge.map.locate('app', name), PATIENCE).toBe(`ovt://a:9000/app/${name}`);
  });

  it.each([
    ['without the certificate', false, 'secret', /certificate/],
    ['with a wrong password', true, 'wrong', /WRONGPASS/],
  ])('is not used over TLS %s', PATIENCE, async (_words, isTrusted, auth, reason) => {
    const set = await started(startTls('secret'));
    const { map, said } = open({ url: set.url, auth, ...(isTrusted && { caPath: set.caPath }) }, 'a');
    map.add('app', 's');
    await expect.poll(() => said()[0], PATIENCE).toMatch(reason);
    expect(await map.locate('app', 's')).toBeNull();
  });

  it('is kept over TLS, as a user, in the database that the URL names', PATIENCE, async () => {
    const set = await started(startTls('secret'));
    const [server] = set.servers;
    await server?.ask('ACL', 'SETUSER', 'node', 'on', '>its-own', '~*', '+@all');
    const { map } = open({ url: set.url, username: 'node', auth: 'its-own', caPath: set.caPath }, 'a');
    map.add('app', 's');
    await expect.poll(() => map.size === 1 && server?.ask('INFO', 'keyspace'), PATIENCE).toContain('db3:keys=1');
    expect(await server?.value('app/s')).toBeNull();
  });
});
