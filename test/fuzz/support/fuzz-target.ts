/** The form of a fuzz target, and the run of one target. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import { reachedBy } from '../engine/reached.ts';
import { type InputForm, mutate } from './mutations.ts';
import { Random, seedOf } from './random.ts';

/** A parser, or a session with its parsers, that takes bytes from a peer. */
export interface FuzzTarget {
  /** Also the name of its file in the corpus. */
  readonly name: string;
  readonly form?: InputForm;
  /** Valid inputs, from our own writers where they exist; at least one must be read to its end. */
  readonly seeds: () => readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /**
   * Takes one input, which it may change. Returns a measure of the result (units, values, bytes sent, steps): something that grows when a
   * peer makes the parser work. It also checks that the state is still usable.
   */
  readonly run: (input: Buffer) => number | undefined | Promise<number | undefined>;
  /** Limit of the result for an input of `length` bytes; default: 1024 and 64 for each byte. */
  readonly most?: (length: number) => number;
  /**
   * Limit of blocks of `src/` that may run for an input of `length` bytes, counted by guided runs. The default per byte finds only
   * unbounded work; a limit also finds quadratic work.
   */
  readonly mostSteps?: (length: number) => number;
  /** Documented errors other than `ProtocolError`. */
  readonly expects?: (error: unknown) => boolean;
  /** Releases the parts that runs share. */
  readonly close?: () => void | Promise<void>;
  /** Relative cost of a run: 1 for a parser of a message, more for sockets or handshakes. */
  readonly cost?: number;
}

/** Extent of a run: a number of inputs for a target of cost 1, or a deadline (`performance.now()`). */
export type FuzzExtent = { readonly inputs: number } | { readonly until: number };

const CORPUS = path.join(import.meta.dirname, '..', 'corpus');
const RANDOM_INPUTS_EVERY = 32;
const MAX_RANDOM_INPUT = 300;
/** Limit of CPU time for one input, ms, independent of the load: far more than any input should cost. */
const MAX_CPU_MS = 1000;
/** File that gets every input before it runs, to find the input that crashes the process. */
const TRACE = process.env['FUZZ_TRACE'];

/** A failing input; the message contains everything to reproduce the failure. */
export class FuzzFailure extends Error {
  override readonly name = 'FuzzFailure';
}

/** Inputs that once failed: lines of `corpus/NAME.hex`, hex in words, `61*9` for nine times 61; lines that start with `#` are comments. */
export function corpusOf(name: string): Uint8Array[] {
  const file = path.join(CORPUS, `${name}.hex`);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => !line.startsWith('#') && line.trim() !== '');
  return lines.map((line) => Buffer.concat(line.trim().split(/\s+/).map(bytesOf)));
}

function bytesOf(word: string): Buffer {
  const [hex = '', times = '1'] = word.split('*');
  const bytes = Buffer.from(hex.repeat(Number(times)), 'hex');
  if (bytes.length * 2 !== hex.length * Number(times)) throw new TypeError(`no hex in a corpus: ${word.slice(0, 40)}`);
  return bytes;
}

/** Runs the corpus, the seeds and mutations of both. Resolves with the number of inputs; throws `FuzzFailure`. */
export async function fuzz(target: FuzzTarget, seed: number, extent: FuzzExtent): Promise<number> {
  try {
    return await fuzzOpen(target, seed, extent);
  } finally {
    await target.close?.();
  }
}

async function fuzzOpen(target: FuzzTarget, seed: number, extent: FuzzExtent): Promise<number> {
  const seeds = await target.seeds();
  const corpus = [...corpusOf(target.name), ...reachedBy(target.name)];
  const pool = [...corpus, ...seeds];
  let ran = 0;
  const attempt = async (input: Uint8Array): Promise<boolean> => {
    ran += 1;
    return await runOne(target, input, `input ${ran} of seed ${seed}`);
  };
  for (const input of corpus) await attempt(input);
  let taken = 0;
  for (const input of seeds) taken += (await attempt(input)) ? 1 : 0;
  if (taken === 0) throw new TypeError(`${target.name} refuses every seed: what comes behind is never reached`);

  const random = new Random(seedOf(target.name, seed));
  const inputs = 'inputs' in extent ? Math.ceil(extent.inputs / (target.cost ?? 1)) : Number.POSITIVE_INFINITY;
  const until = 'until' in extent ? extent.until : Number.POSITIVE_INFINITY;
  for (let made = 0; made < inputs && performance.now() < until; made += 1) {
    const whole = made % RANDOM_INPUTS_EVERY === RANDOM_INPUTS_EVERY - 1;
    await attempt(whole ? random.bytes(random.below(MAX_RANDOM_INPUT)) : mutate(random.pick(pool), pool, random, target.form ?? 'bytes'));
  }
  return ran;
}

/** Whether the input was read to its end. */
async function runOne(target: FuzzTarget, input: Uint8Array, which: string): Promise<boolean> {
  // A buffer of exactly this size, so that a read past the end fails.
  const own = Buffer.from(new Uint8Array(input).buffer);
  if (TRACE !== undefined) appendFileSync(TRACE, `${target.name} ${Buffer.from(input).toString('hex')}\n`);
  const usedBefore = process.threadCpuUsage();
  try {
    const result = target.run(own);
    // The CPU time of an asynchronous target cannot be measured: other work uses the thread, too.
    const used = result instanceof Promise ? { user: 0, system: 0 } : process.threadCpuUsage(usedBefore);
    const came = (result instanceof Promise ? await result : result) ?? 0;
    const spent = (used.user + used.system) / 1000;
    if (spent > MAX_CPU_MS) throw new Error(`${input.length} bytes took ${Math.round(spent)} ms of CPU`);
    const most = target.most === undefined ? 1024 + 64 * input.length : target.most(input.length);
    if (came > most) throw new Error(`${came} came of ${input.length} bytes, at most ${most} may`);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError || target.expects?.(error) === true) return false;
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new FuzzFailure(`${target.name}, ${which}: ${why}\ncorpus line: ${Buffer.from(input).toString('hex')}`);
  }
}
