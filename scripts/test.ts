/**
 * `npm test`: external tools, lint, licences, known vulnerabilities, types, unit tests and end-to-end tests, then the failures and one line
 * of totals.
 *
 * End-to-end tests wait for media most of the time. Checks and unit tests run beside them with a lower priority; their output is printed when they end.
 * Failed files run once more, alone: a player or a timer that starved beside other tests proves nothing about the server. A test that
 * passes only then is printed as unstable, with its first failure, so that it gets fixed.
 *
 * The goal is 12 minutes; a longer run is reported, but does not fail. A run that hangs is killed much later (`TimeLimit`).
 */
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { SKIPPED } from './audit.ts';
import { ensureTools } from './ensure-tools.ts';
import { type GuardOptions, runGuarded } from './npm-test/guard.ts';
import { type Failure, filesToRepeat, type Outcome, outcomeOf, type Report, readRecord } from './npm-test/record.ts';
import { TimeLimit, timeRemark } from './npm-test/time-limit.ts';

interface Result extends Outcome {
  readonly name: string;
  readonly seconds: number;
}

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const MODULES = path.join(ROOT, 'node_modules');
/** With what other steps leave of the processor. */
const CHECK_DEADLINE_MS = 300_000;
/** Acceptable waiting time for a developer. */
const GOAL_MS = 12 * 60_000;
/** Limit of the unit tests, and of the suites with media together: five times the goal, for slow or shared machines. */
const LIMIT_MS = 60 * 60_000;
/** The guaranteed time of each suite with media: more than either takes. */
const SURE_MS = { e2e: 1_200_000, playing: 480_000 };
/** Each repeat of failed files. */
const REPEAT_DEADLINE_MS = 600_000;
/** More failed files than this are no accident: they do not run again. */
const MAX_REPEATED_FILES = 3;

/** Runs a program whose output is printed in one piece when it is done, and which gives way to others. */
async function runBehind(title: string, folder: string, args: readonly string[], options: Omit<GuardOptions, 'cwd'>): Promise<number> {
  const file = path.join(folder, `${title.replace(' ', '-')}.log`);
  const output = openSync(file, 'w');
  try {
    return await runGuarded(args, { cwd: ROOT, ...options, output, isPatient: true });
  } finally {
    closeSync(output);
    console.log(`\n== ${title}\n${readFileSync(file, 'utf8').trimEnd()}\n`);
  }
}

/** A step that is one test: it passes when the program exits with 0, and does not count when it could not be done. */
async function check(name: string, folder: string, args: readonly string[]): Promise<Result> {
  const startedAt = performance.now();
  const code = await runBehind(name, folder, args, { deadlineMs: CHECK_DEADLINE_MS });
  const seconds = (performance.now() - startedAt) / 1000;
  const [passed, skipped] = [code === 0 ? 1 : 0, code === SKIPPED ? 1 : 0];
  const failed = 1 - passed - skipped;
  const failures = failed === 0 ? [] : [{ file: '', test: name, message: 'see above' }];
  return { name, passed, failed, skipped, seconds, failures, unstable: [] };
}

interface Run {
  readonly suite: Suite;
  readonly report: Report;
  readonly seconds: number;
}

type Suite = 'unit' | 'e2e' | 'playing';

/** Runs the vitest projects whose names begin with that of the suite, or chosen files of them alone. */
async function run(suite: Suite, folder: string, deadlineMs: number, files: readonly string[] = []): Promise<Run> {
  const startedAt = performance.now();
  const isRepeat = files.length > 0;
  const title = `${suite} tests${isRepeat ? ' that failed, alone' : ''}`;
  const record = path.join(folder, `${suite}${isRepeat ? '-alone' : ''}.jsonl`);
  const args = [path.join(MODULES, 'vitest/vitest.mjs'), 'run', '--project', `${suite}*`, ...files];
  if (isRepeat) args.push('--no-file-parallelism');
  args.push('--reporter=default', `--reporter=${path.join(ROOT, 'scripts/npm-test/reporter.ts')}`);
  const options = { deadlineMs, variables: { TEST_RECORD: record } };
  const isBehind = suite === 'unit' && !isRepeat;
  if (!isBehind) console.log(`\n== ${title}`);
  const code = isBehind ? await runBehind(title, folder, args, options) : await runGuarded(args, { cwd: ROOT, ...options });
  const report = readRecord(existsSync(record) ? readFileSync(record, 'utf8') : '', code);
  return { suite, report, seconds: (performance.now() - startedAt) / 1000 };
}

/** The result of a suite whose failed files run once more. */
async function withRepeat({ suite, report, seconds }: Run, folder: string): Promise<Result> {
  const files = filesToRepeat(report, MAX_REPEATED_FILES);
  const again = files.length > 0 ? await run(suite, folder, REPEAT_DEADLINE_MS, files) : undefined;
  return { name: `${suite} tests`, seconds: seconds + (again?.seconds ?? 0), ...outcomeOf(report, again?.report) };
}

async function runChecks(folder: string): Promise<Result[]> {
  return [
    await check('lint', folder, [path.join(MODULES, '@biomejs/biome/bin/biome'), 'check', '.']),
    await check('rooms', folder, [path.join(ROOT, 'scripts/check-rooms.ts')]),
    await check('names', folder, [path.join(ROOT, 'scripts/check-names.ts')]),
    await check('docblocks', folder, [path.join(ROOT, 'scripts/check-docblocks.ts')]),
    await check('licences', folder, [path.join(ROOT, 'scripts/check-licences.ts')]),
    await check('audit', folder, [path.join(ROOT, 'scripts/audit.ts')]),
    // Several threads take a third more of the processor, which others need.
    await check('types', folder, [path.join(MODULES, 'typescript/bin/tsc'), '-p', '.', '--noEmit', '--singleThreaded']),
  ];
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
    const behind = async (): Promise<[Result[], Run]> => [await runChecks(folder), await run('unit', folder, LIMIT_MS)];
    const inFront = async (): Promise<Run[]> => {
      const limit = new TimeLimit(LIMIT_MS, [SURE_MS.e2e, SURE_MS.playing]);
      return [await run('e2e', folder, limit.next()), await run('playing', folder, limit.next())];
    };
    const [[checks, unit], media] = await Promise.all([behind(), inFront()]);
    const outcomes = [...checks];
    for (const first of [unit, ...media]) outcomes.push(await withRepeat(first, folder));
    if (!print(outcomes)) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
