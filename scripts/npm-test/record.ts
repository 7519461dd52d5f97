/** Summary of vitest's reports about a run (`reporter.ts`): passed and failed tests, and unfinished files. */

/** One line of a report; files are relative to the root of the project. */
export type RecordLine =
  | { readonly event: 'planned' | 'begun'; readonly file: string }
  | { readonly event: 'done'; readonly file: string; readonly milliseconds: number; readonly tests: readonly RecordedTest[] }
  | { readonly event: 'ended'; readonly errors: readonly string[] };

/** `state` as in vitest; `message`: reason of a failure. */
export interface RecordedTest {
  readonly name: string;
  readonly state: string;
  readonly message: string;
}

/** A failure with the first line of its reason; `file` is empty for failures outside files. */
export interface Failure {
  readonly file: string;
  readonly test: string;
  readonly message: string;
}

/** Result of one run of vitest. */
export interface Report {
  /** Tests of each finished file. */
  readonly tests: ReadonlyMap<string, readonly RecordedTest[]>;
  readonly failures: readonly Failure[];
}

/** Result of a suite: its first run, with the repeated files. */
export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly failures: readonly Failure[];
  /** Tests that failed beside others and passed alone. */
  readonly unstable: readonly Failure[];
}

/**
 * Sums up the report of one run.
 * @param record lines of JSON; the last one may be cut
 * @param code exit code of the runner, -1 when it was killed for taking too long
 */
export function readRecord(record: string, code: number): Report {
  const lines = record.split('\n').flatMap(parsed);
  const planned = filesOf(lines, 'planned');
  const begun = new Set(filesOf(lines, 'begun'));
  const tests = new Map<string, readonly RecordedTest[]>();
  const failures: Failure[] = [];
  for (const line of lines) {
    if (line.event === 'done') {
      tests.set(line.file, line.tests);
      failures.push(
        ...line.tests.filter(isFailed).map(({ name, message }) => ({ file: line.file, test: name, message: firstLine(message) })),
      );
    }
    if (line.event === 'ended')
      failures.push(...line.errors.map((message) => ({ file: '', test: 'outside any test', message: firstLine(message) })));
  }
  for (const file of planned.filter((name) => !tests.has(name))) {
    failures.push({
      file,
      test: '(the file)',
      message: begun.has(file) ? 'was not done when the run ended' : 'had not begun when the run ended',
    });
  }
  const hasEnded = lines.some(({ event }) => event === 'ended');
  if (failures.length === 0 && (code !== 0 || !hasEnded)) failures.push({ file: '', test: 'the runner', message: `ended with ${code}` });
  return { tests, failures };
}

/** Files to repeat alone: none after a failure outside files, or after more than `atMost` failed files. */
export function filesToRepeat({ failures }: Report, atMost: number): string[] {
  const files = [...new Set(failures.map(({ file }) => file))];
  return files.includes('') || files.length > atMost ? [] : files;
}

/** The result of a suite; `again`: the result of its repeated files. */
export function outcomeOf(first: Report, again?: Report): Outcome {
  const tests = new Map(first.tests);
  if (again !== undefined) {
    for (const { file } of first.failures) tests.delete(file);
    for (const [file, results] of again.tests) tests.set(file, results);
  }
  const all = [...tests.values()].flat();
  const failures = again?.failures ?? first.failures;
  const stillFails = new Set(failures.map(identity));
  return {
    passed: all.filter(({ state }) => state === 'passed').length,
    failed: failures.length,
    skipped: all.filter(({ state }) => state === 'skipped' || state === 'pending').length,
    failures,
    unstable: first.failures.filter((failure) => !stillFails.has(identity(failure))),
  };
}

function filesOf(lines: readonly RecordLine[], event: 'planned' | 'begun'): string[] {
  return lines.flatMap((line) => (line.event === event ? [line.file] : []));
}

function isFailed({ state }: RecordedTest): boolean {
  return state === 'failed';
}

function parsed(line: string): RecordLine[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

function identity({ file, test }: Failure): string {
  return `${file} ${test}`;
}

function firstLine(message: string): string {
  return message.split('\n', 1)[0] ?? '';
}
