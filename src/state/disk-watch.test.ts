import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { Conditions } from '../util/conditions.ts';
import type { DiskSpace } from '../util/disk-space.ts';
import { DiskWatch } from './disk-watch.ts';

const GIB = 1024 ** 3;
const ROOMY: DiskSpace = { free: 50 * GIB, size: 100 * GIB, freeFiles: 1e6 };

let folder = '';
let space = ROOMY;
let conditions = new Conditions();
let logger = new RecordingLogger();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-watch-'));
  space = ROOMY;
  conditions = new Conditions();
  logger = new RecordingLogger();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

function watch(...names: string[]): DiskWatch {
  const folders = names.map((name) => ({ path: join(folder, name), what: name }));
  return new DiskWatch({ conditions, logger, folders, spaceOf: async () => space });
}

test('a disk is reported before it is full, when it is full, and when it has room again', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const disks = watch('state/not/there/yet', 'state/recordings');
  const turn = async (next: DiskSpace): Promise<readonly string[]> => {
    space = next;
    vi.advanceTimersByTime(10_000);
    await disks.look();
    return conditions.reasons;
  };
  await disks.start();
  expect(conditions.reasons).toEqual([]);
  expect(await turn({ ...ROOMY, free: GIB - 1 })).toEqual(['the disk of state/not/there/yet is nearly full']);
  // Free space is judged by its share of a small disk, and by its size on a large one.
  expect(await turn({ free: 6, size: 100, freeFiles: 1e6 })).toEqual([]);
  expect(await turn({ free: 4, size: 100, freeFiles: 1e6 })).toEqual(['the disk of state/not/there/yet is nearly full']);
  expect(await turn({ ...ROOMY, free: 0 })).toEqual(['the disk of state/not/there/yet is full']);
  expect(await turn({ ...ROOMY, freeFiles: 0 })).toEqual(['the disk of state/not/there/yet is full']);
  expect(await turn(ROOMY)).toEqual([]);
  expect(logger.lines.map(({ level }) => level)).toEqual(['warn', 'info', 'warn', 'warn', 'info']);
  await disks.stop();
  expect(vi.getTimerCount()).toBe(0);
});

test('a folder that was removed or made again is reported if it has a mark', async () => {
  const path = join(folder, 'state');
  const make = (): void => {
    mkdirSync(path);
    writeFileSync(join(path, 'mark'), '');
  };
  make();
  const folders = [{ path, what: 'the state folder', mark: 'mark' }];
  const disks = new DiskWatch({ conditions, logger, folders, spaceOf: async () => space });
  await disks.start();
  expect(conditions.reasons).toEqual([]);
  rmSync(path, { recursive: true });
  const removed = 'the state folder was removed: nothing is kept there until a restart';
  await disks.look();
  await disks.look();
  expect(conditions.reasons).toEqual([removed]);
  mkdirSync(path);
  await disks.look();
  expect(conditions.reasons).toEqual([removed]);
  expect(logger.lines.map(({ level, message }) => [level, message])).toEqual([['warn', removed]]);
  rmSync(path, { recursive: true });
  make();
  await disks.look();
  expect(conditions.reasons).toEqual([]);
  await disks.stop();
});

test('a folder that cannot be written to is reported', async () => {
  writeFileSync(join(folder, 'file'), '');
  const disks = watch('file/below');
  await disks.start();
  expect(conditions.reasons).toEqual(['file/below cannot be written to: the file system refused (ENOTDIR)']);
  expect(logger.lines).toMatchObject([{ level: 'warn', fields: { folder: join(folder, 'file/below') } }]);
  rmSync(join(folder, 'file'));
  await disks.look();
  expect(conditions.reasons).toEqual([]);
  await disks.stop();
});
