/** A small program whose modules are bundled at its start, with the real scripts. */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

const SCRIPTS = path.resolve(import.meta.dirname, '../../scripts/program-bundle');
const require = createRequire(import.meta.url);
const MODULES = path.resolve(import.meta.dirname, '../../node_modules');

const PROGRAM = {
  'src/program/serve.ts': `import { WebSocketServer } from 'ws';
    import { createRequire } from 'node:module';
    import { number } from './number.ts';
    import { workerEntry } from '../delivery/pool/worker-entry.ts';
    export const serve = async (): Promise<object> => ({
      strict: (function (this: unknown) { return this === undefined; })(),
      number, place: import.meta.url, worker: workerEntry().href, later: (await import('./later.ts')).later,
      packages: [typeof WebSocketServer, typeof createRequire(import.meta.url)('ws').WebSocketServer],
    });`,
  'src/program/number.ts': 'export const number: number = 1;',
  'src/program/later.ts': `export const later: string = 'naïve – “ok” 🎬';`,
  'src/delivery/pool/worker-entry.ts': `export const workerEntry = (): URL => new URL('../../delivery-worker.ts', import.meta.url);`,
  'src/delivery-worker.ts': 'export const thread: boolean = true;',
};

let root: string;
let folder: string;
let find: typeof import('../../scripts/program-bundle/find.mjs');

beforeEach(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'millrace-bundle-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  cpSync(SCRIPTS, path.join(root, 'scripts/program-bundle'), { recursive: true });
  symlinkSync(MODULES, path.join(root, 'node_modules'));
  for (const [file, text] of Object.entries(PROGRAM)) write(file, text);
  mkdirSync(path.join(root, 'state'));
  folder = path.join(root, 'state/program');
  find = (await import(path.join(root, 'scripts/program-bundle/find.mjs'))) as typeof find;
});

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), text);
}

/** Loads the present version of a file of the bundle. */
function load(name: string): { serve(): Promise<unknown> } {
  const file = path.join(folder, name);
  delete require.cache[file];
  return require(file) as { serve(): Promise<unknown> };
}

test('the bundle behaves like the modules, and finds their files, packages and threads', async () => {
  expect(find.findBundleOfSources(folder)).toBe(folder);
  const said = {
    strict: true,
    number: 1,
    place: pathToFileURL(path.join(root, 'src/program/serve.ts')).href,
    later: 'naïve – “ok” 🎬',
    packages: ['function', 'function'],
  };
  const worker = path.join(folder, 'delivery-worker.cjs');
  expect(await load('serve.cjs').serve()).toEqual({ ...said, worker: pathToFileURL(worker).href });
  expect(readFileSync(path.join(folder, 'serve.cjs'), 'latin1')).not.toMatch(/[^\0-\x7e]/);
  expect(load('delivery-worker.cjs')).toMatchObject({ thread: true });
  // A thread that starts after the folder was cleared.
  const { serve } = load('serve.cjs');
  rmSync(folder, { recursive: true });
  expect(await serve()).toEqual({ ...said, worker: pathToFileURL(path.join(root, 'src/delivery-worker.ts')).href });
});

test('it is made once, and again when a source has changed or the bundle is damaged', async () => {
  const made = () => readFileSync(path.join(folder, 'inputs.json'), 'utf8');
  const changed = path.join(root, 'src/program/number.ts');
  utimesSync(changed, 1, 1);
  expect(find.findBundleOfSources(folder)).toBe(folder);
  const first = made();
  expect(find.findBundleOfSources(folder)).toBe(folder);
  expect(made()).toBe(first);

  // The new file has the same size and time, as in archives whose files all have one time.
  write('src/program/number.ts', 'export const number: number = 2;');
  utimesSync(changed, 1, 1);
  expect(find.findBundleOfSources(folder)).toBe(folder);
  expect(await load('serve.cjs').serve()).toMatchObject({ number: 2 });

  const whole = readFileSync(path.join(folder, 'serve.cjs'), 'utf8');
  for (const damaged of [whole.slice(0, -20), `// another maker's\n${whole.slice(whole.indexOf('\n') + 1)}`]) {
    writeFileSync(path.join(folder, 'serve.cjs'), damaged);
    expect(find.findBundleOfSources(folder)).toBe(folder);
    expect(await load('serve.cjs').serve()).toMatchObject({ number: 2 });
  }
  writeFileSync(path.join(folder, 'inputs.json'), '{"id":');
  expect(find.findBundleOfSources(folder)).toBe(folder);
});

test('no bundle is made of unreadable sources, in a missing folder, or without the bundler', () => {
  const text = PROGRAM['src/program/number.ts'];
  write('src/program/number.ts', 'export const number = ;');
  expect(find.findBundleOfSources(folder)).toBeNull();
  write('src/program/number.ts', text);
  expect(find.findBundleOfSources(path.join(root, 'none/program'))).toBeNull();
  expect(existsSync(path.join(root, 'none'))).toBe(false);
  rmSync(path.join(root, 'node_modules'));
  expect(find.findBundleOfSources(folder)).toBeNull();
});

test('an install makes a bundle that starts use while no source has changed', async () => {
  // A separate node_modules, because the install writes into it.
  rmSync(path.join(root, 'node_modules'));
  mkdirSync(path.join(root, 'node_modules'));
  for (const name of readdirSync(MODULES)) {
    if (name !== '.cache') symlinkSync(path.join(MODULES, name), path.join(root, 'node_modules', name));
  }
  const installed = path.join(root, 'node_modules/.cache/millrace-program');
  execFileSync(process.execPath, [path.join(root, 'scripts/program-bundle/install.mjs')]);
  const made = readFileSync(path.join(installed, 'inputs.json'), 'utf8');
  expect(find.findBundleOfSources(folder)).toBe(installed);
  expect(existsSync(folder)).toBe(false);

  write('src/program/number.ts', 'export const number: number = 22;');
  expect(find.findBundleOfSources(folder)).toBe(folder);
  expect(await load('serve.cjs').serve()).toMatchObject({ number: 22 });
  expect(readFileSync(path.join(installed, 'inputs.json'), 'utf8')).toBe(made);
  find.installBundleOfSources();
  expect(find.findBundleOfSources(folder)).toBe(installed);
});

test('an install succeeds without a bundle', () => {
  rmSync(path.join(root, 'node_modules'));
  writeFileSync(path.join(root, 'node_modules'), '');
  expect(execFileSync(process.execPath, [path.join(root, 'scripts/program-bundle/install.mjs')], { encoding: 'utf8' })).toBe('');
});
