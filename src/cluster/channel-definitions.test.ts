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
    await book.close();
    await Promise.all([folder.close(), untold.settle(), marks.settle()]);
    link.close();
  };
  stops.push(close);
  await ready;
  book.start();
  await expect.poll(() => book.ready, PATIENCE).toBe(true);
  const path = join(files, 'tv.mux');
  const text = (): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null);
  const told = (): string[] => logger.lines.map(({ message }) => message);
  return { book, channels, link, path, text, told, close };
}

it('a channel of one node is a file of all, and changed and deleted by any of them', async () => {
  const [a, b] = [await open('a'), await open('b')];
  await a.channels.change('tv', () => 'one');
  await expect.poll(b.text, PATIENCE).toBe('one');
  await b.channels.change('tv', () => 'two');
  await expect.poll(a.text, PATIENCE).toBe('two');
  const figures = Array.from({ length: 2 }, () => ({ definitions: 1, unplaced: 0 }));
  await expect.poll(() => [a.book.figures, b.book.figures], PATIENCE).toEqual(figures);
  await b.close();
  await a.channels.change('tv', () => 'three');
  const back = await open('b');
  await expect.poll(back.text, PATIENCE).toBe('three');
  await back.channels.remove('tv');
  await expect.poll(a.text, PATIENCE).toBe(null);
  const line = "the multiplex channel 'tv' is deleted here too: another node has deleted it";
  await expect.poll(() => a.told().includes(line), PATIENCE).toBe(true);
});

it('a change while Redis is away is kept, and told after a restart of the node', async () => {
  const [a, b] = [await open('a'), await open('b')];
  await a.channels.change('tv', () => 'one');
  await expect.poll(b.text, PATIENCE).toBe('one');
  a.link.close();
  await a.channels.change('tv', () => 'two');
  expect(a.text()).toBe('two');
  await a.close();
  const again = await open('a');
  await expect.poll(b.text, PATIENCE).toBe('two');
  await redis.ask('FLUSHALL');
  await open('c');
  await expect.poll(() => readFileSync(join(root, 'c', 'files', 'tv.mux'), 'utf8'), PATIENCE).toBe('two');
  expect(again.text()).toBe('two');
});

it('a file of a node wins there, over definitions and deletions of the others', async () => {
  mkdirSync(join(root, 'b', 'files'), { recursive: true });
  writeFileSync(join(root, 'b', 'files', 'tv.mux'), 'own');
  const [a, b] = [await open('a'), await open('b')];
  await a.channels.change('tv', () => 'one');
  await expect.poll(() => b.told().filter((message) => message.includes('is not followed')).length, PATIENCE).toBe(1);
  await b.book.look();
  expect([b.text(), b.book.figures, b.told().filter((message) => message.includes('is not followed')).length]).toEqual([
    ...['own', { definitions: 1, unplaced: 0 }, 1],
  ]);
  await a.channels.remove('tv');
  await expect.poll(() => b.book.figures.definitions, PATIENCE).toBe(0);
  await b.book.look();
  expect([b.text(), b.told().some((message) => message.includes('deleted here too'))]).toEqual(['own', false]);
  // A person's edit of a shared file makes it the node's own.
  await a.channels.change('tv', () => 'two');
  writeFileSync(a.path, 'edited');
  await expect.poll(() => a.told().some((message) => message.includes('is not followed')), PATIENCE).toBe(true);
  await a.close();
  const again = await open('a');
  await again.book.look();
  expect(again.text()).toBe('edited');
  rmSync(again.path);
  await expect.poll(again.text, PATIENCE).toBe('two');
}, 30_000);
