/** Leases while the Redis that keeps them dies and its replica takes over, with Sentinels and in a cluster. */
import { afterEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { RedisServer } from '../../test/support/redis-server.ts';
import { type RedisSet, startCluster, startSentinels } from '../../test/support/redis-sets.ts';
import { systemClock } from '../util/clock.ts';
import { LeaseBook } from './lease-book.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';

const LEASE_MS = 5000;
const WORK = 'pull/default/app/film';
const KEY = `millrace:{g}:lease:${WORK}`;
const PASSWORD = 'secret';
const PATIENCE = { timeout: 30_000 };

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A node that asks every 20 ms whether the work is its own. */
function open(node: string, url: string) {
  const logger = new RecordingLogger();
  let isCut = false;
  const link: RedisLink = new RedisLink({ target: redisTarget({ url, auth: PASSWORD }), logger, onUp: () => book?.up() });
  const seen = {
    get up() {
      return link.up && !isCut;
    },
    evaluate: (...words: Parameters<RedisLink['evaluate']>) => (isCut ? Promise.reject(new Error('cut off')) : link.evaluate(...words)),
  };
  const book = new LeaseBook({ link: seen, group: 'g', node, leaseMs: LEASE_MS, keepWithoutRedis: false, clock: systemClock, logger });
  const asking = setInterval(() => book.stateOf(WORK), 20);
  stops.push(async () => {
    clearInterval(asking);
    await book.close();
    link.close();
  });
  const cut = (): void => {
    isCut = true;
  };
  return { node, cut, isOurs: () => book.stateOf(WORK) === 'ours', logger };
}
type Node = ReturnType<typeof open>;

/** Longest time in which both nodes did the work, ms, so far. */
function doubleWork(nodes: readonly Node[]): () => number {
  let longest = 0;
  let since: number | null = null;
  const looking = setInterval(() => {
    const now = performance.now();
    since = nodes.every(({ isOurs }) => isOurs()) ? (since ?? now) : null;
    if (since !== null) longest = Math.max(longest, now - since);
  }, 5);
  stops.push(() => clearInterval(looking));
  return () => longest;
}

/** The server that answers for the lease; undefined while there is none. */
async function keeperOf({ servers }: RedisSet): Promise<RedisServer | undefined> {
  for (const server of servers) {
    const role = await server.ask('ROLE').catch(() => '');
    // In a cluster, the masters of other slots refuse.
    if (role.includes('\nmaster\n') && !/^-(MOVED|CLUSTERDOWN)/.test(await server.ask('GET', KEY))) return server;
  }
  return undefined;
}

const numberOf = (lease: string | null | undefined): number => Number(lease?.split(' ')[1]);

describe.each([
  { kind: 'Sentinels', start: () => startSentinels(PASSWORD) },
  { kind: 'a cluster', start: () => startCluster(PASSWORD, true) },
])('with $kind, a lease', ({ start }) => {
  it('has one owner after a failover, after a failover that lost it, and after the death of its owner', { timeout: 90_000 }, async () => {
    const set = await start();
    stops.push(() => set.close());
    const nodes = [open('a', set.url), open('b', set.url)] as const;
    const longest = doubleWork(nodes);
    const owner = async (): Promise<Node | undefined> => {
      const lease = await (await keeperOf(set))?.value(KEY);
      const owners = nodes.filter(({ isOurs }) => isOurs());
      return owners.length === 1 && lease?.startsWith(`${owners[0]?.node} `) === true ? owners[0] : undefined;
    };
    await expect.poll(owner, PATIENCE).toBeDefined();
    const first = await keeperOf(set);

    await first?.stop();
    await expect.poll(async () => [undefined, first].includes(await keeperOf(set)), PATIENCE).toBe(false);
    await expect.poll(owner, PATIENCE).toBeDefined();
    const second = await keeperOf(set);
    const before = await second?.value(KEY);

    // Replication is not waited for: the lease may be missing at the new master.
    await second?.ask('FLUSHALL');
    await expect.poll(async () => numberOf(await second?.value(KEY)), PATIENCE).toBeGreaterThan(numberOf(before));
    await expect.poll(owner, PATIENCE).toBeDefined();

    const last = await owner();
    const other = nodes.find((node) => node !== last);
    last?.cut();
    await expect.poll(owner, PATIENCE).toBe(other);
    expect(last?.isOurs()).toBe(false);
    expect(longest()).toBeLessThan(LEASE_MS);
  });
});
