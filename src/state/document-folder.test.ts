import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { mostInATurn } from '../../test/support/turns-during.ts';
import { DocumentFolder } from './document-folder.ts';
import { KEYED } from './document-layout.ts';
import { StateStore } from './state-store.ts';

let root: string;
let folder: string;
let logger: RecordingLogger;
let documents: DocumentFolder;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-documents-'));
  folder = join(root, 'deep/tasks');
  logger = new RecordingLogger();
  documents = open();
});

function open(): DocumentFolder {
  return new DocumentFolder({ folder, kind: 'task', layout: KEYED, logger });
}

afterEach(() => rmSync(root, { recursive: true, force: true }));

test('saved documents return, in their newest version, without removed ones', async () => {
  expect(await documents.load()).toEqual([]);
  await Promise.all(Array.from({ length: 10 }, (_, value) => documents.save('a', { value })));
  await documents.save('b', {});
  await documents.save('gone', {});
  await documents.remove('gone');
  expect(await open().load()).toEqual([
    { key: 'a', value: { value: 9 } },
    { key: 'b', value: {} },
  ]);
});

test('truncated documents of any length and documents of another kind are set aside', async () => {
  await documents.load();
  await documents.save('good', { x: 1 });
  const whole = readFileSync(join(folder, 'good.json'), 'utf8');
  for (let length = 0; length < whole.length - 1; length += 5) writeFileSync(join(folder, `cut${length}.json`), whole.slice(0, length));
  writeFileSync(join(folder, 'other.json'), whole.replace('"task"', '"virtual-host"'));
  writeFileSync(join(folder, 'half.json.abc.tmp'), '{');
  mkdirSync(join(folder, 'foreign.tmp/inside'), { recursive: true });
  expect(await documents.load()).toEqual([{ key: 'good', value: { x: 1 } }]);
  const left = readdirSync(folder);
  expect(left.filter((name) => name.endsWith('.json'))).toEqual(['good.json']);
  expect(left.some((name) => name.startsWith('other.json.broken-'))).toBe(true);
  expect(left.filter((name) => name.endsWith('.tmp'))).toEqual(['foreign.tmp']);
  expect(readdirSync(join(folder, 'foreign.tmp'))).toEqual(['inside']);
});

test('a file at the path of the folder is set aside', async () => {
  mkdirSync(join(root, 'deep'));
  writeFileSync(folder, 'foreign');
  expect(await documents.load()).toEqual([]);
  expect(logger.lines).toMatchObject([{ level: 'error', fields: { file: folder } }]);
  await documents.save('a', {});
  expect(readdirSync(join(root, 'deep')).sort()).toEqual(['tasks', expect.stringMatching(/^tasks\.broken-\d+$/)]);
});

test('saveSoon resolves when the document is on disk, and keeps its order among other writes', async () => {
  await documents.load();
  await documents.saveSoon('a', { value: 1 });
  expect(JSON.parse(readFileSync(join(folder, 'a.json'), 'utf8'))).toMatchObject({ value: { value: 1 } });
  const writes = [
    documents.saveSoon('b', { value: 1 }),
    documents.save('b', { value: 2 }),
    documents.saveSoon('c', {}),
    documents.remove('c'),
  ];
  await Promise.all(writes);
  await documents.settle();
  expect(await open().load()).toEqual([
    { key: 'a', value: { value: 1 } },
    { key: 'b', value: { value: 2 } },
  ]);
});

test('only the owner can read them: they hold stream keys', async () => {
  await documents.load();
  await documents.save('a', {});
  await documents.saveSoon('b', {});
  expect(['a', 'b'].map((key) => statSync(join(folder, `${key}.json`)).mode & 0o777)).toEqual([0o600, 0o600]);
});

test('an error of the disk rejects', async () => {
  await expect(documents.save('a', {})).rejects.toMatchObject({ code: 'ENOENT' });
  await expect(documents.saveSoon('a', {})).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a document is laid out in its file as before', async () => {
  await documents.load();
  await documents.save('a', { x: 1 });
  const named = new StateStore(folder, logger);
  await named.save({ name: '../b', order: 3, definition: {}, applications: [] });
  const head = '{\n  "format": "millrace-state",\n  "version": 1,\n  "kind": ';
  expect(readFileSync(join(folder, 'a.json'), 'utf8')).toBe(`${head}"task",\n  "value": {\n    "x": 1\n  }\n}\n`);
  expect(readFileSync(join(folder, '%2E%2E%2Fb.json'), 'utf8')).toBe(
    `${head}"virtual-host",\n  "name": "../b",\n  "order": 3,\n  "definition": {},\n  "applications": []\n}\n`,
  );
});

test('a long document is written a few items in a turn of the event loop, with the text of JSON.stringify', async () => {
  let written = 0;
  const item = (n: number) => ({
    name: `line\n${n}`,
    list: [{ deep: [] }, null],
    toJSON() {
      written += 1;
      return { ...this, toJSON: undefined };
    },
  });
  const applications = Array.from({ length: 300 }, (_, n) => item(n));
  const store = new StateStore(folder, logger);
  await store.load();
  const definition = { host: { names: ['*'], empty: undefined }, none: {} };
  const most = await mostInATurn(
    () => written,
    () => store.save({ name: 'v', order: 1, definition, applications }),
  );
  expect(written).toBe(300);
  expect(most).toBeLessThan(10);
  const text = readFileSync(join(folder, 'v.json'), 'utf8');
  expect(text).toBe(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
  expect(await store.load()).toEqual([JSON.parse(JSON.stringify({ name: 'v', order: 1, definition, applications }))]);
});
