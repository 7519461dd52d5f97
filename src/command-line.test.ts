import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseCommandLine } from './command-line.js';

const START = path.join(import.meta.dirname, '../scripts/start.mjs');

test('serves by default, with settings below the working directory', () => {
  expect(parseCommandLine([])).toMatchObject({ command: 'serve', config: undefined, state: './state', logLevel: 'info' });
  const args = ['check', '--config', 'a.xml', '--state', 's', '--log-format', 'json', '--log-level', 'debug'];
  expect(parseCommandLine(args)).toEqual({ command: 'check', config: 'a.xml', state: 's', logFormat: 'json', logLevel: 'debug' });
});

const REFUSED: readonly (readonly [RegExp, readonly string[]])[] = [
  [/--log-level is one of debug, .*, not 'loud'/, ['--log-level', 'loud']],
  [/--log-format is text or json, not 'xml'/, ['--log-format', 'xml']],
  [/unknown command 'conquer'/, ['conquer']],
  [/unexpected argument 'twice'/, ['serve', 'twice']],
  [/colour/, ['--colour', 'blue']],
];

test.each(REFUSED)('%s', (message, args) => {
  expect(() => parseCommandLine(args)).toThrow(message);
});

test('a start that is refused writes nothing', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-arguments-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const args = [START, 'serve', '--state', path.join(folder, 'state'), '--log-level', 'loud'];
  // Nothing in the environment that says where compiled code is kept.
  const { status, stderr } = spawnSync(process.execPath, args, { env: {}, encoding: 'utf8' });
  expect(stderr).toContain("not 'loud'");
  expect([status, readdirSync(folder)]).toEqual([2, []]);
});
