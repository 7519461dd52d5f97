/** `npm test`: outside tools, lint, types, unit tests and end-to-end tests, then one line of totals. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureTools } from './ensure-tools.ts';

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

interface Outcome extends Totals {
  readonly name: string;
  readonly seconds: number;
}

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const MODULES = path.join(ROOT, 'node_modules');
const CHECK_DEADLINE_MS = 120_000;
/** All suites together. */
const SUITES_DEADLINE_MS = 690_000;
/** After a SIGTERM the runner may still kill its workers and write its report. */
const GRACE_MS = 10_000;

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

/** A step that is one test: it passes when the program exits with 0. */
async function check(name: string, args: readonly string[]): Promise<Outcome> {
  console.log(`\n== ${name}`);
  const startedAt = performance.now();
  const ok = (await run(args, CHECK_DEADLINE_MS)) === 0;
  return { name, passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: 0, seconds: (performance.now() - startedAt) / 1000 };
}

/** One vitest project; counts come from its JSON report. A crash outside any test counts as one failure. */
async function suite(project: string, deadlineMs: number, folder: string): Promise<Outcome> {
  console.log(`\n== ${project} tests`);
  const startedAt = performance.now();
  const report = path.join(folder, `${project}.json`);
  const vitest = path.join(MODULES, 'vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', project, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const code = await run(args, deadlineMs);
  const totals = readReport(report);
  if (code !== 0 && totals.failed === 0) totals.failed = 1;
  return { name: `${project} tests`, ...totals, seconds: (performance.now() - startedAt) / 1000 };
}

function readReport(file: string): Totals {
  try {
    const report: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return {
      passed: count(report, 'numPassedTests'),
      failed: Math.max(count(report, 'numFailedTests'), count(report, 'numFailedTestSuites') > 0 ? 1 : 0),
      skipped: count(report, 'numPendingTests') + count(report, 'numTodoTests'),
    };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

function count(report: unknown, key: string): number {
  const value: unknown = typeof report === 'object' && report !== null ? Reflect.get(report, key) : undefined;
  return typeof value === 'number' ? value : 0;
}

function print(outcomes: readonly Outcome[]): boolean {
  const total: Totals = { passed: 0, failed: 0, skipped: 0 };
  console.log('');
  for (const { name, passed, failed, skipped, seconds } of outcomes) {
    total.passed += passed;
    total.failed += failed;
    total.skipped += skipped;
    const mark = failed > 0 ? 'FAIL' : 'ok  ';
    console.log(`${mark} ${name.padEnd(12)} ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds.toFixed(1)} s`);
  }
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0;
}

async function main(): Promise<void> {
  const missing = ensureTools('test');
  if (missing.length > 0) console.log(`tests that need ${missing.join(', ')} will fail`);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-test-'));
  try {
    const end = performance.now() + SUITES_DEADLINE_MS;
    const outcomes = [
      await check('lint', [path.join(MODULES, '@biomejs/biome/bin/biome'), 'check', '.']),
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
