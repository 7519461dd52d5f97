/** Starts guided runs, each in a process of its own, and reports the input on which a process crashed or hung. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { FuzzFailure } from '../support/fuzz-target.ts';
import type { GuidedOptions, GuidedResult } from './guided-fuzz.ts';

/** Message to the child. */
export interface GuidedOrder extends Omit<GuidedOptions, 'inputFile'> {
  readonly name: string;
  /** Path of the file with the running input. */
  readonly file: string;
}

/** The child's message at its end. */
export type GuidedAnswer = { readonly type: 'done'; readonly result: GuidedResult } | { readonly type: 'failed'; readonly why: string };

const REGISTER = path.join(import.meta.dirname, 'register.ts');
const CHILD = path.join(import.meta.dirname, 'child.ts');
/** Limit of JavaScript's memory in one run, MiB: a parser that fills it ends the process. */
const MAX_HEAP_MIB = 768;
/** Time for loading, seeds, and the choice of the inputs to keep; a process that takes longer hangs on its input. */
const GRACE_MS = 60_000;

/** Runs the target `name`; also throws `FuzzFailure` when an input crashes the process or never ends. */
export async function guidedProcess(name: string, options: Omit<GuidedOptions, 'inputFile'>): Promise<GuidedResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-fuzz-'));
  const file = path.join(folder, 'input');
  const execArgv = ['--import', REGISTER, `--max-old-space-size=${MAX_HEAP_MIB}`, '--no-warnings'];
  const child = fork(CHILD, { execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let answer: GuidedAnswer | null = null;
  let hangs = false;
  const deadline = setTimeout(() => {
    hangs = true;
    child.kill('SIGKILL');
  }, options.milliseconds + GRACE_MS);
  try {
    child.on('message', (message: GuidedAnswer) => {
      answer = message;
    });
    child.send({ name, file, ...options } satisfies GuidedOrder);
    const [code, signal] = await once(child, 'exit');
    const ending = answer as GuidedAnswer | null;
    if (ending?.type === 'done') return ending.result;
    if (ending?.type === 'failed') throw new FuzzFailure(ending.why);
    const why = hangs ? 'does not come to an end' : `ended the process (${signal ?? code})`;
    throw new FuzzFailure(`${name}: an input ${why}\ncorpus line: ${inputOf(file)}`);
  } finally {
    clearTimeout(deadline);
    rmSync(folder, { recursive: true, force: true });
  }
}

function inputOf(file: string): string {
  try {
    const bytes = readFileSync(file);
    return bytes.subarray(4, 4 + bytes.readUInt32BE(0)).toString('hex');
  } catch {
    return '';
  }
}
