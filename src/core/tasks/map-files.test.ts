import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { turnsDuring } from '../../../test/support/turns-during.ts';
import type { XmlElement } from '../../config/xml.ts';
import { MapFiles } from './map-files.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-map-files-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, entries: readonly string[]): string {
  const file = path.join(folder, name);
  writeFileSync(file, `<Map>${entries.map((entry) => `<Entry>${entry}</Entry>`).join('\n')}</Map>`);
  return file;
}

function maps() {
  const reads: string[] = [];
  const parse = ({ file, children }: XmlElement): string[] => {
    reads.push(path.basename(file));
    return children.map(({ text }) => text);
  };
  return { files: new MapFiles(parse, new RecordingLogger()), reads };
}

test('a map is parsed once for all streams until it changes', async () => {
  const { files, reads } = maps();
  const file = write('changes.xml', ['a', 'b']);
  expect(await Promise.all([files.entries(file), files.entries(file)])).toEqual([
    ['a', 'b'],
    ['a', 'b'],
  ]);
  expect(await files.entries(file)).toEqual(['a', 'b']);
  expect(reads).toEqual(['changes.xml']);
  write('changes.xml', ['a', 'b', 'c']);
  expect(await files.entries(file)).toEqual(['a', 'b', 'c']);
  expect(reads).toEqual(['changes.xml', 'changes.xml']);
});

test('a large map is read while the event loop turns', async () => {
  const { files } = maps();
  const names = Array.from({ length: 20_000 }, (_, n) => `stream-of-the-map-${n}`);
  const { turns, result } = await turnsDuring(() => files.entries(write('large.xml', names)));
  expect(result).toEqual(names);
  expect(turns).toBeGreaterThan(10);
});

test('an unusable map is read again, and too large a one is refused', async () => {
  const { files, reads } = maps();
  const file = path.join(folder, 'broken.xml');
  await expect(files.entries(file)).rejects.toThrow('ENOENT');
  writeFileSync(file, '<Map>');
  await expect(files.entries(file)).rejects.toThrow('not well-formed');
  writeFileSync(file, `<Map>${' '.repeat(2 * 1024 * 1024)}</Map>`);
  await expect(files.entries(file)).rejects.toThrow('at most 2097152 are taken');
  expect(await files.entries(write('broken.xml', ['x']))).toEqual(['x']);
  expect(reads).toEqual(['broken.xml']);
});

test('the maps read first are forgotten when there are many', async () => {
  const { files, reads } = maps();
  const all = Array.from({ length: 101 }, (_, n) => write(`${n}.xml`, [`${n}`]));
  for (const file of all) await files.entries(file);
  await files.entries(all[100] ?? '');
  await files.entries(all[0] ?? '');
  expect(reads.slice(100)).toEqual(['100.xml', '0.xml']);
});
