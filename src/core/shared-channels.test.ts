import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeWork } from '../../test/fakes/fake-work.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { allOf } from '../../test/support/all-of.ts';
import { DefinitionFolder } from '../state/definition-folder.ts';
import { FileMarks } from '../state/file-marks.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { channelKeeper, SharedChannels } from './shared-channels.ts';

const TV = 'scheduled/v/app/tv';

let root: string;
const closing: (() => Promise<void>)[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-shared-channels-'));
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  rmSync(root, { recursive: true, force: true });
});

/** A node with the files and marks of its name. A definition is a text that begins with `ok`. */
async function open(node: string) {
  const logger = new RecordingLogger();
  const work = new FakeWork();
  const marks = new FileMarks(join(root, node, 'marks'), logger);
  await marks.load();
  const files = join(root, node, 'files');
  mkdirSync(files, { recursive: true });
  const folder = new DefinitionFolder<string>({
    ...{ folder: files, extension: '.sch', what: 'scheduled channel', allowed: new AllowedFolders(null, 'nothing'), logger },
    isName: (name) => /^[\w-]+$/.test(name),
    parse: (text) => {
      if (!text.startsWith('ok')) throw new Error('it says something else');
      return text;
    },
    format: (definition) => definition,
    changed: () => undefined,
    removed: (name) => channels.forget(name),
    logger,
    scanMs: 1_000_000,
  });
  const ready = Promise.withResolvers<void>();
  const channels = new SharedChannels<string>({
    ...{ kind: 'scheduled', application: { vhost: 'v', name: 'app' }, folder, ready: () => ready.promise, marks, work, logger },
  });
  await folder.start();
  channels.read();
  ready.resolve();
  closing.push(() => folder.close());
  const pathOf = (name: string): string => join(files, `${name}.sch`);
  const text = (name = 'tv'): string | null => (existsSync(pathOf(name)) ? readFileSync(pathOf(name), 'utf8') : null);
  /** A person writes or removes a file. */
  const edit = async (content: string | null, name = 'tv'): Promise<void> => {
    if (content === null) rmSync(pathOf(name));
    else writeFileSync(pathOf(name), content);
    for (let scan = 0; scan < 3; scan += 1) await folder.scan();
  };
  const warnings = (): string[] => logger.lines.flatMap(({ level, message }) => (level === 'warn' ? [message] : []));
  const defined = async () => (await allOf(channels.definitions(() => false))).map(({ work: { name }, definition }) => [name, definition]);
  return { channels, folder, work, text, edit, warnings, defined, pathOf };
}

describe('a channel of the API', () => {
  it('is told, adopted by another node as the same file, and dropped there', async () => {
    const [a, b] = [await open('a'), await open('b')];
    await a.channels.change('tv', () => 'ok 1');
    expect(a.work.told.get(TV)).toEqual({ file: 'ok 1' });
    expect([b.channels.has('tv'), await b.channels.adopt('tv', { file: 'ok 1' }), b.channels.has('tv')]).toEqual([false, true, true]);
    expect([b.text(), await b.defined()]).toEqual(['ok 1', [['tv', { file: 'ok 1' }]]]);
    await b.channels.change('tv', (current) => `${current} 2`);
    expect([b.work.told.get(TV), await a.channels.adopt('tv', { file: 'ok 1 2' }), a.text()]).toEqual([{ file: 'ok 1 2' }, true, 'ok 1 2']);
    await b.channels.remove('tv');
    expect([b.work.told.get(TV), b.text(), await a.channels.drop('tv'), a.text(), a.channels.has('tv')]).toEqual([
      ...[null, null, true, null, false],
    ]);
    expect([a.warnings(), b.warnings(), await a.defined()]).toEqual([[], [], []]);
  });

  it('is one after a restart, too', async () => {
    const a = await open('a');
    await a.channels.change('tv', () => 'ok 1');
    const again = await open('a');
    expect([again.channels.has('tv'), await again.defined()]).toEqual([true, [['tv', { file: 'ok 1' }]]]);
    expect([await again.channels.adopt('tv', { file: 'ok 2' }), again.text()]).toEqual([true, 'ok 2']);
  });

  it('is not told if it cannot be written', async () => {
    const a = await open('a');
    await expect(a.channels.change('tv', () => 'nonsense')).rejects.toThrow('something else');
    await expect(
      a.channels.change('tv', () => {
        throw new Error('the name is taken');
      }),
    ).rejects.toThrow('taken');
    expect([a.work.told.size, a.channels.has('tv')]).toEqual([0, false]);
  });

  it('returns with the next adoption after somebody has removed its file', async () => {
    const a = await open('a');
    await a.channels.change('tv', () => 'ok 1');
    await a.edit(null);
    expect([a.channels.has('tv'), await a.defined()]).toEqual([false, []]);
    expect([await a.channels.adopt('tv', { file: 'ok 1' }), a.text(), a.channels.has('tv')]).toEqual([true, 'ok 1', true]);
  });

  it('is deflated if it is long, and not told if that is too long', async () => {
    const [a, b] = [await open('a'), await open('b')];
    const long = `ok ${'film '.repeat(300_000)}`;
    await a.channels.change('tv', () => long);
    const told = a.work.told.get(TV) as { deflated: string };
    expect([Object.keys(told), told.deflated.length < 65_000]).toEqual([['deflated'], true]);
    expect([await b.channels.adopt('tv', { ...told }), b.text() === long, (await b.defined()).length]).toEqual([true, true, 1]);
    // The book refuses what is too large, and logs it.
    const noise = `ok ${randomBytes(60_000).toString('base64')}`;
    await a.channels.change('tv', () => noise);
    expect([a.work.told.get(TV), await a.defined()]).toEqual([{ file: noise }, []]);
    // What other nodes still have does not come back.
    expect([await a.channels.adopt('tv', { ...told }), a.text() === noise]).toEqual([false, true]);
  });
});

it('a channel whose file has just gone, on a folder that nodes share, is no contradiction', async () => {
  const a = await open('a');
  await a.edit('ok theirs');
  expect(await a.channels.adopt('tv', { file: 'ok theirs' })).toBe(true);
  rmSync(a.pathOf('tv'));
  expect([await a.channels.drop('tv'), a.channels.has('tv'), a.warnings()]).toEqual([true, false, []]);
});

describe('a file that somebody wrote or edited', () => {
  it('stays whatever other nodes define or delete, which the log says', async () => {
    const a = await open('a');
    await a.edit('ok own');
    expect([a.channels.has('tv'), await a.defined()]).toEqual([false, []]);
    expect([await a.channels.adopt('tv', { file: 'ok theirs' }), a.channels.has('tv')]).toEqual([false, true]);
    const stays = `${a.pathOf('tv')} was not written by an API`;
    expect(a.warnings()).toEqual([`the scheduled channel 'tv' of other nodes is not followed: ${stays}, and stays`]);
    expect([await a.channels.drop('tv'), a.text()]).toEqual([false, 'ok own']);
    expect(a.warnings().at(-1)).toBe(`the scheduled channel 'tv' stays, which another node has deleted: ${stays}`);
    await a.edit(null);
    expect([await a.channels.adopt('tv', { file: 'ok theirs' }), a.text()]).toEqual([true, 'ok theirs']);
    await a.edit('ok edited');
    expect([a.channels.has('tv'), await a.channels.adopt('tv', { file: 'ok theirs' }), a.text()]).toEqual([false, false, 'ok edited']);
  });

  it('is looked at before it is replaced or removed', async () => {
    const a = await open('a');
    await a.channels.change('tv', () => 'ok 1');
    writeFileSync(a.pathOf('tv'), 'ok a moment ago');
    expect([await a.channels.adopt('tv', { file: 'ok 2' }), await a.channels.drop('tv'), a.text()]).toEqual([
      ...[false, false, 'ok a moment ago'],
    ]);
  });

  it('is no contradiction if it says the same', async () => {
    const a = await open('a');
    await a.edit('ok same');
    expect([await a.channels.adopt('tv', { file: 'ok same' }), a.channels.has('tv'), a.warnings()]).toEqual([true, true, []]);
    expect([await a.channels.adopt('tv', { file: 'ok other' }), a.text(), a.warnings().length]).toEqual([false, 'ok same', 1]);
  });

  it('is told once the API changes it', async () => {
    const a = await open('a');
    await a.edit('ok own');
    await a.channels.change('tv', (current) => `${current} changed`);
    expect([a.work.told.get(TV), await a.channels.adopt('tv', { file: 'ok theirs' }), a.text()]).toEqual([
      ...[{ file: 'ok own changed' }, true, 'ok theirs'],
    ]);
  });

  it('and cannot be used keeps the channel away', async () => {
    const a = await open('a');
    await a.edit('nonsense');
    const reason = `${a.pathOf('tv')} is this node's own, and cannot be used`;
    await expect(a.channels.adopt('tv', { file: 'ok theirs' })).rejects.toThrow(reason);
    expect([a.text(), a.channels.has('tv')]).toEqual(['nonsense', false]);
  });
});

const bomb = deflateRawSync(Buffer.alloc(64 * 1024 * 1024, 'ok')).toString('base64');
it.each([
  [{}, 'cannot be read'],
  [{ file: 7 }, 'cannot be read'],
  [{ deflated: 'no base64 of anything' }, 'cannot be read'],
  [{ deflated: bomb }, 'cannot be read'],
  [{ file: 'nonsense' }, 'it says something else'],
])('a definition that is none is refused: %#', async (definition, reason) => {
  const a = await open('a');
  await expect(a.channels.adopt('tv', definition)).rejects.toThrow(reason);
  await expect(a.channels.adopt('../tv', { file: 'ok' })).rejects.toThrow('cannot be the name');
  expect([a.text(), a.channels.has('tv'), await a.defined()]).toEqual([null, false, []]);
});

it('a keeper says which provider is missing, and drops nothing there', async () => {
  const a = await open('a');
  await a.channels.change('tv', () => 'ok 1');
  const keeper = channelKeeper('scheduled', 'Schedule', {
    sharedIn: (vhost) => (vhost === 'v' ? [a.channels] : []),
    sharedOf: (vhost, app) => (vhost === 'v' && app === 'app' ? a.channels : null),
  });
  const work = { kind: 'scheduled', vhost: 'v', app: 'app', name: 'tv' } as const;
  const other = { ...work, app: 'other' };
  const all = (vhost: string, isKnown = false) => allOf(keeper.definitions(vhost, () => isKnown));
  expect([keeper.has(work), keeper.has(other), await keeper.drop(other)]).toEqual([true, false, true]);
  expect([await all('v'), await all('w'), await all('v', true)]).toEqual([...[[{ work, definition: { file: 'ok 1' } }], [], []]]);
  await expect(keeper.adopt(other, { file: 'ok' })).rejects.toThrow("the provider Schedule is not enabled in application 'v/other'");
  expect([await keeper.adopt(work, { file: 'ok 2' }), a.text(), await keeper.drop(work), a.text()]).toEqual([true, 'ok 2', true, null]);
});
