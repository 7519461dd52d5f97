import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { RedisServer } from '../../test/support/redis-server.ts';
import { MAX_DEFINITION_BYTES, type Work, type WorkKeeper } from '../core/shared-work.ts';
import { DefinitionBook } from './definition-book.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';
import { UntoldChanges } from './untold-changes.ts';

const PATIENCE = { timeout: 10_000 };
const KEY = 'millrace:{g}:definitions:v';
const FIELD = JSON.stringify(['pull', 'app', 's']);

const stops: (() => unknown)[] = [];
/** Books of open nodes. */
const books = new Set<DefinitionBook>();
let redis: RedisServer;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-definitions-'));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  redis = await RedisServer.start();
  stops.push(async () => await redis.stop());
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Pulls in memory; `refusal`: why it cannot adopt any. */
class FakeKeeper implements WorkKeeper {
  readonly kind = 'pull';
  readonly pulls = new Map<string, object>();
  refusal: string | null = null;

  *definitions(vhost: string) {
    for (const [name, definition] of this.pulls) yield { work: { kind: this.kind, vhost, app: 'app', name } as const, definition };
  }
  has({ name }: Work): boolean {
    return this.pulls.has(name);
  }
  async adopt({ name }: Work, definition: object): Promise<boolean> {
    if (this.refusal !== null) throw new Error(this.refusal);
    this.pulls.set(name, definition);
    return true;
  }
  async drop({ name }: Work): Promise<boolean> {
    return this.pulls.delete(name);
  }
}

const work = (name = 's'): Work => ({ kind: 'pull', vhost: 'v', app: 'app', name });

/** Polls a value; the nodes look at Redis meanwhile, more often than by themselves. */
function soon<T>(read: () => T) {
  return expect.poll(async () => {
    await Promise.all([...books].map((book) => book.look()));
    return await read();
  }, PATIENCE);
}

/** A node that keeps its untold changes in the folder of its name, with the pulls that `keeper` has at its start. */
async function open(node: string, { clock = new ManualClock(), keeper = new FakeKeeper(), apps = ['app'] } = {}) {
  const logger = new RecordingLogger();
  const untold = new UntoldChanges(join(folder, node), logger);
  await untold.load();
  const link: RedisLink = new RedisLink({ target: redisTarget({ host: redis.address }), logger, onUp: () => book?.up() });
  const options = { link, group: 'g', vhost: 'v', keepers: [keeper], hasApplication: (app: string) => apps.includes(app) };
  const book = new DefinitionBook({ ...options, untold, clock, logger });
  const close = async (): Promise<void> => {
    books.delete(book);
    await book.close();
    await untold.settle();
    link.close();
  };
  stops.push(close);
  book.start();
  books.add(book);
  /** A request to the API. */
  const define = (url: string, name?: string): Promise<void> =>
    book.change(work(name), async (tell) => {
      keeper.pulls.set(work(name).name, { url });
      tell({ url });
    });
  const remove = (): Promise<void> =>
    book.change(work(), async (tell) => {
      keeper.pulls.delete('s');
      tell(null);
    });
  const kept = (): string[] => readdirSync(join(folder, node));
  return { book, keeper, logger, define, remove, kept, apps, link, close, untold };
}

describe('a definition', () => {
  it('of one node is adopted by the others, changed by any, and deleted everywhere', async () => {
    const [a, b] = [await open('a'), await open('b')];
    await soon(() => [a.book.ready, b.book.ready]).toEqual([true, true]);
    await a.define('one');
    await soon(() => b.keeper.pulls.get('s')).toEqual({ url: 'one' });
    await b.define('two');
    await soon(() => a.keeper.pulls.get('s')).toEqual({ url: 'two' });
    expect([a.book.figures, a.kept()]).toEqual([{ definitions: 1, unplaced: 0 }, []]);
    await b.remove();
    await soon(() => a.keeper.has(work())).toBe(false);
    const c = await open('c');
    await soon(() => c.book.ready).toBe(true);
    expect([c.keeper.pulls.size, a.book.figures.definitions]).toEqual([0, 0]);
  });

  it('that was there before a node shares it is told; that of Redis replaces another one of its name', async () => {
    const a = await open('a');
    await soon(() => a.book.ready).toBe(true);
    await a.define('one');
    const keeper = new FakeKeeper();
    keeper.pulls.set('s', { url: 'old' }).set('own', { url: 'own' });
    await open('b', { keeper });
    await soon(() => [keeper.pulls.get('s'), a.keeper.pulls.get('own')]).toEqual([{ url: 'one' }, { url: 'own' }]);
  });

  it('waits where it cannot be done, which is told once', async () => {
    const a = await open('a');
    const keeper = new FakeKeeper();
    keeper.refusal = 'no such provider';
    const b = await open('b', { keeper, apps: [] });
    await a.define('one');
    const warned = () => b.logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    await soon(warned).toEqual(["the pull 's' of another node cannot be done by this node: there is no application 'v/app'"]);
    expect(b.book.figures).toEqual({ definitions: 1, unplaced: 1 });
    b.apps.push('app');
    await soon(() => warned().at(-1)).toMatch(/no such provider$/);
    keeper.refusal = null;
    await soon(() => b.book.figures).toEqual({ definitions: 1, unplaced: 0 });
    // Its application is deleted here, and made again.
    keeper.pulls.clear();
    b.apps.pop();
    await soon(() => b.book.figures.unplaced).toBe(1);
    b.apps.push('app');
    await soon(() => keeper.pulls.get('s')).toEqual({ url: 'one' });
    expect(warned().length).toBe(3);
  });

  it('is not touched while the API of a node changes it', async () => {
    const [a, b] = [await open('a'), await open('b')];
    await soon(() => [a.book.ready, b.book.ready]).toEqual([true, true]);
    const { promise, resolve } = Promise.withResolvers<void>();
    const clash = b.book.change(work(), async (tell) => {
      await promise;
      expect(b.keeper.has(work())).toBe(false);
      tell({ url: 'later' });
      b.keeper.pulls.set('s', { url: 'later' });
    });
    await a.define('one');
    await a.define('other', 'other');
    await soon(() => b.book.figures).toEqual({ definitions: 2, unplaced: 1 });
    await b.book.look();
    await b.book.look();
    resolve();
    await clash;
    await soon(() => a.keeper.pulls.get('s')).toEqual({ url: 'later' });
    await soon(() => b.keeper.pulls.get('other')).toEqual({ url: 'other' });
  });

  it('that is too large stays at its node', async () => {
    const a = await open('a');
    await soon(() => a.book.ready).toBe(true);
    await a.define('x'.repeat(MAX_DEFINITION_BYTES));
    expect([a.logger.lines.at(-1)?.message, a.kept(), await redis.ask('EXISTS', KEY)]).toEqual([
      "the pull 's' is too large to be shared: other nodes cannot do it",
      [],
      ':0',
    ]);
  });
});

describe('while Redis is away', () => {
  it('changes are kept on disk, and told after a restart of the node', async () => {
    const a = await open('a');
    await soon(() => a.book.ready).toBe(true);
    await a.define('one');
    await a.define('other', 'other');
    // Redis keeps what it has, but the node cannot reach it.
    a.link.close();
    await a.remove();
    expect(a.kept().length).toBe(1);
    await a.close();
    const b = await open('b');
    await soon(() => b.keeper.pulls.size).toBe(2);
    const again = await open('a', { keeper: a.keeper });
    await soon(() => [...b.keeper.pulls.keys()]).toEqual(['other']);
    await soon(again.kept).toEqual([]);
    expect([...again.keeper.pulls.keys()]).toEqual(['other']);
  });

  it('changes of the settings lose none', async () => {
    const [a, b] = [await open('a'), await open('b')];
    await soon(() => [a.book.ready, b.book.ready]).toEqual([true, true]);
    await a.define('one');
    // The request began before the settings changed, and ends afterwards.
    await a.untold.save({ work: work(), version: Date.now() * 2, text: '{"url":"two"}' });
    a.book.up();
    await soon(() => b.keeper.pulls.get('s')).toEqual({ url: 'two' });
    await soon(a.kept).toEqual([]);
  });

  it('the later one of two changes counts', async () => {
    const [early, late] = [new ManualClock(), new ManualClock()];
    late.setOn(60_000);
    const a = await open('a', { clock: early });
    await soon(() => a.book.ready).toBe(true);
    a.link.close();
    await a.define('early');
    await a.close();
    const b = await open('b', { clock: late });
    await soon(() => b.book.ready).toBe(true);
    await b.define('late');
    const again = await open('a', { clock: early, keeper: a.keeper });
    await soon(() => again.keeper.pulls.get('s')).toEqual({ url: 'late' });
    await soon(again.kept).toEqual([]);
    expect(b.keeper.pulls.get('s')).toEqual({ url: 'late' });
  });
});

describe('a Redis that has lost its keys', () => {
  it('gets definitions and deletions again, so that a node that was away brings nothing back', async () => {
    const [a, away] = [await open('a'), await open('away')];
    await soon(() => a.book.ready).toBe(true);
    await a.define('one');
    await a.define('other', 'other');
    await soon(() => away.keeper.pulls.size).toBe(2);
    await away.close();
    await a.remove();
    await redis.ask('FLUSHALL');
    const back = await open('away', { keeper: away.keeper });
    await soon(() => [...back.keeper.pulls.keys()]).toEqual(['other']);
    await soon(async () => await redis.ask('HLEN', KEY)).toBe(':2');
    expect([...a.keeper.pulls.keys()]).toEqual(['other']);
    await redis.restart();
    await soon(async () => await redis.ask('HLEN', KEY)).toBe(':2');
  });

  it('is told to remember no more than its limit: the oldest deletions go first', async () => {
    await redis.ask(
      'EVAL',
      `"for i=1,2000 do redis.call('HSET','${KEY}','x'..i,'1 ') redis.call('ZADD','millrace:{g}:definition-deletions:v',i+9e12,'x'..i) end"`,
      '0',
    );
    const a = await open('a');
    await soon(() => a.book.ready).toBe(true);
    await a.define('one');
    expect([await redis.ask('HLEN', KEY), await redis.ask('HEXISTS', KEY, 'x1')]).toEqual([':2000', ':0']);
    await redis.ask('DEL', 'millrace:{g}:definition-deletions:v');
    await a.define('other', 'other');
    expect([await redis.ask('HLEN', KEY), a.logger.lines.at(-1)?.message, a.kept().length]).toEqual([
      ':2000',
      'not all definitions are shared: there are more than 2000',
      1,
    ]);
  });
});

it('what no node has written is left out', async () => {
  const texts = ['', 'x', '1', '9 {', '9 7', `9 ${'x'.repeat(MAX_DEFINITION_BYTES + 1)}`, '9999999999999999999 {}'];
  const names = [
    FIELD,
    '[]',
    '{',
    'null',
    JSON.stringify(['pull', '../x', 's']),
    JSON.stringify(['other', 'app', 's']),
    JSON.stringify(['pull', 'app', 's', 1]),
  ];
  const pairs = [...texts.map((text) => [FIELD, text]), ...names.slice(1).map((name) => [name, '9 {}'])];
  const link: RedisLink = new RedisLink({
    target: redisTarget({ host: redis.address }),
    logger: new RecordingLogger(),
    onUp: () => undefined,
  });
  stops.push(() => link.close());
  await expect.poll(() => link.up, PATIENCE).toBe(true);
  const b = await open('b');
  await soon(() => b.book.ready).toBe(true);
  for (const [index, [name = '', text = '']] of pairs.entries()) {
    const script = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])";
    await link.evaluate(script, [KEY, 'millrace:{g}:definition-changes:v'], [name, text, String(index + 1)]);
    await b.book.look();
  }
  await b.define('own', 'own');
  await b.book.look();
  expect([...b.keeper.pulls.keys()]).toEqual(['own']);
  expect(b.book.ready).toBe(true);
});
