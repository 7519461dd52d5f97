import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { IndexedRecording } from './indexed-recording.ts';
import { RecordingIndex } from './recording-index.ts';

const APP = { vhost: 'default', app: 'app' };
const ALL = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] as const;

let file: string;
let logger: RecordingLogger;

beforeEach(() => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-index-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  file = path.join(folder, 'finished.jsonl');
  logger = new RecordingLogger();
});

function recording(key: string, startTime: number, { app = 'app', bytes = 1, durationMs = 1000 } = {}): IndexedRecording {
  const place = { path: `/recordings/${key}.mp4`, root: null, container: 'mp4' as const, inode: '1', writtenAt: startTime };
  return { key, vhost: 'default', app, stream: 'live', task: 'task', bytes, startTime, durationMs, ...place };
}

async function opened(maxIndexed?: number): Promise<RecordingIndex> {
  const index = new RecordingIndex(file, logger, maxIndexed);
  await index.load();
  return index;
}

const keysOf = (index: RecordingIndex, app = 'app'): string[] => (index.of({ ...APP, app })?.all ?? []).map(({ key }) => key);

test('lists recordings by start and key, however they were added, replaced and removed', async () => {
  const index = await opened();
  const kept = new Map<string, IndexedRecording>();
  let random = 7;
  const next = (below: number): number => {
    random = (random * 48_271) % 2_147_483_647;
    return random % below;
  };
  for (let n = 0; n < 500; n += 1) {
    const entry = recording(`r${next(120)}`, next(40), { bytes: next(1000) });
    if (next(3) === 0) {
      kept.delete(entry.key);
      await index.remove(entry.key);
    } else {
      kept.set(entry.key, entry);
      void index.add(entry);
    }
  }
  const expected = [...kept.values()].sort((a, b) => a.startTime - b.startTime || (a.key < b.key ? -1 : 1));
  expect(index.of(APP)?.all).toEqual(expected);
  expect([index.size, index.bytes]).toEqual([expected.length, expected.reduce((sum, { bytes }) => sum + bytes, 0)]);
  await index.settled();
  expect((await opened()).of(APP)?.all).toEqual(expected);
});

test('finds what overlaps a time, a long recording that began before it included', async () => {
  const index = await opened();
  for (const entry of [recording('long', 0, { durationMs: 9000 }), recording('short', 1000), recording('later', 5000)])
    void index.add(entry);
  const between = (from: number, to: number): string[] => (index.of(APP)?.between(from, to) ?? []).map(({ key }) => key);
  expect([between(3000, 5000), between(1999, 2000), between(2000, 5001), between(...ALL)]).toEqual([
    ['long'],
    ['long', 'short'],
    ['long', 'later'],
    ['long', 'short', 'later'],
  ]);
  await index.settled();
});

test('keeps applications apart, and forgets one whose last recording is gone', async () => {
  const index = await opened();
  await Promise.all([index.add(recording('a', 1)), index.add(recording('b', 2, { app: 'other' }))]);
  await index.remove('a');
  expect([keysOf(index), keysOf(index, 'other'), [...index.applications()].length]).toEqual([[], ['b'], 1]);
});

test('forgets the earliest finished of too many, also of earlier runs', async () => {
  const index = await opened();
  for (let n = 0; n < 8; n += 1) void index.add(recording(`r${n}`, n));
  await index.settled();
  const small = await opened(5);
  expect([keysOf(small), small.forgotten]).toEqual([['r3', 'r4', 'r5', 'r6', 'r7'], 3]);
  await small.add(recording('r8', 8));
  expect([keysOf(small), small.forgotten]).toEqual([['r4', 'r5', 'r6', 'r7', 'r8'], 4]);
  expect(logger.lines.map(({ level, message }) => `${level} ${message}`).join()).toContain('warn more than 5 recorded files');
});

test('what changes while the file is written anew is there after a restart', async () => {
  const index = await opened();
  for (let n = 0; n < 1300; n += 1) void index.add(recording(`r${String(n).padStart(4, '0')}`, n));
  await index.settled();
  // As many lines without use as with: the next change writes the file anew, in several pieces.
  for (let n = 0; n < 700; n += 1) await index.remove(`r${String(n).padStart(4, '0')}`);
  const anew = index.add(recording('during', 5000));
  void index.remove('r0700');
  void index.add(recording('behind', 6000));
  await Promise.all([anew, index.settled()]);
  const expected = keysOf(index);
  expect(expected).toHaveLength(1300 - 701 + 2);
  expect(keysOf(await opened())).toEqual(expected);
});
