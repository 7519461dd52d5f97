import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseCommandLine } from './command-line.js';

const START = path.join(import.meta.dirname, '../../scripts/start.mjs');

test('serves by default, with settings below the working directory', () => {
  expect(parseCommandLine([])).toMatchObject({
    command: 'serve',
    config: undefined,
    state: './state',
    forgetApiState: false,
    logLevel: undefined,
    watchConfig: false,
    againstRunning: false,
  });
  expect(parseCommandLine(['--forget-api-state']).forgetApiState).toBe(true);
  const args = ['check', '--config', 'a.xml', '--state', 's', '--log-format', 'json', '--log-level', 'debug'];
  expect(parseCommandLine(args)).toEqual({
    command: 'check',
    config: 'a.xml',
    state: 's',
    forgetApiState: false,
    logFormat: 'json',
    logLevel: 'debug',
    watchConfig: false,
    againstRunning: false,
  });
  expect(parseCommandLine(['--watch-config']).watchConfig).toBe(true);
  expect(parseCommandLine(['check', '--against', 'running']).againstRunning).toBe(true);
});

const REFUSED: readonly (readonly [RegExp, readonly string[]])[] = [
  [/--log-level is one of debug, .*, not 'loud'/, ['--log-level', 'loud']],
  [/--log-format is text or json, not 'xml'/, ['--log-format', 'xml']],
  [/unknown command 'conquer'; known are serve, check, doctor, sign-url, ctl$/, ['conquer']],
  [/unexpected argument 'twice'/, ['serve', 'twice']],
  [/^unknown command 'serv' \(did you mean serve\?\); known are serve, check, doctor, sign-url, ctl$/, ['serv']],
  [/^unknown option '--colour'$/, ['--colour', 'blue']],
  [/^unknown option '--confg' \(did you mean --config\?\)$/, ['serve', '--confg', 'a.xml']],
  [/--state is empty/, ['--state', '']],
  [/--forget-api-state is for serve, not for check/, ['check', '--forget-api-state']],
  [/--watch-config is for serve, not for check/, ['check', '--watch-config']],
  [/--against is for check, not for serve/, ['--against', 'running']],
  [/--against is 'running', not 'yesterday'/, ['check', '--against', 'yesterday']],
  [/--config is empty/, ['--config=']],
];

test.each(REFUSED)('%s', (message, args) => {
  expect(() => parseCommandLine(args)).toThrow(message);
});

test.each([
  ['an argument', "not 'loud'", ['--log-level', 'loud']],
  ['a missing configuration', 'cannot be read: ENOENT', ['--config', 'missing.xml']],
  ['an invalid configuration', 'is not well-formed', ['--config', 'empty.xml']],
])('a start refused for %s writes no files', (_what, message, wrong) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-arguments-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, 'empty.xml'), '');
  const args = [START, 'serve', '--state', path.join(folder, 'deep', 'state'), ...wrong];
  // With an empty environment, Node has no other folder for compiled code.
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, env: {}, encoding: 'utf8' });
  expect(stderr).toContain(message);
  expect([status, readdirSync(folder)]).toEqual([2, ['empty.xml']]);
});
