import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { appendFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import type { IndexedRecording } from './indexed-recording.ts';
import { RecordingIndex } from './recording-index.ts';
import { RecordingLibrary, type Retention } from './recording-library.ts';

const HOUR = 3_600_000;
const APP = { vhost: 'default', app: 'app' };

let folder: string;
let clock: ManualClock;
let logger: RecordingLogger;
let index: RecordingIndex;
let retention: Retention | null;
let library: RecordingLibrary;

async function openLibrary(): Promise<void> {
  index = new RecordingIndex(path.join(folder, 'state/finished.jsonl'), logger);
  await index.load();
  const allowed = new AllowedFolders([path.join(folder, 'root')], 'the test');
  library = new RecordingLibrary({ index, allowed, retentionOf: () => retention, clock, logger });
}

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-library-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(path.join(folder, 'root'));
  clock = new ManualClock(100 * HOUR);
  logger = new RecordingLogger();
  retention = null;
  await openLibrary();
});

/** A file of this many bytes that ended this many hours ago. */
async function recorded(
  name: string,
  hoursAgo: number,
  { bytes = 10, at = path.join(folder, 'root', name) } = {},
): Promise<IndexedRecording> {
  if (!existsSync(at)) writeFileSync(at, 'x'.repeat(bytes));
  const { ino, mtimeMs } = statSync(at);
  const times = { startTime: clock.now() - hoursAgo * HOUR - 1000, durationMs: 1000 };
  const file = { path: at, root: null, container: 'mp4' as const, bytes, inode: String(ino), writtenAt: Math.floor(mtimeMs) };
  const entry = { key: name, ...APP, stream: 'live', task: 't', ...times, ...file };
  await index.add(entry);
  return entry;
}

const names = (): string[] =>
  library.find(APP, { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY, stream: '' }).map(({ key }) => key);
const isThere = (name: string): boolean => existsSync(path.join(folder, 'root', name));

test('files are kept without a retention limit', async () => {
  await recorded('old', 99);
  await library.sweep();
  retention = { maxAge: 0, maxBytes: 0 };
  await library.sweep();
  expect([names(), isThere('old')]).toEqual([['old'], true]);
});

test('a recording older than MaxAge is removed, logged and counted; a foreign file stays', async () => {
  await recorded('old', 3);
  await recorded('new', 1);
  writeFileSync(path.join(folder, 'root/foreign.mp4'), 'x');
  retention = { maxAge: 2 * 3600, maxBytes: 0 };
  await library.sweep();
  expect([names(), isThere('old'), isThere('new'), isThere('foreign.mp4')]).toEqual([['new'], false, true, true]);
  expect(library.counts).toEqual({ removedForAge: 1, removedForSize: 0, removalFailures: 0 });
  expect(logger.lines.map(({ message }) => message)).toContain('recording removed: it is older than MaxAge');
});

test('the oldest files are removed until the others fit into MaxBytes', async () => {
  for (const [name, hours] of [
    ['c', 1],
    ['a', 3],
    ['b', 2],
  ] as const)
    await recorded(name, hours, { bytes: 40 });
  retention = { maxAge: 0, maxBytes: 100 };
  await library.sweep();
  expect([names(), isThere('a')]).toEqual([['b', 'c'], false]);
  retention = { maxAge: 0, maxBytes: 10 };
  await library.sweep();
  expect([names(), library.counts.removedForSize]).toEqual([[], 3]);
});

test('a short file beyond MaxAge is removed, even when it started after a long file that is kept', async () => {
  const long = await recorded('long', 6);
  await index.add({ ...long, durationMs: 5.5 * HOUR });
  await recorded('short', 4);
  retention = { maxAge: 2 * 3600, maxBytes: 0 };
  await library.sweep();
  expect([names(), isThere('long'), isThere('short')]).toEqual([['long'], true, false]);
});

test('missing files do not count towards MaxBytes', async () => {
  await recorded('old', 3, { bytes: 40 });
  const moved = await recorded('moved', 2, { bytes: 40 });
  await recorded('new', 1, { bytes: 40 });
  rmSync(moved.path);
  retention = { maxAge: 0, maxBytes: 100 };
  await library.sweep();
  expect([names(), isThere('old'), isThere('new')]).toEqual([['old', 'new'], true, true]);
  expect(library.counts.removedForSize).toBe(0);
});

test('a missing or replaced file is not listed as present, and an intact file is listed again when its folder returns', async () => {
  const [root, elsewhere] = [path.join(folder, 'root'), path.join(folder, 'elsewhere')];
  const all = [await recorded('one', 3), await recorded('two', 2), await recorded('three', 1)];
  const present = async (): Promise<string[]> => (await library.present(all)).map(({ key }) => key);
  renameSync(root, elsewhere);
  expect([await present(), await library.open(all[0] as IndexedRecording)]).toEqual([[], null]);
  renameSync(elsewhere, root);
  expect([await present(), names()]).toEqual([
    ['one', 'two', 'three'],
    ['one', 'two', 'three'],
  ]);
  rmSync(path.join(root, 'one'));
  writeFileSync(path.join(root, 'two'), 'somebody else');
  expect([await present(), names()]).toEqual([['three'], ['three']]);
});

test('an entry is dropped when a foreign file or link replaced its recording, and that file is kept', async () => {
  const entry = await recorded('old', 9);
  rmSync(entry.path);
  writeFileSync(entry.path, 'somebody else');
  const other = await recorded('link', 9);
  rmSync(other.path);
  writeFileSync(path.join(folder, 'secret'), 'x'.repeat(10));
  symlinkSync(path.join(folder, 'secret'), other.path);
  retention = { maxAge: 1, maxBytes: 0 };
  await library.sweep();
  expect([isThere('old'), existsSync(path.join(folder, 'secret')), library.counts.removedForAge]).toEqual([true, true, 0]);
  expect(names()).not.toContain('old');
});

test('a file outside of the allowed folders is neither opened nor removed', async () => {
  const outside = path.join(folder, 'outside.mp4');
  const entry = await recorded('outside', 9, { at: outside });
  mkdirSync(path.join(folder, 'elsewhere'));
  symlinkSync(path.join(folder, 'elsewhere'), path.join(folder, 'root/way-out'));
  const through = await recorded('through', 9, { at: path.join(folder, 'root/way-out/x.mp4') });
  expect([await library.open(entry), await library.open(through)]).toEqual([null, null]);
  retention = { maxAge: 1, maxBytes: 0 };
  await library.sweep();
  expect([existsSync(outside), existsSync(through.path)]).toEqual([true, true]);
  expect(library.counts.removalFailures).toBe(2);
});

test('the index survives a restart, without its truncated line and without removed entries', async () => {
  await recorded('one', 1);
  await recorded('two', 2);
  await recorded('three', 3);
  await index.remove('two');
  await appendFile(path.join(folder, 'state/finished.jsonl'), '{"key":"fo');
  await openLibrary();
  expect(names()).toEqual(['three', 'one']);
  await recorded('four', 0);
  await openLibrary();
  expect(names()).toEqual(['three', 'one', 'four']);
});

test('outdated lines of the index are compacted away', async () => {
  const entry = await recorded('one', 1);
  for (let n = 0; n < 1500; n += 1) void index.add({ ...entry, bytes: n });
  await index.settled();
  const text = await readFile(path.join(folder, 'state/finished.jsonl'), 'utf8');
  expect(text.split('\n').length).toBeLessThan(1002);
  await openLibrary();
  expect(index.get('one')?.bytes).toBe(1499);
});

test('a search finds only recordings of the application that overlap the requested time', async () => {
  await recorded('early', 5);
  await recorded('late', 1);
  const at = (hours: number): number => clock.now() - hours * HOUR;
  const found = (from: number, to: number, stream = '', owner = APP): string[] =>
    library.find(owner, { from, to, stream }).map(({ key }) => key);
  expect(found(at(6), at(4))).toEqual(['early']);
  expect(found(at(5) - 500, at(0))).toEqual(['early', 'late']);
  // An end is not in the time that begins with it.
  expect(found(at(5), at(2))).toEqual([]);
  expect(found(at(9), at(0), 'other')).toEqual([]);
  expect(found(at(9), at(0), '', { ...APP, app: 'b' })).toEqual([]);
  expect(library.get({ ...APP, app: 'b' }, 'early')).toBeNull();
});
