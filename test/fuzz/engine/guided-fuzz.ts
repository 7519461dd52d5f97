/** Fuzzing guided by coverage: inputs that reach something new are kept and mutated further. */
import { writeSync } from 'node:fs';
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import { memoryInUse } from '../../support/memory.ts';
import { corpusOf, FuzzFailure, type FuzzTarget } from '../support/fuzz-target.ts';
import { mutate } from '../support/mutations.ts';
import { Random, seedOf } from '../support/random.ts';
import type { Coverage } from './coverage.ts';
import { dictionaryOf, withWord } from './dictionary.ts';
import { InputPool } from './input-pool.ts';
import { fewest, keepReached, reachedBy } from './reached.ts';

/** Duration of a run, and which of its inputs are kept. */
export interface GuidedOptions {
  readonly milliseconds: number;
  readonly seed: number;
  /**
   * File that holds the running input after its length in four bytes. When the process crashes or hangs, its parent finds the input there.
   */
  readonly inputFile: number;
  readonly keeps: 'nothing' | 'what-it-reached';
}

/** Result of a run. */
export interface GuidedResult {
  readonly executions: number;
  readonly seconds: number;
  /** Blocks of `src/` that ran, and all blocks of the files in which at least one ran. */
  readonly blocks: number;
  readonly blocksInFiles: number;
  readonly inputs: number;
  readonly kept: number;
  /** Largest number of blocks run and bytes requested by one input, as fractions of the limits. */
  readonly work: number;
  readonly memory: number;
  /** Growth of JavaScript's memory during the run, MiB. */
  readonly grown: number;
}

/** Wall time of an input above which its CPU time is measured. */
const SUSPICIOUS_MS = 250;
/** Limit of CPU time for one input, ms, as without coverage. */
const MAX_CPU_MS = 1000;
const RETRIES = 3;
const STACK_LINES = 20;
/** Mutations never make longer inputs. */
const MAX_INPUT = 65_536;
/** Blocks that may run in addition to those of the slowest valid input, per byte. */
const STEPS_PER_BYTE = 1500;
const STEPS_AT_LEAST = 200_000;
/** Bytes that may be requested: buffers of a connection or session, and copies of the input. */
const ALLOCATED_AT_LEAST = 4 * 2 ** 20;
const ALLOCATED_PER_BYTE = 1024;
const WORD_ONCE_IN = 3;
const WHOLLY_RANDOM_ONCE_IN = 64;
const MAX_RANDOM_INPUT = 300;
const SPLICE_SOURCES = 4;
/** The clock is read once in this many inputs of a synchronous target. */
const CLOCK_EVERY = 16;

/** Runs `target` until the time is over. Throws `FuzzFailure` for the first input that fails. */
export async function guidedFuzz(target: FuzzTarget, cover: Coverage, options: GuidedOptions): Promise<GuidedResult> {
  try {
    return await new GuidedRun(target, cover, options).run();
  } finally {
    await target.close?.();
  }
}

class GuidedRun {
  readonly #target: FuzzTarget;
  readonly #cover: Coverage;
  readonly #options: GuidedOptions;
  readonly #pool = new InputPool();
  /** The running input after its length, as written to the file. */
  readonly #running = Buffer.alloc(4 + MAX_INPUT);
  #executions = 0;
  #baseSteps = STEPS_AT_LEAST;
  #work = 0;
  #memory = 0;

  constructor(target: FuzzTarget, cover: Coverage, options: GuidedOptions) {
    this.#target = target;
    this.#cover = cover;
    this.#options = options;
  }

  async run(): Promise<GuidedResult> {
    const target = this.#target;
    const seeds = await target.seeds();
    Error.stackTraceLimit = 0;
    this.#baseSteps = Number.MAX_SAFE_INTEGER;
    let seedSteps = 0;
    for (const seed of seeds) {
      this.#pool.keepAlways(seed);
      seedSteps = Math.max(seedSteps, await this.#try(seed));
    }
    this.#baseSteps = STEPS_AT_LEAST + 4 * seedSteps;
    this.#work = 0;
    for (const input of [...corpusOf(target.name), ...reachedBy(target.name)]) await this.#try(input);
    const before = await memoryInUse();
    const startedAt = performance.now();
    await this.#explore(startedAt + this.#options.milliseconds);
    const seconds = (performance.now() - startedAt) / 1000;
    const grown = ((await memoryInUse()).held - before.held) / 2 ** 20;
    const kept = this.#options.keeps === 'nothing' ? 0 : keepReached(target.name, await fewest(this.#pool, this.#cover, this.#again));
    return {
      ...{ executions: this.#executions, seconds, blocks: this.#pool.blocks, blocksInFiles: this.#blocksInFiles() },
      ...{ inputs: this.#pool.inputs.length, kept, work: this.#work, memory: this.#memory, grown },
    };
  }

  async #explore(until: number): Promise<void> {
    const form = this.#target.form ?? 'bytes';
    const random = new Random(seedOf(this.#target.name, this.#options.seed));
    const pool = this.#pool;
    // The files under test are known only after the seeds have run, and more are reached later.
    let dictionary = await this.#words();
    let features = pool.features;
    for (let made = 0; made % CLOCK_EVERY !== 0 || performance.now() < until; made += 1) {
      if (pool.features > 1.02 * features) {
        dictionary = await this.#words();
        features = pool.features;
      }
      let input: Uint8Array;
      if (random.once(WHOLLY_RANDOM_ONCE_IN)) input = random.bytes(random.below(MAX_RANDOM_INPUT));
      else {
        input = pool.pick(random);
        const hasWord = random.once(WORD_ONCE_IN);
        if (hasWord) input = withWord(input, dictionary, random);
        if (!hasWord || random.once(2)) input = mutate(input, this.#splices(random), random, form);
      }
      await this.#try(input);
      if (this.#target.cost !== undefined && this.#target.cost > 3 && performance.now() >= until) return;
    }
  }

  #splices(random: Random): Uint8Array[] {
    return Array.from({ length: SPLICE_SOURCES }, () => random.pick(this.#pool.inputs).bytes);
  }

  /** The constants of every file that an input of the pool runs through. */
  async #words(): Promise<Uint8Array[]> {
    this.#cover.reset();
    for (const { bytes } of this.#pool.inputs.slice(-200)) await this.#call(bytes).catch(() => undefined);
    return dictionaryOf(this.#cover);
  }

  readonly #again = async (input: Uint8Array): Promise<void> => {
    this.#cover.reset();
    await this.#call(input).catch(() => undefined);
  };

  /** Runs and judges one input; returns the number of blocks that ran. */
  async #try(input: Uint8Array): Promise<number> {
    const cover = this.#cover;
    this.#executions += 1;
    this.#note(input);
    cover.reset();
    const startedAt = performance.now();
    let came = 0;
    try {
      // A buffer of exactly this size, so that a read past the end fails.
      const result = this.#target.run(Buffer.from(new Uint8Array(input).buffer));
      came = (result instanceof Promise ? await result : result) ?? 0;
    } catch (error) {
      if (!this.#isExpected(error)) this.#fail(input, await this.#stackOf(input, error));
    }
    if (performance.now() - startedAt > SUSPICIOUS_MS) await this.#checkCpu(input);
    const most = this.#target.most === undefined ? 1024 + 64 * input.length : this.#target.most(input.length);
    if (came > most) this.#fail(input, `${came} came of ${input.length} bytes, at most ${most} may`);
    const { allocated } = cover;
    const mostAllocated = ALLOCATED_AT_LEAST + ALLOCATED_PER_BYTE * input.length;
    if (allocated > mostAllocated) this.#fail(input, `${allocated} bytes were asked for by ${input.length}, at most ${mostAllocated} may`);
    const steps = this.#pool.offer(input, cover.counts, cover.used);
    const mostSteps = this.#target.mostSteps?.(input.length) ?? this.#baseSteps + STEPS_PER_BYTE * input.length;
    if (steps > mostSteps) this.#fail(input, `${steps} blocks ran for ${input.length} bytes, at most ${mostSteps} may`);
    this.#work = Math.max(this.#work, steps / mostSteps);
    this.#memory = Math.max(this.#memory, allocated / mostAllocated);
    return steps;
  }

  #note(input: Uint8Array): void {
    const running = this.#running;
    const length = Math.min(input.length, MAX_INPUT);
    running.writeUInt32BE(length);
    running.set(input.subarray(0, length), 4);
    writeSync(this.#options.inputFile, running, 0, 4 + length, 0);
  }

  /** Stacks are off because a run creates thousands of errors a second; a second run of the input makes the stack. */
  async #stackOf(input: Uint8Array, error: unknown): Promise<string> {
    Error.stackTraceLimit = STACK_LINES;
    const again = await this.#call(input).then(
      () => error,
      (reason: unknown) => reason,
    );
    return again instanceof Error ? (again.stack ?? again.message) : String(again);
  }

  async #call(input: Uint8Array): Promise<void> {
    await this.#target.run(Buffer.from(new Uint8Array(input).buffer));
  }

  /** Wall time also contains other processes and garbage collections; the least CPU time of several runs does not. */
  async #checkCpu(input: Uint8Array): Promise<void> {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < RETRIES; round += 1) {
      const before = process.threadCpuUsage();
      await this.#call(input).catch(() => undefined);
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    if (least > MAX_CPU_MS) this.#fail(input, `${input.length} bytes took ${Math.round(least)} ms of CPU`);
  }

  #isExpected(error: unknown): boolean {
    return error instanceof ProtocolError || this.#target.expects?.(error) === true;
  }

  #fail(input: Uint8Array, why: string): never {
    throw new FuzzFailure(`${this.#target.name}, input ${this.#executions}: ${why}\ncorpus line: ${Buffer.from(input).toString('hex')}`);
  }

  #blocksInFiles(): number {
    const reached = this.#pool.blockNumbers();
    return this.#cover.files
      .filter(({ firstCounter, counters }) => {
        for (let at = firstCounter; at < firstCounter + counters; at += 1) if (reached.has(at)) return true;
        return false;
      })
      .reduce((sum, { counters }) => sum + counters, 0);
  }
}
