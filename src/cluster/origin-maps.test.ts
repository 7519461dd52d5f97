import { afterEach, expect, it } from 'vitest';
import { metricsText } from '../../test/fakes/metrics-text.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { RedisServer } from '../../test/support/redis-server.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import { systemClock } from '../util/clock.ts';
import { Conditions } from '../util/conditions.ts';
import { originMapMetrics } from './origin-map-metrics.ts';
import { OriginMaps } from './origin-maps.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const hostWith = (host: string): VirtualHost =>
  ({
    name: 'default',
    definition: { config: { originMapStore: { originHostName: 'a', redisServer: { host } } } },
  }) as unknown as VirtualHost;

it('share the work of virtual hosts that enable it, until they are drained', async () => {
  const redis = await RedisServer.start();
  stops.push(async () => await redis.stop());
  const open = () => {
    const maps = new OriginMaps({ ovtPort: 9000, clock: systemClock, conditions: new Conditions(), logger: new RecordingLogger() });
    stops.push(async () => await maps.close());
    const sharedWork = { enable: true, group: 'g', leaseTime: 3000, keepWithoutRedis: false };
    const shared = { name: 'default', definition: { config: { originMapStore: { redisServer: { host: redis.address }, sharedWork } } } };
    maps.follow([shared as unknown as VirtualHost]);
    return { maps, ask: (vhost = 'default') => maps.stateOf({ kind: 'pull', vhost, app: 'app', name: 's' }) };
  };
  const first = open();
  expect(first.ask('other')).toBe('ours');
  await expect.poll(() => first.ask()).toBe('ours');
  const second = open();
  await expect.poll(() => second.ask()).toBe('others');
  expect(await redis.value('millrace:{g}:lease:pull/default/app/s')).toMatch(/^\S+ \d+$/);
  expect(metricsText(originMapMetrics(() => first.maps.figures))).toContain('millrace_shared_work_leases 1');
  first.maps.withdraw(true);
  expect(first.ask()).toBe('others');
  await expect.poll(() => second.ask(), { timeout: 10_000 }).toBe('ours');
  expect([first.maps.figures.leases, second.maps.figures.leases]).toEqual([0, 1]);
});

it('replace a dead server by the one that took over its work, only for the stream of that work', async () => {
  const redis = await RedisServer.start();
  stops.push(async () => await redis.stop());
  for (const stream of ['s', 't']) await redis.ask('SET', `app/${stream}`, `ovt://dead:9000/app/${stream}`, 'EX', '100');
  await redis.ask('SET', 'millrace:{g}:lease:pull/default/app/s', '"x@ovt://dead:9000/ 5"', 'PX', '500');
  const maps = new OriginMaps({ ovtPort: 9000, clock: systemClock, conditions: new Conditions(), logger: new RecordingLogger() });
  stops.push(async () => await maps.close());
  const sharedWork = { enable: true, group: 'g', leaseTime: 3000, keepWithoutRedis: false };
  const originMapStore = { originHostName: 'a', redisServer: { host: redis.address }, sharedWork };
  maps.follow([{ name: 'default', definition: { config: { originMapStore } } } as unknown as VirtualHost]);
  const ask = () => maps.stateOf({ kind: 'pull', vhost: 'default', app: 'app', name: 's' });
  await expect.poll(ask).toBe('others');
  // A stream of its own before the work is its own.
  maps.add({ vhost: 'default', app: 'app', name: 't', sourceName: 't' });
  await expect.poll(ask).toBe('ours');
  maps.add({ vhost: 'default', app: 'app', name: 's', sourceName: 's' });
  await expect.poll(() => redis.value('app/s')).toBe('ovt://a:9000/app/s');
  expect(await redis.value('app/t')).toBe('ovt://dead:9000/app/t');
  expect(maps.figures.registered).toBe(1);
});

it('report an unreachable Redis by the health check and metrics until it returns or is no longer configured', async () => {
  const redis = await RedisServer.start();
  stops.push(async () => await redis.stop());
  const conditions = new Conditions();
  const maps = new OriginMaps({ ovtPort: 9000, clock: systemClock, conditions, logger: new RecordingLogger() });
  stops.push(async () => await maps.close());
  const page = (): string => metricsText(originMapMetrics(() => maps.figures));
  maps.follow([hostWith(redis.address)]);
  maps.add({ vhost: 'default', app: 'app', name: 's', sourceName: 's' });
  await expect.poll(() => redis.value('app/s')).toBe('ovt://a:9000/app/s');
  await expect.poll(() => maps.figures.registered).toBe(1);
  expect(conditions.reasons).toEqual([]);
  expect(page()).toContain('millrace_origin_map_streams{state="registered"} 1');
  await redis.stop();
  const reason = 'an origin map cannot be asked or told of streams: its Redis cannot be used';
  await expect.poll(() => conditions.reasons).toEqual([reason]);
  expect(await maps.of('default')?.locate('app', 'x')).toBeNull();
  expect(page()).toContain('millrace_origin_maps{reachable="no"} 1');
  expect(page()).toContain('millrace_origin_map_lookups_total{result="failed"} 1');
  await redis.restart();
  await expect.poll(() => redis.value('app/s'), { timeout: 10_000 }).toBe('ovt://a:9000/app/s');
  expect(conditions.reasons).toEqual([]);
  await redis.stop();
  await expect.poll(() => conditions.reasons).toEqual([reason]);
  maps.follow([]);
  expect([conditions.reasons, maps.figures.unreachable, maps.figures.failed]).toEqual([[], 0, 1]);
});
