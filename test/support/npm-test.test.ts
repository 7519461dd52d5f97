/** Time limits of the steps of `npm test`, the result of an aborted run, and the processes that such a run leaves. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { runGuarded } from '../../scripts/npm-test/guard.ts';
import { type Failure, filesToRepeat, outcomeOf, type RecordLine, readRecord } from '../../scripts/npm-test/record.ts';
import { TimeLimit, timeRemark } from '../../scripts/npm-test/time-limit.ts';
import { until } from '../harness/poll.ts';

const ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

test('a step may use the time that earlier steps left, and at least its own part', () => {
  let now = 5000;
  const limit = new TimeLimit(1000, [300, 100, 200], () => now);
  expect(limit.next()).toBe(700);
  now += 600;
  expect(limit.next()).toBe(200);
  now += 100_000;
  expect(limit.next()).toBe(200);
  expect(() => limit.next()).toThrow('there are more steps than parts');
});

test('a run that exceeds its time gets a remark', () => {
  expect(timeRemark(940_000, 900_000)).toBe(', took 15:40, more than the 15 minutes it should');
  expect(timeRemark(959_700, 900_000)).toBe(', took 16:00, more than the 15 minutes it should');
  expect(timeRemark(900_000, 900_000)).toBe('');
});

function done(file: string, tests: Record<string, string>): RecordLine {
  const all = Object.entries(tests).map(([name, state]) => ({
    name,
    state,
    message: state === 'failed' ? `${name} broke\nat a line` : '',
  }));
  return { event: 'done', file, milliseconds: 1, tests: all };
}

function record(...lines: readonly RecordLine[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

const planned = (...files: readonly string[]): RecordLine[] => files.map((file) => ({ event: 'planned', file }));
const ended = (...errors: readonly string[]): RecordLine => ({ event: 'ended', errors });

test('passed, failed and skipped tests are counted', () => {
  const text = record(
    ...planned('a', 'b'),
    done('a', { one: 'passed', two: 'failed' }),
    done('b', { three: 'skipped', four: 'passed' }),
    ended(),
  );
  const report = readRecord(text, 1);
  const failures = [{ file: 'a', test: 'two', message: 'two broke' }];
  expect(outcomeOf(report)).toEqual({ passed: 2, failed: 1, skipped: 1, failures, unstable: [] });
  expect(filesToRepeat(report, 1)).toEqual(['a']);
  expect(filesToRepeat(report, 0)).toEqual([]);
});

test('an aborted run names its unfinished files, even when the last line is cut', () => {
  const lines = record(
    ...planned('a', 'b', 'c'),
    { event: 'begun', file: 'a' },
    { event: 'begun', file: 'b' },
    done('a', { one: 'passed' }),
  );
  const report = readRecord(`${lines}${record(done('b', { two: 'passed' })).slice(0, -3)}`, -1);
  expect(outcomeOf(report)).toMatchObject({ passed: 1, failed: 2 });
  expect(report.failures).toEqual([
    { file: 'b', test: '(the file)', message: 'was not done when the run ended' },
    { file: 'c', test: '(the file)', message: 'had not begun when the run ended' },
  ]);
});

test.each([
  ['', 1, 'the runner', 'ended with 1'],
  ['', 0, 'the runner', 'ended with 0'],
  [record(...planned('a'), done('a', { one: 'passed' }), ended()), -1, 'the runner', 'ended with -1'],
  [record(...planned('a'), done('a', { one: 'passed' })), 0, 'the runner', 'ended with 0'],
  [record(...planned('a'), done('a', { one: 'passed' }), ended('boom\nat a line')), 1, 'outside any test', 'boom'],
])('%j with exit code %d is a failure that is not repeated', (text, code, name, message) => {
  const report = readRecord(text, code);
  expect(report.failures).toEqual([{ file: '', test: name, message }]);
  expect(filesToRepeat(report, 3)).toEqual([]);
});

test('a test that passes alone is unstable, a test that fails again has failed, and the second run of a file replaces its first', () => {
  const first = readRecord(
    record(...planned('a', 'b'), done('a', { one: 'failed', two: 'failed' }), done('b', { three: 'passed' }), ended()),
    1,
  );
  const again = readRecord(record(...planned('a'), done('a', { one: 'passed', two: 'failed' }), ended()), 1);
  const [one, two] = first.failures;
  expect(outcomeOf(first, again)).toEqual({ passed: 2, failed: 1, skipped: 0, failures: [two], unstable: [one] });
  const hung = readRecord(record(...planned('a'), { event: 'begun', file: 'a' }), -1);
  expect(outcomeOf(first, hung)).toMatchObject({
    passed: 1,
    failed: 1,
    failures: [{ file: 'a', message: 'was not done when the run ended' }],
  });
});

function scratch(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-npm-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('vitest reports each finished file while it runs, and at its end the files that failed to load', { timeout: 60_000 }, async () => {
  const folder = scratch();
  const write = (name: string, text: string): void => writeFileSync(path.join(folder, name), text);
  write('a.test.js', "test('one', () => {}); test('two', () => { throw new Error('no\\nwhere') }); test.skip('three', () => {})");
  write('b.test.js', "throw new Error('does not load')");
  write('c.test.js', "describe('x', () => { beforeAll(() => { throw new Error('hook') }); test('four', () => {}) })");
  write('d.test.js', "import { existsSync } from 'node:fs'; test('five', () => vi.waitUntil(() => existsSync('go'), 50_000), 50_000)");
  const file = path.join(folder, 'record');
  const args = ['run', '--root', folder, '--globals', '--maxWorkers', '4', '--reporter', path.join(ROOT, 'scripts/npm-test/reporter.ts')];
  const runner = spawn(process.execPath, [path.join(ROOT, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: folder,
    env: { ...process.env, TEST_RECORD: file },
    stdio: 'ignore',
  });
  onTestFinished(() => void runner.kill('SIGKILL'));
  const exited = new Promise<number | null>((resolve) => runner.once('exit', resolve));
  const told = (event: string, base: string): boolean =>
    new RegExp(`"event":"${event}","file":"[^"]*/${base}"`).test(readFileSync(file, 'utf8'));
  const isWaiting = (): boolean => told('done', 'a.test.js') && told('done', 'c.test.js') && told('begun', 'd.test.js');
  await until('two files to be done and one to wait', isWaiting, { deadlineMs: 50_000 });
  const before = readRecord(readFileSync(file, 'utf8'), -1);
  write('go', '');
  expect(await exited).toBe(1);

  const name = (base: string): string => path.relative(ROOT, path.join(folder, base));
  const two = { file: name('a.test.js'), test: 'two', message: 'no' };
  const hook = { file: name('c.test.js'), test: '(the file)', message: 'hook' };
  // vitest may or may not report a file that does not load before it is aborted.
  expect(sorted(before.failures.filter((failure) => failure.file !== name('b.test.js')))).toEqual([
    two,
    hook,
    { file: name('d.test.js'), test: '(the file)', message: 'was not done when the run ended' },
  ]);
  const after = readRecord(readFileSync(file, 'utf8'), 1);
  expect(sorted(after.failures)).toEqual([two, { file: name('b.test.js'), test: '(the file)', message: 'does not load' }, hook]);
  expect(outcomeOf(after)).toMatchObject({ passed: 2, failed: 3, skipped: 2 });
});

function sorted(failures: readonly Failure[]): Failure[] {
  return failures.toSorted((one, two) => (one.file < two.file ? -1 : 1));
}

test('a program that exceeds its time is killed, even when it ignores SIGTERM', async () => {
  const deaf = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)";
  expect(await runGuarded(['-e', deaf], { cwd: ROOT, deadlineMs: 300, graceMs: 300 })).toBe(-1);
});

test('children of a program are killed with it, and its exit code is returned', async () => {
  const file = path.join(scratch(), 'pid');
  const leaves = `
    const child = require('node:child_process').spawn('sleep', ['600'], { stdio: 'inherit' });
    require('node:fs').writeFileSync(${JSON.stringify(file)}, String(child.pid));
    process.exit(7);`;
  expect(await runGuarded(['-e', leaves], { cwd: ROOT, deadlineMs: 50_000 })).toBe(7);
  const pid = Number(readFileSync(file, 'utf8'));
  await until('the end of the child', () => !isRunning(pid));
});

test('runs a patient program and its children with a lower priority, and writes the output to the given file', async () => {
  const file = path.join(scratch(), 'output');
  const output = openSync(file, 'w');
  onTestFinished(() => closeSync(output));
  const shows = "process.stdout.write(require('node:child_process').execFileSync('nice'))";
  const options = { cwd: ROOT, deadlineMs: 50_000, output };
  expect([await runGuarded(['-e', shows], options), await runGuarded(['-e', shows], { ...options, isPatient: true })]).toEqual([0, 0]);
  const [ours = 0, patient = 0] = readFileSync(file, 'utf8').trim().split('\n').map(Number);
  // 19 is the most there is: these tests may run in a patient program themselves.
  expect(patient).toBe(Math.min(19, ours + 10));
});

test.skipIf(!existsSync('/proc/self/autogroup'))('lowers the priority of a patient program among sessions', async () => {
  const file = path.join(scratch(), 'output');
  const output = openSync(file, 'w');
  onTestFinished(() => closeSync(output));
  // The group gets its priority just after the start.
  const shows = `const timer = setInterval(() => {
    const [, nice] = require('node:fs').readFileSync('/proc/self/autogroup', 'utf8').match(/nice (\\d+)/);
    if (nice !== '0') clearInterval(timer), process.stdout.write(nice);
  }, 10)`;
  expect(await runGuarded(['-e', shows], { cwd: ROOT, deadlineMs: 30_000, output, isPatient: true })).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe('10');
});

test('ends all running programs at a signal', async () => {
  const folder = scratch();
  const pids = ['one', 'two'].map((name) => path.join(folder, name));
  const guard = JSON.stringify(new URL('../../scripts/npm-test/guard.ts', import.meta.url).href);
  const waits = (file: string): string =>
    `require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.pid)); setInterval(() => {}, 1000)`;
  const runs = `import(${guard}).then(({ runGuarded }) => {
    for (const program of ${JSON.stringify(pids.map(waits))}) void runGuarded(['-e', program], { cwd: '/', deadlineMs: 50_000 });
  })`;
  const guarding = spawn(process.execPath, ['-e', runs], { stdio: 'ignore' });
  onTestFinished(() => void guarding.kill('SIGKILL'));
  const isWritten = (file: string): boolean => existsSync(file) && readFileSync(file, 'utf8') !== '';
  await until('both programs run', () => pids.every(isWritten), { deadlineMs: 40_000 });
  guarding.kill('SIGTERM');
  await until('both programs have ended', () => !pids.some((file) => isRunning(Number(readFileSync(file, 'utf8')))));
});

/** A process that has ended still has an entry until its parent collects it. */
function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}/stat`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}
