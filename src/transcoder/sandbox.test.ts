import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { environmentOf, logSandbox, sandboxed } from './sandbox.ts';

/** The program ends with this when it cannot start another. */
const CANNOT_RUN = 126;

const PROGRAM = fileURLToPath(new URL('../../native/build/millrace-sandbox', import.meta.url));
const ESCAPE = new URL('../../test/fakes/sandbox-escape.ts', import.meta.url);
/** Without a compiler there is no sandbox, and an older kernel has no rules for signals. */
const held = spawnSync(PROGRAM, ['--probe'], { encoding: 'utf8' }).stdout?.split('\n') ?? [];
const complete = ['no-new-privileges', 'files', 'network'].every((what) => held.includes(what));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sandbox-test-'));
  writeFileSync(path.join(folder, 'access-token'), 'secret');
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

function tryToEscape(): { status: number | null; stderr: string; said: Record<string, unknown> } {
  const { file, args } = sandboxed(ESCAPE, null);
  const environment = { ...process.env, MILLRACE_ACCESS_TOKEN: 'secret', NODE_OPTIONS: '--no-warnings' };
  const run = spawnSync(file, [...args, folder, String(process.pid)], {
    encoding: 'utf8',
    env: environmentOf(environment),
    timeout: 30_000,
  });
  return { status: run.status, stderr: run.stderr, said: JSON.parse(run.stdout || '{}') as Record<string, unknown> };
}

describe.skipIf(!complete)('a transcoder process in its sandbox', () => {
  test('cannot write, read foreign files, run programs, reach the network or signal other processes', () => {
    const { said, stderr } = tryToEscape();
    expect(said, stderr).toEqual({
      write: 'EACCES',
      overwrite: 'EACCES',
      read: 'EACCES',
      environment: 'EACCES',
      run: 'EACCES',
      signal: expect.stringMatching(/EPERM|done/),
      variables: [],
      network: 'EACCES',
    });
    expect(readdirSync(folder)).toEqual(['access-token']);
    expect(readFileSync(path.join(folder, 'access-token'), 'utf8')).toBe('secret');
  });

  test('cannot exceed its memory limit', () => {
    const { file, args } = sandboxed(new URL('../../test/fakes/memory-hog.ts', import.meta.url), null, 1024 * 1024 * 1024);
    const take = (megabytes: number) => spawnSync(file, [...args, String(megabytes)], { encoding: 'utf8', timeout: 30_000 });
    expect(take(100).stdout).toBe('taken');
    expect(take(1500).stdout).toBe('');
  });

  test('is logged at the start', async () => {
    const logger = new RecordingLogger();
    await logSandbox(logger);
    expect(logger.lines).toMatchObject([{ level: 'info', message: expect.stringContaining('sandbox: no network') }]);
  });

  test.each([
    [[], 'no program is named'],
    [['--'], 'no program is named'],
    [['--wrote', '/tmp', '--', '/bin/true'], "what is '--wrote'?"],
    [['--read', '/usr', '--', '/nothing/there'], '/nothing/there: '],
    [['--memory', 'much', '--', '/bin/true'], "a number of bytes, not 'much'"],
    [['--memory', '0', '--', '/bin/true'], "a number of bytes, not '0'"],
  ])('the program refuses %j', (args, message) => {
    const { status, stderr } = spawnSync(PROGRAM, args, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([CANNOT_RUN, expect.stringContaining(message)]);
  });
});

test('without the sandbox the process still runs, and the log warns', async () => {
  vi.stubEnv('MILLRACE_SANDBOX', 'off');
  const { said } = tryToEscape();
  expect(said).toMatchObject({ write: 'done', variables: [] });
  const logger = new RecordingLogger();
  await logSandbox(logger);
  expect(logger.lines).toMatchObject([
    {
      level: 'warn',
      message: expect.stringContaining('not protected against: no-new-privileges, files, network (switched off by MILLRACE_SANDBOX)'),
    },
  ]);
});

test('only variables of codecs and drivers are passed on', () => {
  expect(
    environmentOf({
      PATH: '/bin',
      LIBVA_DRIVER_NAME: 'iHD',
      MILLRACE_ACCESS_TOKEN: 'x',
      AWS_SECRET_ACCESS_KEY: 'x',
      LC_ALL: 'C',
      NODE_OPTIONS: '-x',
    }),
  ).toEqual({ PATH: '/bin', LIBVA_DRIVER_NAME: 'iHD', LC_ALL: 'C' });
});
