import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { RedisServer } from '../../test/support/redis-server.ts';
import { systemClock } from '../util/clock.ts';
import { LeaseBook } from './lease-book.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';

const LEASE_MS = 60_000;
/** Time passes in such steps, for nodes and for Redis. */
const STEP_MS = 1000;
const WORK = 'scheduled/default/app/channel';
const PATIENCE = { timeout: 10_000 };

const stops: (() => unknown)[] = [];
const links: RedisLink[] = [];
let redis: RedisServer;
beforeEach(async () => {
  redis = await RedisServer.start();
  stops.push(async () => await redis.stop());
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  links.length = 0;
  vi.useRealTimers();
});

/** From now on one-time timers fire with the passing of time, too; for tests in which Redis stays there. */
const fakeAllTimers = () => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'performance'] });

/** ARGV: ms by which every key gets older. */
const AGE = `for _, key in ipairs(redis.call('KEYS', '*')) do local left = redis.call('PTTL', key) - ARGV[1]
if left > 0 then redis.call('PEXPIRE', key, left) elseif left > -ARGV[1] then redis.call('DEL', key) end end`.replace('\n', ' ');

/** Lets time pass. What the nodes ask Redis meanwhile is answered afterwards. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += STEP_MS) {
    await redis.ask('EVAL', `"${AGE}"`, '0', `${STEP_MS}`).catch(() => undefined);
    vi.advanceTimersByTime(STEP_MS);
    await Promise.all(links.filter(({ up }) => up).map((link) => link.ping().catch(() => undefined)));
  }
}

/** Lets time pass until `holds`. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let passed = 0; !(await holds()); passed += STEP_MS) {
    if (passed > 3 * LEASE_MS) throw new Error('it did not happen in three lives of a lease');
    await pass(STEP_MS);
  }
}

/** A node that asks twice a second whether the channel is its own. */
function open(node: string, { keepWithoutRedis = false, group = 'g' } = {}) {
  const logger = new RecordingLogger();
  let isCut = false;
  const link: RedisLink = new RedisLink({ target: redisTarget({ host: redis.address }), logger, onUp: () => book?.up() });
  // What a process does that hangs, or is cut off: it neither renews nor gives back.
  const seen = {
    get up() {
      return link.up && !isCut;
    },
    evaluate: (...words: Parameters<RedisLink['evaluate']>) => (isCut ? Promise.reject(new Error('cut off')) : link.evaluate(...words)),
  };
  const book = new LeaseBook({ link: seen, group, node, leaseMs: LEASE_MS, keepWithoutRedis, clock: systemClock, logger });
  const cut = (): void => {
    isCut = true;
  };
  links.push(link);
  const asking = setInterval(() => book.stateOf(WORK), 500);
  stops.push(async () => {
    clearInterval(asking);
    await book.close();
    link.close();
  });
  return { book, state: () => book.stateOf(WORK), link, cut, forget: () => clearInterval(asking), logger };
}

const whose = (...nodes: ReturnType<typeof open>[]): string => nodes.map(({ state }) => (state() === 'ours' ? '1' : '0')).join('');

/** Collects what was ever seen while `work` goes on. */
async function watched(nodes: ReturnType<typeof open>[], work: () => Promise<unknown>): Promise<Set<string>> {
  const seen = new Set<string>();
  const looking = setInterval(() => seen.add(whose(...nodes)), 50);
  await work();
  clearInterval(looking);
  return seen;
}

describe('a work that two nodes would do', () => {
  it('is done by one node, and by the other after the first releases it', async () => {
    fakeAllTimers();
    const [a, b] = [open('a'), open('b')];
    const seen = await watched([a, b], async () => {
      await expect.poll(() => [a.state(), b.state()].sort(), PATIENCE).toEqual(['others', 'ours']);
      const [holder, other] = a.state() === 'ours' ? [a, b] : [b, a];
      holder.book.yield(true);
      expect(holder.state()).toBe('others');
      await until(() => other.state() === 'ours');
      holder.book.yield(false);
      await pass(LEASE_MS);
      expect([holder.state(), other.state(), other.book.held]).toEqual(['others', 'ours', 1]);
      await other.book.close();
      await until(() => holder.state() === 'ours');
    });
    expect(seen).not.toContain('11');
  });

  it('is taken over when the lease of a dead node ends, and not before', async () => {
    fakeAllTimers();
    const a = open('a');
    await expect.poll(() => a.state(), PATIENCE).toBe('ours');
    const b = open('b');
    await expect.poll(() => b.state(), PATIENCE).toBe('others');
    const seen = await watched([a, b], async () => {
      a.cut();
      const left = Number((await redis.ask('PTTL', `millrace:{g}:lease:${WORK}`)).slice(1));
      expect(left).toBeGreaterThan(0);
      await until(() => b.state() === 'ours');
      // It knows by its own clock.
      expect(a.state()).toBe('others');
    });
    expect(seen).not.toContain('11');
    expect(b.logger.lines.at(-1)?.message).toMatch(/^this node does 'scheduled\/default\/app\/channel', by lease \d+$/);
  });

  it('is claimed when the lease of a dead node expires, by a node that then knows its predecessor', async () => {
    fakeAllTimers();
    const a = open('a@ovt://a:9000/');
    await expect.poll(() => a.state(), PATIENCE).toBe('ours');
    expect(a.book.predecessorOf(WORK)).toBeNull();
    const b = open('b');
    await expect.poll(() => b.state(), PATIENCE).toBe('others');
    expect(b.book.predecessorOf(WORK)).toBeNull();
    a.cut();
    const key = `millrace:{g}:lease:${WORK}`;
    await until(async () => (await redis.value(key))?.startsWith('b ') === true);
    await expect.poll(() => b.book.predecessorOf(WORK)).toBe('a@ovt://a:9000/');
    expect([a.book.predecessorOf(WORK), b.book.predecessorOf('pull/other')]).toEqual([null, null]);
  });

  it('stays with its node when Redis loses its keys or restarts empty', async () => {
    const a = open('a');
    await expect.poll(() => a.state(), PATIENCE).toBe('ours');
    const first = await redis.value(`millrace:{g}:lease:${WORK}`);
    await redis.ask('FLUSHALL');
    await until(async () => (await redis.value(`millrace:{g}:lease:${WORK}`)) !== null);
    const second = await redis.value(`millrace:{g}:lease:${WORK}`);
    const numberOf = (value: string | null): number => Number(value?.split(' ')[1]);
    expect(numberOf(second)).toBeGreaterThan(numberOf(first));
    expect(a.state()).toBe('ours');
  });

  it('is lost without Redis after the lease, unless it is to be kept', async () => {
    const [a, kept] = [open('a'), open('a', { group: 'kept', keepWithoutRedis: true })];
    await expect.poll(() => whose(a, kept), PATIENCE).toBe('11');
    await redis.stop();
    await until(() => whose(a, kept) === '01');
    await redis.restart();
    await expect.poll(() => whose(a, kept), PATIENCE).toBe('11');
  });

  it('is kept until the returned Redis has answered which node owns it', async () => {
    const clock = new ManualClock();
    let answer: () => Promise<unknown> = async () => '1';
    const link = { up: true, evaluate: () => answer() };
    const options = { link, group: 'g', node: 'a', leaseMs: LEASE_MS, keepWithoutRedis: true, clock, logger: new RecordingLogger() };
    const book = new LeaseBook(options);
    stops.push(async () => await book.close());
    book.up();
    expect(book.stateOf(WORK)).toBe('unknown');
    await expect.poll(() => book.stateOf(WORK)).toBe('ours');
    link.up = false;
    clock.advance(10 * LEASE_MS);
    expect(book.stateOf(WORK)).toBe('ours');
    const told = Promise.withResolvers<string>();
    answer = () => told.promise;
    link.up = true;
    book.up();
    expect(book.stateOf(WORK)).toBe('ours');
    told.resolve('0');
    await expect.poll(() => book.stateOf(WORK)).toBe('others');
  });

  it.each([
    { by: "Redis's answer", end: (_: LeaseBook, answer: (number: string) => void) => answer('1'), state: 'ours', timers: 1 },
    { by: 'a drain', end: (book: LeaseBook) => book.yield(true), state: 'others', timers: 2 },
    { by: 'the end of the node', end: (book: LeaseBook) => void book.close(), state: 'others', timers: 0 },
    { by: 'time', end: () => vi.advanceTimersByTime(1000), state: 'unknown', timers: 1 },
  ])('ends the wait for the decision, by $by', async ({ end, state, timers }) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const answer = Promise.withResolvers<string>();
    const link = { up: true, evaluate: () => answer.promise };
    const options = { link, group: 'g', node: 'a', leaseMs: LEASE_MS, keepWithoutRedis: false, clock: new ManualClock() };
    const book = new LeaseBook({ ...options, logger: new RecordingLogger() });
    stops.push(async () => {
      vi.useRealTimers();
      answer.resolve('0');
      await book.close();
    });
    let isDecided = false;
    const decided = book.decided(WORK, 1000).then(() => {
      isDecided = true;
    });
    await vi.advanceTimersByTimeAsync(990);
    expect([book.stateOf(WORK), isDecided]).toEqual(['unknown', false]);
    end(book, answer.resolve);
    await decided;
    expect([book.stateOf(WORK), vi.getTimerCount()]).toEqual([state, timers]);
  });

  it('is free when its node gives it up', async () => {
    const a = open('a');
    await expect.poll(() => a.state(), PATIENCE).toBe('ours');
    a.forget();
    await until(async () => (await redis.value(`millrace:{g}:lease:${WORK}`)) === null);
    expect(a.book.held).toBe(0);
  });

  it('is unknown until Redis has answered, and separate for each group', async () => {
    redis.hang();
    const [a, other] = [open('a'), open('b', { group: 'other' })];
    expect([a.state(), other.state()]).toEqual(['unknown', 'unknown']);
    redis.wakeUp();
    await expect.poll(() => whose(a, other), PATIENCE).toBe('11');
  });
});
