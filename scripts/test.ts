/**
 * `npm test`: outside tools, lint, licences, known vulnerabilities, types, unit tests and end-to-end tests, then what failed and one line of totals.
 *
 * Files that fail run once more, alone: a player, or a timer, that starved beside two other tests says nothing of the
 * server. What passes only then is printed as unstable, with its first failure, so that it gets fixed.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { SKIPPED } from './audit.ts';
import { ensureTools } from './ensure-tools.ts';

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

interface Outcome extends Totals {
  readonly name: string;
  readonly seconds: number;
  /** What failed, with the first line of why. */
  readonly failures: readonly Failure[];
  /** What failed beside others and passed alone. */
  readonly unstable: readonly Failure[];
}

interface Failure {
  readonly file: string;
  readonly test: string;
  readonly message: string;
}

interface Report extends Totals {
  readonly failures: readonly Failure[];
  readonly results: readonly unknown[];
}

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const MODULES = path.join(ROOT, 'node_modules');
const CHECK_DEADLINE_MS = 120_000;
/** All suites together: with `npm ci` before them they are to end within 15 minutes, whatever hangs. */
const SUITES_DEADLINE_MS = 840_000;
/** After a SIGTERM the runner may still kill its workers and write its report. */
const GRACE_MS = 10_000;
/** More failed files than this are no accident: they do not run again. */
const MAX_REPEATED_FILES = 3;

/** Runs a child with our output; resolves with its exit code, -1 when it was ended for being too slow. */
function run(args: readonly string[], deadlineMs: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
    let late = false;
    const soft = setTimeout(() => {
      late = true;
      console.log(`not done after ${deadlineMs / 1000} s: ending it`);
      child.kill('SIGTERM');
    }, deadlineMs);
    const hard = setTimeout(() => child.kill('SIGKILL'), deadlineMs + GRACE_MS);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(soft);
      clearTimeout(hard);
      resolve(late ? -1 : (code ?? -1));
    });
  });
}

/** A step that is one test: it passes when the program exits with 0, and does not count when it could not be done. */
async function check(name: string, args: readonly string[]): Promise<Outcome> {
  console.log(`\n== ${name}`);
  const startedAt = performance.now();
  const code = await run(args, CHECK_DEADLINE_MS);
  const seconds = (performance.now() - startedAt) / 1000;
  const [passed, skipped] = [code === 0 ? 1 : 0, code === SKIPPED ? 1 : 0];
  const failed = 1 - passed - skipped;
  const failures = failed === 0 ? [] : [{ file: '', test: name, message: 'see above' }];
  return { name, passed, failed, skipped, seconds, failures, unstable: [] };
}

/** Runs the vitest projects whose names begin with `project`, or chosen files of them alone. A crash outside any test counts as one failure. */
async function vitest(project: string, deadlineMs: number, folder: string, files: readonly string[] = []): Promise<Report> {
  const output = path.join(folder, `${project}${files.length > 0 ? '-alone' : ''}.json`);
  const args = [path.join(MODULES, 'vitest/vitest.mjs'), 'run', '--project', `${project}*`, ...files];
  if (files.length > 0) args.push('--no-file-parallelism');
  const code = await run([...args, '--reporter=default', '--reporter=json', `--outputFile.json=${output}`], deadlineMs);
  const report = readReport(output);
  if (code === 0 || report.failed > 0) return report;
  return { ...report, failed: 1, failures: [{ file: '', test: project, message: `the runner ended with ${code}` }] };
}

async function suite(project: string, deadlineMs: number, folder: string): Promise<Outcome> {
  console.log(`\n== ${project} tests`);
  const name = `${project} tests`;
  const startedAt = performance.now();
  const elapsed = (): number => performance.now() - startedAt;
  const first = await vitest(project, deadlineMs, folder);
  const files = [...new Set(first.failures.map(({ file }) => file))];
  const mayRepeat = files.length > 0 && files.length <= MAX_REPEATED_FILES && !files.includes('');
  if (!mayRepeat) return { ...first, name, seconds: elapsed() / 1000, unstable: [] };

  console.log(`\n== ${project} tests that failed, alone`);
  const again = await vitest(project, deadlineMs - elapsed(), folder, files);
  const stillFails = new Set(again.failures.map(identity));
  const unstable = again.failed === 0 ? first.failures : first.failures.filter((failure) => !stillFails.has(identity(failure)));
  const others = first.results.filter((result) => !files.includes(fileOf(result)));
  return {
    name,
    passed: again.passed + withStatus(others, 'passed'),
    failed: again.failed,
    skipped: again.skipped + withStatus(others, 'pending', 'skipped', 'todo'),
    seconds: elapsed() / 1000,
    failures: again.failures,
    unstable,
  };
}

function identity({ file, test }: Failure): string {
  return `${file} ${test}`;
}

function readReport(file: string): Report {
  try {
    const report: unknown = JSON.parse(readFileSync(file, 'utf8'));
    const results = items(report, 'testResults');
    const failures = results.flatMap(failuresOfFile);
    return {
      passed: count(report, 'numPassedTests'),
      failed: Math.max(count(report, 'numFailedTests'), failures.length),
      skipped: count(report, 'numPendingTests') + count(report, 'numTodoTests'),
      failures,
      results,
    };
  } catch {
    const failure = { file: '', test: path.basename(file), message: 'no report was written' };
    return { passed: 0, failed: 1, skipped: 0, failures: [failure], results: [] };
  }
}

/** The failed tests of one file; a file that could not be loaded, or whose hooks failed, is one failure itself. */
function failuresOfFile(result: unknown): Failure[] {
  const file = fileOf(result);
  const failures = items(result, 'assertionResults')
    .filter((test) => text(test, 'status') === 'failed')
    .map((test) => ({ file, test: text(test, 'fullName'), message: firstLine(items(test, 'failureMessages')[0]) }));
  if (failures.length === 0 && text(result, 'status') === 'failed') {
    failures.push({ file, test: '(the file)', message: firstLine(text(result, 'message')) });
  }
  return failures;
}

function fileOf(result: unknown): string {
  return path.relative(ROOT, text(result, 'name'));
}

function withStatus(results: readonly unknown[], ...statuses: readonly string[]): number {
  const tests = results.flatMap((result) => items(result, 'assertionResults'));
  return tests.filter((test) => statuses.includes(text(test, 'status'))).length;
}

function firstLine(message: unknown): string {
  return typeof message === 'string' ? (message.split('\n', 1)[0] ?? '') : '';
}

function items(value: unknown, key: string): readonly unknown[] {
  const found = property(value, key);
  return Array.isArray(found) ? found : [];
}

function text(value: unknown, key: string): string {
  const found = property(value, key);
  return typeof found === 'string' ? found : '';
}

function count(value: unknown, key: string): number {
  const found = property(value, key);
  return typeof found === 'number' ? found : 0;
}

function property(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

function print(outcomes: readonly Outcome[]): boolean {
  const total: Totals = { passed: 0, failed: 0, skipped: 0 };
  console.log('');
  for (const { failures, unstable } of outcomes) {
    for (const failure of failures) printFailure('FAIL', failure);
    for (const failure of unstable) printFailure('UNSTABLE', failure);
  }
  for (const { name, passed, failed, skipped, seconds } of outcomes) {
    total.passed += passed;
    total.failed += failed;
    total.skipped += skipped;
    const mark = failed > 0 ? 'FAIL' : 'ok  ';
    console.log(`${mark} ${name.padEnd(12)} ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds.toFixed(1)} s`);
  }
  const unstable = outcomes.reduce((sum, outcome) => sum + outcome.unstable.length, 0);
  const remark = unstable > 0 ? `, ${unstable} of the passed only when alone` : '';
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped${remark}`);
  return total.failed === 0;
}

function printFailure(mark: string, { file, test, message }: Failure): void {
  console.log(`${mark} ${file} ${test}\n     ${message}`);
}

async function main(): Promise<void> {
  const missing = ensureTools('test');
  if (missing.length > 0) console.log(`tests that need ${missing.join(', ')} will fail`);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-test-'));
  try {
    const end = performance.now() + SUITES_DEADLINE_MS;
    const outcomes = [
      await check('lint', [path.join(MODULES, '@biomejs/biome/bin/biome'), 'check', '.']),
      await check('rooms', [path.join(ROOT, 'scripts/check-rooms.ts')]),
      await check('docblocks', [path.join(ROOT, 'scripts/check-docblocks.ts')]),
      await check('licences', [path.join(ROOT, 'scripts/check-licences.ts')]),
      await check('audit', [path.join(ROOT, 'scripts/audit.ts')]),
      await check('types', [path.join(MODULES, 'typescript/bin/tsc'), '-p', '.', '--noEmit']),
      await suite('unit', end - performance.now(), folder),
      await suite('e2e', end - performance.now(), folder),
      await suite('playing', end - performance.now(), folder),
    ];
    if (!print(outcomes)) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
