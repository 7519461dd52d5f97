import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { FileMarks } from './file-marks.ts';

const FILE = { kind: 'scheduled', vhost: 'default', app: 'app', name: 'tv' } as const;

let folder: string;
const logger = new RecordingLogger();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-marks-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function open(): Promise<FileMarks> {
  const marks = new FileMarks(folder, logger);
  await marks.load();
  return marks;
}

function known(marks: FileMarks): string[] {
  return ['one', 'two', 'three'].filter((digest) => marks.has(FILE, digest));
}

test('a mark tells the content that this server wrote last, also after a restart', async () => {
  const marks = await open();
  expect(known(marks)).toEqual([]);
  await marks.during(FILE, { before: null, after: 'one' }, async () => undefined);
  await marks.during(FILE, { before: 'one', after: 'two' }, async () => undefined);
  expect([known(marks), known(await open())]).toEqual([['two'], ['two']]);
  expect(marks.has({ ...FILE, kind: 'multiplex' }, 'two')).toBe(false);
  await marks.remove(FILE);
  expect([known(marks), known(await open()), readdirSync(folder)]).toEqual([[], [], []]);
});

test('a crash between the mark and the file leaves a mark of both contents', async () => {
  const marks = await open();
  await marks.during(FILE, { before: null, after: 'one' }, async () => undefined);
  await expect(
    marks.during(FILE, { before: 'one', after: 'two' }, async () => {
      expect(known(await open())).toEqual(['one', 'two']);
      throw new Error('the disk is full');
    }),
  ).rejects.toThrow('the disk is full');
  expect(known(await open())).toEqual(['one', 'two']);
});

test('content that somebody else wrote is not marked when it is replaced', async () => {
  const marks = await open();
  await marks.during(FILE, { before: 'one', after: 'two' }, async () => expect(known(await open())).toEqual(['two']));
  await marks.during(FILE, { before: 'one', after: 'three' }, async () => expect(known(await open())).toEqual(['three']));
});

test('nothing is written if the mark cannot be saved', async () => {
  const marks = await open();
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  const write = async (): Promise<void> => expect.unreachable();
  await expect(marks.during(FILE, { before: null, after: 'one' }, write)).rejects.toThrow('ENOTDIR');
  expect(known(marks)).toEqual([]);
});

test('unreadable marks are set aside', async () => {
  const marks = await open();
  await marks.during(FILE, { before: null, after: 'one' }, async () => undefined);
  const [name = ''] = readdirSync(folder);
  const members = { format: 'millrace-state', version: 1, kind: 'file-mark', vhost: 'default', app: 'app', name: 'tv', file: 'scheduled' };
  for (const digests of [[], 'one', [1], ['one', 'two', 'three']]) {
    writeFileSync(join(folder, name), JSON.stringify({ ...members, digests }));
    expect(known(await open())).toEqual([]);
  }
  expect(readdirSync(folder).every((file) => file.includes('.broken-'))).toBe(true);
});
