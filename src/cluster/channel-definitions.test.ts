/** Files of channels that nodes share through a real Redis. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { RedisServer } from '../../test/support/redis-server.ts';
import { channelKeeper, SharedChannels } from '../core/shared-channels.ts';
import { DefinitionFolder } from '../state/definition-folder.ts';
import { FileMarks } from '../state/file-marks.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { DefinitionBook } from './definition-book.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';
import { UntoldChanges } from './untold-changes.ts';

const PATIENCE = { timeout: 10_000 };
/** Books of open nodes. */
const books = new Set<DefinitionBook>();

const stops: (() => unknown)[] = [];
let redis: RedisServer;
let root: string;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'millrace-channel-definitions-'));
  stops.push(() => rmSync(root, { recursive: true, force: true }));
  redis = await RedisServer.start();
  stops.push(async () => await redis.stop());
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Polls a value; the nodes look at Redis meanwhile, more often than by themselves. */
function soon<T>(read: () => T) {
  return expect.poll(async () => {
    await Promise.all([...books].map((book) => book.look()));
    return read();
  }, PATIENCE);
}

/** A node whose definitions are texts. */
async function open(node: string, clock = new ManualClock()) {
  const logger = new RecordingLogger();
  const [untold, marks] = [new UntoldChanges(join(root, node, 'untold'), logger), new FileMarks(join(root, node, 'marks'), logger)];
  await Promise.all([untold.load(), marks.load()]);
  const files = join(root, node, 'files');
  mkdirSync(files, { recursive: true });
  const folder = new DefinitionFolder<string>({
    ...{ folder: files, extension: '.mux', what: 'multiplex channel', allowed: new AllowedFolders(null, 'nothing'), logger },
    ...{ isName: () => true, parse: (text) => text, format: (text) => text, changed: () => undefined },
    removed: (name) => channels.forget(name),
    scanMs: 50,
  });
  const link: RedisLink = new RedisLink({ target: redisTarget({ host: redis.address }), logger, onUp: () => book?.up() });
  const keeper = channelKeeper('multiplex', 'Multiplex', { sharedIn: () => [channels], sharedOf: () => channels });
  const shared = { link, group: 'g', vhost: 'v', keepers: [keeper], hasApplication: () => true };
  const book: DefinitionBook = new DefinitionBook({ ...shared, untold, clock, logger });
  const ready = folder.start().then(() => channels.read());
  const application = { vhost: 'v', name: 'app' };
  const options = { kind: 'multiplex', application, folder, ready: () => ready, marks, logger } as const;
  const channels: SharedChannels<string> = new SharedChannels<string>({ ...options, work: book });
  const close = async (): Promise<void> => {
    books.delete(book);
    await book.close();
    await Promise.all([folder.close(), untold.settle(), marks.settle()]);
    link.close();
  };
  stops.push(close);
  await ready;
  book.start();
  books.add(book);
  await soon(() => book.ready).toBe(true);
  const path = join(files, 'tv.mux');
  const text = (): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);
  const told = (): string[] => logger.lines.map(({ message }) => message);
  return { book, channels, link, path, text, told, close };
}

it('a channel of one node is a file of all, and changed and deleted by any of them', async () => {
  const [a, b] = [await open('a'), await open('b')];
  await a.channels.change('tv', () => 'one');
  await soon(b.text).toBe('one');
  await b.channels.change('tv', () => 'two');
  await soon(a.text).toBe('two');
  const figures = Array.from({ length: 2 }, () => ({ definitions: 1, unplaced: 0 }));
  await soon(() => [a.book.figures, b.book.figures]).toEqual(figures);
  await b.close();
  await a.channels.change('tv', () => 'three');
  const back = await open('b');
  await soon(back.text).toBe('three');
  await back.channels.remove('tv');
  await soon(a.text).toBe(null);
  const line = "the multiplex channel 'tv' is deleted here too: another node has deleted it";
  await soon(() => a.told().includes(line)).toBe(true);
});

it('a change while Redis is away is kept, and told after a restart of the node', async () => {
  const [a, b] = [await open('a'), await open('b')];
  await a.channels.change('tv', () => 'one');
  await soon(b.text).toBe('one');
  a.link.close();
  await a.channels.change('tv', () => 'two');
  expect(a.text()).toBe('two');
  await a.close();
  const again = await open('a');
  await soon(b.text).toBe('two');
  await redis.ask('FLUSHALL');
  await open('c');
  await soon(() => readFileSync(join(root, 'c', 'files', 'tv.mux'), 'utf8')).toBe('two');
  expect(again.text()).toBe('two');
});

it('a file of a node wins there, over definitions and deletions of the others', async () => {
  mkdirSync(join(root, 'b', 'files'), { recursive: true });
  writeFileSync(join(root, 'b', 'files', 'tv.mux'), 'own');
  const [a, b] = [await open('a'), await open('b')];
  await a.channels.change('tv', () => 'one');
  await soon(() => b.told().filter((message) => message.includes('is not followed')).length).toBe(1);
  await b.book.look();
  expect([b.text(), b.book.figures, b.told().filter((message) => message.includes('is not followed')).length]).toEqual([
    ...['own', { definitions: 1, unplaced: 0 }, 1],
  ]);
  await a.channels.remove('tv');
  await soon(() => b.book.figures.definitions).toBe(0);
  await b.book.look();
  expect([b.text(), b.told().some((message) => message.includes('deleted here too'))]).toEqual(['own', false]);
  // A person's edit of a shared file makes it the node's own.
  await a.channels.change('tv', () => 'two');
  writeFileSync(a.path, 'edited');
  await soon(() => a.told().some((message) => message.includes('is not followed'))).toBe(true);
  await a.close();
  const again = await open('a');
  await again.book.look();
  expect(again.text()).toBe('edited');
  rmSync(again.path);
  await soon(again.text).toBe('two');
}, 30_000);
