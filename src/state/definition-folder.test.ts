import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { DefinitionFolder, type DefinitionFolderOptions } from './definition-folder.ts';

let root: string;
let folder: string;
let logger: RecordingLogger;
let told: string[];
let definitions: DefinitionFolder<string>;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-definitions-'));
  folder = join(root, 'deep/channels');
  logger = new RecordingLogger();
  told = [];
  definitions = open();
});

afterEach(async () => {
  await definitions.close();
  rmSync(root, { recursive: true, force: true });
});

/** A definition is a text that begins with `ok`. Without `start` only the test scans. */
function open(
  allowed = new AllowedFolders(null, 'AllowedRoots'),
  more: Partial<DefinitionFolderOptions<string>> = {},
): DefinitionFolder<string> {
  return new DefinitionFolder<string>({
    ...{ folder, extension: '.sch', what: 'channel', allowed, logger },
    isName: (name) => /^[\w-]+$/.test(name),
    parse: (text, name, file) => {
      if (!text.startsWith('ok')) throw new Error(`${file}: ${name} says ${text}`);
      return text;
    },
    format: (definition) => definition,
    changed: (name, definition) => told.push(`${name}=${definition}`),
    removed: (name) => told.push(`${name} removed`),
    ...more,
  });
}

function write(name: string, text: string): void {
  writeFileSync(join(folder, `${name}.sch`), text);
}

/** The notifications since the last call. */
function news(): string[] {
  return told.splice(0);
}

const errors = (): string[] => logger.lines.filter(({ level }) => level === 'error').map(({ message }) => message);

test('files are read at the start in order of their names, and a missing folder is created', async () => {
  mkdirSync(folder, { recursive: true });
  write('b', 'ok b');
  write('a', 'ok a');
  writeFileSync(join(folder, 'notes.txt'), 'ok');
  mkdirSync(join(folder, 'folder.sch'));
  await definitions.start();
  expect(news()).toEqual(['a=ok a', 'b=ok b']);
  expect([...definitions.definitions]).toEqual([
    ['a', 'ok a'],
    ['b', 'ok b'],
  ]);
  rmSync(folder, { recursive: true });
  const again = open();
  await again.start();
  await again.close();
  expect(readdirSync(folder)).toEqual([]);
  expect(errors()).toEqual([]);
});

test('a file written while the server runs is found within seconds', async () => {
  await definitions.start();
  write('a', 'ok 1');
  await until('the new file', () => definitions.get('a') === 'ok 1');
  write('a', 'ok 2');
  await until('the changed definition', () => definitions.get('a') === 'ok 2');
  expect(news()).toEqual(['a=ok 1', 'a=ok 2']);
});

test('a file that was touched, or rewritten with the same content, has not changed', async () => {
  mkdirSync(folder, { recursive: true });
  write('a', 'ok');
  await definitions.scan();
  write('a', 'ok');
  await definitions.scan();
  writeFileSync(join(folder, 'new'), 'ok');
  renameSync(join(folder, 'new'), join(folder, 'a.sch'));
  await definitions.scan();
  expect(news()).toEqual(['a=ok']);
});

test('a definition is removed when three scans in a row miss its file', async () => {
  mkdirSync(folder, { recursive: true });
  write('a', 'ok');
  await definitions.scan();
  news();
  for (const scans of [2, 2]) {
    rmSync(join(folder, 'a.sch'));
    for (let scan = 0; scan < scans; scan += 1) await definitions.scan();
    write('a', 'ok');
    await definitions.scan();
  }
  expect(news()).toEqual([]);
  rmSync(join(folder, 'a.sch'));
  await definitions.scan();
  await definitions.scan();
  expect(definitions.get('a')).toBe('ok');
  await definitions.scan();
  expect(news()).toEqual(['a removed']);
  expect(definitions.get('a')).toBeUndefined();
});

test('a folder that cannot be listed changes nothing, and is logged once', async () => {
  mkdirSync(folder, { recursive: true });
  write('a', 'ok');
  await definitions.scan();
  renameSync(folder, `${folder}-away`);
  for (let scan = 0; scan < 5; scan += 1) await definitions.scan();
  expect(definitions.get('a')).toBe('ok');
  expect(errors()).toEqual([expect.stringContaining('the folder cannot be read')]);
  renameSync(`${folder}-away`, folder);
  write('a', 'ok again');
  await definitions.scan();
  expect(news()).toEqual(['a=ok', 'a=ok again']);
});

test('an invalid file is logged once per change, and its last valid definition stays', async () => {
  mkdirSync(folder, { recursive: true });
  write('a', 'ok');
  write('b', 'bad');
  await definitions.scan();
  write('a', 'broken');
  for (let scan = 0; scan < 3; scan += 1) {
    await definitions.scan();
    // Unchanged content is no change.
    write('a', 'broken');
  }
  expect(definitions.get('a')).toBe('ok');
  expect(definitions.get('b')).toBeUndefined();
  write('a', 'broken more');
  await definitions.scan();
  write('a', 'broken');
  await definitions.scan();
  write('a', 'ok');
  await definitions.scan();
  write('b', 'ok at last');
  await definitions.scan();
  // Returning to the valid definition is no change.
  expect(news()).toEqual(['a=ok', 'b=ok at last']);
  expect(errors()).toEqual([
    expect.stringMatching(/b\.sch cannot be used, it is left out: .* b says bad/),
    expect.stringMatching(/a\.sch cannot be used, what it said before goes on: .* a says broken$/),
    expect.stringMatching(/says broken more$/),
    expect.stringMatching(/says broken$/),
  ]);
});

test('a definition written by the server is in use and on disk at once, and no change for the scan', async () => {
  mkdirSync(folder, { recursive: true });
  await definitions.save('a', 'ok 1');
  expect(definitions.get('a')).toBe('ok 1');
  expect(readFileSync(join(folder, 'a.sch'), 'utf8')).toBe('ok 1');
  expect(readdirSync(folder)).toEqual(['a.sch']);
  await definitions.scan();
  await definitions.save('a', 'ok 1');
  await definitions.save('a', 'ok 2');
  await definitions.scan();
  expect(news()).toEqual(['a=ok 1', 'a=ok 2']);
  await definitions.remove('a');
  expect(news()).toEqual(['a removed']);
  expect(readdirSync(folder)).toEqual([]);
  await definitions.scan();
  await definitions.remove('a');
  expect(news()).toEqual([]);
});

test('simultaneous writes and scans run one after another', async () => {
  mkdirSync(folder, { recursive: true });
  const work = Array.from({ length: 20 }, (_, index) => [definitions.save('a', `ok ${index}`), definitions.scan()]);
  await Promise.all(work.flat());
  await definitions.scan();
  expect(news()).toEqual(Array.from({ length: 20 }, (_, index) => `a=ok ${index}`));
});

test('simultaneous changes build on each other, and one that throws changes nothing', async () => {
  mkdirSync(folder, { recursive: true });
  const append = (text: string) => definitions.change('a', (current = 'ok') => current + text);
  await Promise.all([append('1'), append('2'), append('3')]);
  expect(definitions.get('a')).toBe('ok123');
  const refused = definitions.change('a', () => {
    throw new Error('refused');
  });
  await expect(refused).rejects.toThrow('refused');
  expect(readFileSync(join(folder, 'a.sch'), 'utf8')).toBe('ok123');
});

test('a definition that could not be read again is not written', async () => {
  mkdirSync(folder, { recursive: true });
  await definitions.save('a', 'ok');
  await expect(definitions.save('a', 'bad')).rejects.toThrow('a says bad');
  expect(readFileSync(join(folder, 'a.sch'), 'utf8')).toBe('ok');
  expect(definitions.get('a')).toBe('ok');
});

test.each(['../a', 'a/b', '', '.', 'x'.repeat(240)])('%j is refused as a name', async (name) => {
  mkdirSync(folder, { recursive: true });
  await expect(definitions.save(name, 'ok')).rejects.toThrow('cannot be the name of a channel');
  await expect(definitions.remove(name)).rejects.toThrow('cannot be the name of a channel');
});

test('a definition that is too large to be read back is not written', async () => {
  await definitions.start();
  await definitions.save('a', 'ok a');
  const large = definitions.save('a', `ok ${'ä'.repeat(1_048_576)}`);
  await expect(large).rejects.toThrow(
    expect.objectContaining({ name: 'DefinitionTooLarge', message: 'it takes 2097155 bytes as a file, at most 2097152 are taken' }),
  );
  expect(readFileSync(join(folder, 'a.sch'), 'utf8')).toBe('ok a');
  expect(definitions.get('a')).toBe('ok a');
});

test('a link is followed within the folder and nowhere else', async () => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(root, 'secret'), 'ok secret');
  writeFileSync(join(folder, 'inner'), 'ok inner');
  symlinkSync(join(root, 'secret'), join(folder, 'out.sch'));
  symlinkSync('inner', join(folder, 'in.sch'));
  symlinkSync('nowhere', join(folder, 'dangling.sch'));
  for (let scan = 0; scan < 2; scan += 1) await definitions.scan();
  expect(news()).toEqual(['in=ok inner']);
  expect(errors()).toEqual([expect.stringContaining('a symbolic link that leads out of the folder')]);
});

test('a file with an invalid name and a file that is too large are left out, and logged once', async () => {
  mkdirSync(folder, { recursive: true });
  write('a b', 'ok');
  write('large', `ok${' '.repeat(2 * 1024 * 1024)}`);
  for (let scan = 0; scan < 2; scan += 1) await definitions.scan();
  expect(news()).toEqual([]);
  expect(errors()).toEqual([
    expect.stringContaining('"a b" cannot be a name of a channel'),
    expect.stringContaining('it is larger than 2097152 bytes'),
  ]);
});

test('at most a thousand files are followed', async () => {
  mkdirSync(folder, { recursive: true });
  for (let index = 0; index < 1001; index += 1) write(`f${index}`, 'ok');
  await definitions.start();
  expect(definitions.definitions.size).toBe(1000);
  expect(errors()).toEqual([expect.stringContaining('more than 1000 files end in .sch')]);
  await expect(definitions.save('another', 'ok')).rejects.toThrow('1000 files already');
});

test('of many files a hundred are checked per turn, besides new, missing and notified files', async () => {
  mkdirSync(folder, { recursive: true });
  const names = Array.from({ length: 250 }, (_, index) => `f${String(index).padStart(3, '0')}`);
  for (const name of names) write(name, 'ok');
  let tell: (name: string | null) => void = () => undefined;
  // No timer checks within the test.
  const many = open(undefined, {
    scanMs: 1e9,
    watch: (_folder, told) => {
      tell = told;
      return { close: () => undefined, on: () => undefined };
    },
  });
  await many.start();
  expect(news().length).toBe(250);
  for (const name of names) write(name, 'ok twice');
  const first = async (): Promise<string[]> => {
    await many.turn();
    return news().map((line) => line.slice(0, 4));
  };
  tell('f200.sch');
  tell('f201.sch.0123456789ab.tmp');
  expect(await first()).toEqual([...names.slice(0, 100), 'f200']);
  expect(await first()).toEqual(names.slice(100, 200));
  write('new', 'ok');
  rmSync(join(folder, 'f000.sch'));
  expect(await first()).toEqual([...names.slice(201), 'new=']);
  await many.turn();
  await many.turn();
  expect(news()).toEqual(['f000 removed']);
  for (const name of names.slice(1)) write(name, 'ok thrice');
  tell('..data');
  expect((await first()).length).toBe(249);
  await many.close();
});

test('a replaced folder is watched again, and scanned completely', async () => {
  mkdirSync(folder, { recursive: true });
  const tells: ((name: string | null) => void)[] = [];
  let closed = 0;
  let fail: () => void = () => undefined;
  const watch: DefinitionFolderOptions<string>['watch'] = (_folder, told) => {
    tells.push(told);
    return {
      close: () => (closed += 1),
      on: (_event, listener) => {
        fail = listener;
      },
    };
  };
  const watched = open(undefined, { scanMs: 1e9, watch });
  await watched.start();
  await watched.turn();
  expect([tells.length, closed]).toEqual([1, 0]);
  renameSync(folder, `${folder}-away`);
  mkdirSync(folder);
  await watched.turn();
  expect([tells.length, closed]).toEqual([2, 1]);
  fail();
  await watched.turn();
  expect([tells.length, closed]).toEqual([3, 2]);
  await watched.close();
  expect(closed).toBe(3);
});

test('a file among many is found before its turn by a notification', async () => {
  mkdirSync(folder, { recursive: true });
  const names = Array.from({ length: 1000 }, (_, index) => `f${String(index).padStart(3, '0')}`);
  for (const name of names) write(name, 'ok');
  await definitions.start();
  news();
  write('f999', 'ok twice');
  // Its turn would be the tenth.
  for (let turn = 0; turn < 9; turn += 1) await definitions.turn();
  expect(news()).toEqual(['f999=ok twice']);
});

test('a folder outside of the allowed folders is neither created nor read nor written', async () => {
  const outside = open(new AllowedFolders([join(root, 'elsewhere')], 'AllowedRoots'));
  await outside.start();
  await expect(outside.save('a', 'ok')).rejects.toThrow('AllowedRoots');
  await outside.close();
  expect(readdirSync(root)).toEqual([]);
  expect(errors()[0]).toContain('AllowedRoots');
});

test('the temporary file of an interrupted write is removed at the start, and no other file', async () => {
  mkdirSync(folder, { recursive: true });
  for (const name of ['a.sch.0123456789ab.tmp', 'film.mp4.0123456789ab.tmp', 'a.tmp']) writeFileSync(join(folder, name), '');
  await definitions.start();
  expect(readdirSync(folder).sort()).toEqual(['a.tmp', 'film.mp4.0123456789ab.tmp']);
});

test('there are no callbacks after the close', async () => {
  await definitions.start();
  await definitions.close();
  mkdirSync(folder, { recursive: true });
  write('a', 'ok');
  await definitions.scan();
  await definitions.close();
  expect(news()).toEqual([]);
});

/** Reads when the test says so, as a thread does. */
function openSlow(): { readonly folder: DefinitionFolder<string>; readonly readings: Map<string, PromiseWithResolvers<void>> } {
  const readings = new Map<string, PromiseWithResolvers<void>>();
  const parse = async (text: string): Promise<string> => {
    const reading = Promise.withResolvers<void>();
    readings.set(text, reading);
    await reading.promise;
    if (!text.startsWith('ok')) throw new Error(`it says ${text}`);
    return text;
  };
  return { folder: open(undefined, { parse }), readings };
}

test('files that are read elsewhere come into force in the order of their changes', async () => {
  mkdirSync(folder, { recursive: true });
  const { folder: slow, readings } = openSlow();
  write('a', 'ok 1');
  const first = slow.scan();
  await until('the first reading', () => readings.has('ok 1'));
  write('a', 'ok 2');
  const second = slow.scan();
  const third = slow.change('a', (current) => `ok 3 after ${current}`);
  expect(readings.size).toBe(1);
  readings.get('ok 1')?.resolve();
  await first;
  expect(news()).toEqual(['a=ok 1']);
  await until('the second reading', () => readings.has('ok 2'));
  readings.get('ok 2')?.resolve();
  await second;
  await until('the written text is read', () => readings.has('ok 3 after ok 2'));
  expect(readFileSync(join(folder, 'a.sch'), 'utf8')).toBe('ok 2');
  readings.get('ok 3 after ok 2')?.resolve();
  await third;
  expect(news()).toEqual(['a=ok 2', 'a=ok 3 after ok 2']);
  expect(readFileSync(join(folder, 'a.sch'), 'utf8')).toBe('ok 3 after ok 2');
  await slow.close();
});

test('a file that is refused elsewhere is logged, and what it said before goes on', async () => {
  mkdirSync(folder, { recursive: true });
  const { folder: slow, readings } = openSlow();
  for (const text of ['ok', 'bad']) {
    write('a', text);
    const scan = slow.scan();
    await until('the file is read', () => readings.has(text));
    readings.get(text)?.resolve();
    await scan;
  }
  expect(errors()).toEqual([expect.stringContaining('what it said before goes on: it says bad')]);
  expect(slow.get('a')).toBe('ok');
  await slow.close();
});

test('a closed folder waits for no file that is read elsewhere', async () => {
  mkdirSync(folder, { recursive: true });
  const { folder: slow, readings } = openSlow();
  write('a', 'ok');
  const scan = slow.scan();
  await until('the file is read', () => readings.has('ok'));
  await slow.close();
  await scan;
  readings.get('ok')?.resolve();
  expect([news(), errors()]).toEqual([[], []]);
});
