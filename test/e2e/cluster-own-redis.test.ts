/** The cluster of `deploy/cluster/` with a Redis elsewhere, by `own-redis.yaml`: Sentinels and TLS. */
import { expect, onTestFinished, test } from 'vitest';
import { Cluster, SECRETS } from '../harness/cluster.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { masterOf, startTlsSentinels } from '../support/redis-sets.ts';

const DEADLINE = { deadlineMs: 40_000 };

test('edges find streams in a Redis of Sentinels with TLS, before and after a failover', async () => {
  const redis = await startTlsSentinels(SECRETS.MILLRACE_REDIS_PASSWORD);
  onTestFinished(async () => await redis.close());
  const cluster = await Cluster.start(redis);
  onTestFinished(async () => await cluster.close());
  const [first, second] = redis.servers;
  const published = async (name: string): Promise<void> => {
    const encoder = publish({ url: cluster.rtmp(name), width: 320, height: 180, videoKbps: 200 });
    onTestFinished(async () => void (await encoder.stop()));
    await encoder.sent(30);
  };
  await published('one');
  await until('the first stream in the map', async () => (await first?.value('app/one'))?.startsWith('ovt:'), DEADLINE);
  // The cluster has no other Redis, and connects by TLS only.
  for (const { child } of [cluster.origin, ...cluster.edges]) expect(child.output).toContain(`connected to Redis at ${redis.url}`);

  await first?.stop();
  await until('the other server to be master', async () => (await masterOf(redis.servers)) === second, DEADLINE);
  await published('two');
  const plays = async (name: string): Promise<boolean> =>
    await until(`${name} to play`, async () => (await fetch(cluster.url(name, 'llhls.m3u8'))).status === 200, DEADLINE);
  await Promise.all(['one', 'two'].map(plays));
  expect(await second?.value('app/two')).toMatch(/^ovt:/);
  for (const edge of cluster.edges) expect(await edge.health()).toBe(200);
}, 90_000);
