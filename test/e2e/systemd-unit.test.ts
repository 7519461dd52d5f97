/** The unit in `deploy/`, checked by systemd itself where available, and against the server's options. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseCommandLine } from '../../src/program/command-line.js';
import { ROOT } from '../harness/server.ts';

const UNIT = path.join(ROOT, 'deploy/millrace.service');
/** Limit of `systemd-analyze security`, from 0 to 10; a service without any setting has 9.6. */
const MAX_EXPOSURE = 2;

const text = readFileSync(UNIT, 'utf8');
const hasSystemd = spawnSync('systemd-analyze', ['--version'], { stdio: 'ignore' }).status === 0;

/** Value of a setting that occurs once in the unit. */
function setting(name: string): string {
  const found = [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))];
  expect(found, name).toHaveLength(1);
  return found[0]?.[1] ?? '';
}

test.skipIf(!hasSystemd)('systemd understands every line of it', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-unit-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const unit = path.join(folder, 'millrace.service');
  // Paths of this machine, because systemd checks that the programs exist.
  writeFileSync(unit, text.replace('/usr/bin/node', process.execPath));
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' });
  expect([status, `${stdout}${stderr}`.split('\n').filter((line) => line.includes('millrace.service'))]).toEqual([0, []]);
});

test.skipIf(!hasSystemd)('it leaves little open', () => {
  const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', '--no-pager', UNIT], { encoding: 'utf8' });
  const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN);
  expect(exposure).toBeLessThanOrEqual(MAX_EXPOSURE);
});

test('its folders, limits and signals match the server', () => {
  const [node, main, ...args] = setting('ExecStart').split(' ');
  expect([node, main]).toEqual(['/usr/bin/node', '/opt/millrace/dist/main.js']);
  expect(parseCommandLine(args)).toMatchObject({ command: 'serve', state: `/var/lib/${setting('StateDirectory')}` });
  expect(parseCommandLine(args).config).toBe(`/etc/${setting('ConfigurationDirectory')}/Server.xml`);
  expect(setting('ExecReload')).toMatch(/ -HUP \$MAINPID$/);
  expect(setting('Type')).toBe('notify');
  expect(Number(setting('LimitNOFILE'))).toBeGreaterThanOrEqual(65_536);
  // A stop may take five seconds.
  expect(Number(setting('TimeoutStopSec'))).toBeGreaterThan(5);
  expect(text).not.toMatch(/^MemoryDenyWriteExecute=(yes|true)/m);
});
