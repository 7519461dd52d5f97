/**
 * Vitest's report for `npm test`: a line of JSON for each file when it is planned, started and finished, so that an aborted run leaves a
 * report up to that point. Written to the file named by `TEST_RECORD`.
 */
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Reporter, TestModule, TestSpecification, TestSuite, Vitest } from 'vitest/node';
import type { RecordedTest, RecordLine } from './record.ts';

const ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** vitest gets it by `--reporter`. */
export default class SuiteReporter implements Reporter {
  readonly #record: string;
  readonly #told = new Set<string>();

  constructor() {
    this.#record = process.env['TEST_RECORD'] ?? '';
    if (this.#record === '') throw new Error('TEST_RECORD does not name a file');
  }

  onInit(_vitest: Vitest): void {
    this.#write();
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#write(...specifications.map(({ moduleId }): RecordLine => ({ event: 'planned', file: relative(moduleId) })));
  }

  onTestModuleQueued({ moduleId }: TestModule): void {
    this.#write({ event: 'begun', file: relative(moduleId) });
  }

  onTestModuleEnd(module: TestModule): void {
    const tests = [...module.children.allTests()].map((test): RecordedTest => {
      const { state, errors } = test.result();
      return { name: test.fullName, state, message: errors?.[0]?.message ?? '' };
    });
    this.#told.add(module.moduleId);
    const isFailed = module.state() === 'failed';
    if (isFailed && tests.every(({ state }) => state !== 'failed'))
      tests.push({ name: '(the file)', state: 'failed', message: whyFailed(module) });
    this.#write({ event: 'done', file: relative(module.moduleId), milliseconds: Math.round(module.diagnostic().duration), tests });
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly { readonly message: string }[]): void {
    // A file that failed to load is reported only here.
    for (const module of modules) if (!this.#told.has(module.moduleId)) this.onTestModuleEnd(module);
    this.#write({ event: 'ended', errors: errors.map(({ message }) => message) });
  }

  #write(...lines: readonly RecordLine[]): void {
    appendFileSync(this.#record, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

function relative(file: string): string {
  return path.relative(ROOT, file);
}

/** Reason of a file that failed to load, or whose hooks failed. */
function whyFailed(module: TestModule): string {
  const holders: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()];
  return holders.flatMap((holder) => holder.errors())[0]?.message ?? '';
}
