import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { messageOf } from '../../../util/message-of.ts';
import { DumpFolder } from './dump-folder.ts';

const TOO_MUCH = 65 * 1024 * 1024;

let folder: string;
let events: string[];
let files: DumpFolder;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-dump-folder-'));
  events = [];
  files = new DumpFolder({
    path: folder,
    clock: new ManualClock(),
    onFailed: (error) => void events.push(messageOf(error)),
    onFailureSettled: () => void events.push('settled'),
  });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('overwrites a file of an earlier dump, but follows no link planted in place of a file', async () => {
  const outside = join(folder, 'outside');
  writeFileSync(outside, 'precious');
  writeFileSync(join(folder, 'old.m4s'), 'an earlier and longer one');
  symlinkSync(outside, join(folder, 'planted.m4s'));
  symlinkSync(outside, join(folder, 'planted.m3u8'));
  files.enqueue(() => files.write('old.m4s', Buffer.from('new')));
  files.enqueue(() => files.replace('planted.m3u8', 'text'));
  files.enqueue(() => files.write('planted.m4s', Buffer.from('x')));
  await files.settled;
  expect(readFileSync(join(folder, 'old.m4s'), 'utf8')).toBe('new');
  expect(readFileSync(join(folder, 'planted.m3u8'), 'utf8')).toBe('text');
  expect(readFileSync(outside, 'utf8')).toBe('precious');
  expect(events).toEqual([expect.stringMatching(/^ELOOP/), 'settled']);
});

it('reports at once that the disk is too slow, and settles after the running write, even if that write fails', async () => {
  const disk = Promise.withResolvers<void>();
  files.enqueue(async () => {
    await disk.promise.finally(() => events.push('written'));
  });
  files.enqueue(async () => void events.push('never'));
  await Promise.resolve();
  files.enqueue(async () => void events.push('never'), TOO_MUCH);
  expect(events).toEqual([expect.stringMatching(/^the disk is too slow/)]);
  disk.reject(new Error('and broken'));
  await files.settled;
  expect(events.slice(1)).toEqual(['written', 'settled']);
});
