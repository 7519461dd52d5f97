import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { XMLParser } from 'fast-xml-parser';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type RecordedFile, RecordInfoFiles } from './record-info-file.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-info-'));
  path = join(folder, 'info.xml');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const FILE: RecordedFile = {
  transactionId: 'T',
  id: 'rec',
  metadata: 'some <metadata> & more',
  vhost: 'default',
  app: 'app',
  stream: 's',
  filePath: '/a/b.ts',
  recordBytes: 1000,
  recordTime: 2000,
  sequence: 0,
  lastSequence: true,
  createdTime: Date.UTC(2026, 0, 1),
  startTime: Date.UTC(2026, 0, 1),
  finishTime: Date.UTC(2026, 0, 1),
};

function files(): Record<string, unknown>[] {
  const parser = new XMLParser({ isArray: (name) => name === 'file', parseTagValue: false, trimValues: false });
  return (parser.parse(readFileSync(path, 'utf8')) as { files: { file: Record<string, unknown>[] } }).files.file;
}

test('files are listed in the order of their ends, even when ten end at once', async () => {
  const info = new RecordInfoFiles();
  await Promise.all(Array.from({ length: 10 }, (_, sequence) => info.append(path, { ...FILE, sequence, lastSequence: sequence === 9 })));
  expect(files().map((file) => file['sequence'])).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
  expect(
    files()
      .map((file) => file['lastSequence'])
      .lastIndexOf('false'),
  ).toBe(8);
  expect(files()[0]).toMatchObject({ metadata: 'some <metadata> & more', filePath: '/a/b.ts', recordBytes: '1000', recordTime: '2000' });
  expect(Object.keys(files()[0] ?? {}).filter((name) => name !== '#text')).toEqual(Object.keys(FILE));
  expect(readdirSync(folder)).toEqual(['info.xml']);
});

test('arbitrary texts are read back unchanged', async () => {
  const text = fc.string({ unit: fc.constantFrom(']', '>', '<', '&', 'a', '"', 'é', '😀', ']]>'), maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(text, text, async (metadata, filePath) => {
      rmSync(path, { force: true });
      await new RecordInfoFiles().append(path, { ...FILE, metadata: `x${metadata}`, filePath: `x${filePath}` });
      expect(files()[0]).toMatchObject({ metadata: `x${metadata}`, filePath: `x${filePath}` });
    }),
    { numRuns: 50 },
  );
});

test('an invalid file is kept under another name', async () => {
  writeFileSync(path, '<files><file>');
  await new RecordInfoFiles().append(path, FILE);
  expect(files()).toHaveLength(1);
  const [kept = ''] = readdirSync(folder).filter((name) => name.includes('.broken-'));
  expect(readFileSync(join(folder, kept), 'utf8')).toBe('<files><file>');
});

test('a missing folder is reported, and later additions succeed', async () => {
  const info = new RecordInfoFiles();
  await expect(info.append(join(folder, 'no/info.xml'), FILE)).rejects.toMatchObject({ code: 'ENOENT' });
  await info.append(path, FILE);
  expect(files()).toHaveLength(1);
});

test('a reader sees the whole old file or the whole new file during an addition', async () => {
  const info = new RecordInfoFiles();
  await info.append(path, FILE);
  const old = readFileSync(path, 'utf8');
  const reader = openSync(path, 'r');
  await info.append(path, { ...FILE, sequence: 1 });
  expect(readFileSync(reader, 'utf8')).toBe(old);
  closeSync(reader);
  expect(files()).toHaveLength(2);
});
