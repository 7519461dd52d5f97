/**
 * `npm test`: external tools, lint, licences, known vulnerabilities, types, unit tests and end-to-end tests, then the failures and one line
 * of totals.
 *
 * Failed files run once more, alone: a player or a timer that starved beside two other tests proves nothing about the server. A test that
 * passes only then is printed as unstable, with its first failure, so that it gets fixed.
 *
 * The goal is 15 minutes; a longer run is reported, but does not fail. A run that hangs is killed much later (`TimeLimit`).
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { SKIPPED } from './audit.ts';
import { ensureTools } from './ensure-tools.ts';
import { runGuarded } from './npm-test/guard.ts';
import { type Failure, filesToRepeat, type Outcome, outcomeOf, type Report, readRecord } from './npm-test/record.ts';
import { TimeLimit, timeRemark } from './npm-test/time-limit.ts';

interface Result extends Outcome {
  readonly name: string;
  readonly seconds: number;
}

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const MODULES = path.join(ROOT, 'node_modules');
const CHECK_DEADLINE_MS = 120_000;
/** Acceptable waiting time for a developer. */
const GOAL_MS = 15 * 60_000;
/** Limit of all steps together: four times the goal, for slow or shared machines. */
const LIMIT_MS = 60 * 60_000;
/** Guaranteed time of each suite, and of the repeat of its failed files: more than either takes. */
const SURE_MS = { unit: 600_000, e2e: 1_200_000, playing: 480_000, repeat: 600_000 };
/** More failed files than this are not accidental and are not repeated. */
const MAX_REPEATED_FILES = 3;

/** A step that is one test: it passes with exit code 0, and does not count when it was impossible. */
async function check(name: string, args: readonly string[]): Promise<Result> {
  console.log(`\n== ${name}`);
  const startedAt = performance.now();
  const code = await runGuarded(args, { cwd: ROOT, deadlineMs: CHECK_DEADLINE_MS });
  const seconds = (performance.now() - startedAt) / 1000;
  const [passed, skipped] = [code === 0 ? 1 : 0, code === SKIPPED ? 1 : 0];
  const failed = 1 - passed - skipped;
  const failures = failed === 0 ? [] : [{ file: '', test: name, message: 'see above' }];
  return { name, passed, failed, skipped, seconds, failures, unstable: [] };
}

/** Runs the vitest projects whose names begin with `project`, or only some of their files. */
async function vitest(project: string, deadlineMs: number, folder: string, files: readonly string[] = []): Promise<Report> {
  const record = path.join(folder, `${project}${files.length > 0 ? '-alone' : ''}.jsonl`);
  const args = [path.join(MODULES, 'vitest/vitest.mjs'), 'run', '--project', `${project}*`, ...files];
  if (files.length > 0) args.push('--no-file-parallelism');
  args.push('--reporter=default', `--reporter=${path.join(ROOT, 'scripts/npm-test/reporter.ts')}`);
  const code = await runGuarded(args, { cwd: ROOT, deadlineMs, variables: { TEST_RECORD: record } });
  return readRecord(existsSync(record) ? readFileSync(record, 'utf8') : '', code);
}

async function suite(project: 'unit' | 'e2e' | 'playing', limit: TimeLimit, folder: string): Promise<Result> {
  console.log(`\n== ${project} tests`);
  const startedAt = performance.now();
  const first = await vitest(project, limit.next(), folder);
  const files = filesToRepeat(first, MAX_REPEATED_FILES);
  if (files.length > 0) console.log(`\n== ${project} tests that failed, alone`);
  // Takes the step's time even if nothing has to be repeated.
  const forRepeat = limit.next();
  const again = files.length > 0 ? await vitest(project, forRepeat, folder, files) : undefined;
  return { name: `${project} tests`, seconds: (performance.now() - startedAt) / 1000, ...outcomeOf(first, again) };
}

function print(outcomes: readonly Result[]): boolean {
  const total = { passed: 0, failed: 0, skipped: 0 };
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
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped${remark}${timeRemark(performance.now(), GOAL_MS)}`);
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
    const { unit, e2e, playing, repeat } = SURE_MS;
    const limit = new TimeLimit(LIMIT_MS, [unit, repeat, e2e, repeat, playing, repeat]);
    const outcomes = [
      await check('lint', [path.join(MODULES, '@biomejs/biome/bin/biome'), 'check', '.']),
      await check('rooms', [path.join(ROOT, 'scripts/check-rooms.ts')]),
      await check('names', [path.join(ROOT, 'scripts/check-names.ts')]),
      await check('docblocks', [path.join(ROOT, 'scripts/check-docblocks.ts')]),
      await check('licences', [path.join(ROOT, 'scripts/check-licences.ts')]),
      await check('audit', [path.join(ROOT, 'scripts/audit.ts')]),
      await check('types', [path.join(MODULES, 'typescript/bin/tsc'), '-p', '.', '--noEmit']),
      await suite('unit', limit, folder),
      await suite('e2e', limit, folder),
      await suite('playing', limit, folder),
    ];
    if (!print(outcomes)) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
