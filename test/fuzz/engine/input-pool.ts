/** The inputs worth mutating: for each reached feature, the shortest input that reaches it. */
import type { Random } from '../support/random.ts';
import { MAX_COUNTERS } from './coverage.ts';

/** A kept input. */
export interface PooledInput {
  readonly bytes: Uint8Array;
  /** Number of blocks that ran for it. */
  readonly steps: number;
  /** Features that no shorter input reaches; at 0 the input is dropped. */
  owned: number;
  /** Number of mutations made of it. */
  tried: number;
}

/** Ranges of how often a block ran: 1, 2, 3, 4–7, 8–15, 16–31, 32–127, more. A block with a range is a feature. */
const RANGES = 8;
/** One choice in this many takes the input with the fewest mutations. */
const FRESH_ONCE_IN = 2;
const FRESH_CANDIDATES = 4;

function rangeOf(count: number): number {
  if (count < 4) return count - 1;
  if (count < 32) return 32 - Math.clz32(count);
  return count < 128 ? 6 : 7;
}

/** Keeps inputs by the features they reach. Bounded by the number of features, because each kept input owns at least one. */
export class InputPool {
  readonly #owners = new Map<number, PooledInput>();
  /** Length of the shortest input by feature; the largest number for features never reached. */
  readonly #shortest = new Uint32Array(MAX_COUNTERS * RANGES).fill(0xffff_ffff);
  #inputs: PooledInput[] = [];
  readonly #found: number[] = [];
  #slowest: PooledInput | null = null;
  /** Number of features ever reached. */
  features = 0;

  get inputs(): readonly PooledInput[] {
    return this.#inputs;
  }

  /** Number of blocks ever entered. */
  get blocks(): number {
    return this.blockNumbers().size;
  }

  /** The counters of the blocks ever entered. */
  blockNumbers(): Set<number> {
    return new Set([...this.#owners.keys()].map((feature) => Math.floor(feature / RANGES)));
  }

  /** The features of `counts`, lowest first. */
  static featuresOf(counts: Uint32Array, used: number): number[] {
    const features: number[] = [];
    for (let at = 0; at < used; at += 1) {
      const count = counts[at] ?? 0;
      if (count !== 0) features.push(at * RANGES + rangeOf(count));
    }
    return features;
  }

  /** Keeps a valid input whatever it reaches, because the addon and libraries have no counters. */
  keepAlways(input: Uint8Array): void {
    this.#inputs.push({ bytes: input.slice(), steps: 0, owned: 1, tried: 0 });
  }

  /** Keeps a copy of `input` when it reaches a new feature, or a known one with fewer bytes. Returns the number of blocks that ran. */
  offer(input: Uint8Array, counts: Uint32Array, used: number): number {
    const found = this.#found;
    found.length = 0;
    let steps = 0;
    for (let at = 0; at < used; at += 1) {
      const count = counts[at] as number;
      if (count === 0) continue;
      steps += count;
      const feature = at * RANGES + rangeOf(count);
      if (input.length < (this.#shortest[feature] as number)) found.push(feature);
    }
    if (found.length > 0) this.#keep({ bytes: input.slice(), steps, owned: found.length, tried: 0 });
    const slowest = this.#slowest;
    if (slowest === null || steps / (64 + input.length) > (1.1 * slowest.steps) / (64 + slowest.bytes.length)) {
      this.#slowest = { bytes: input.slice(), steps, owned: 0, tried: 0 };
    }
    return steps;
  }

  /** The next input to mutate; the pool must not be empty. */
  pick(random: Random): Uint8Array {
    if (this.#slowest !== null && random.once(24)) return this.#slowest.bytes;
    let chosen = random.pick(this.#inputs);
    if (random.once(FRESH_ONCE_IN)) {
      for (let more = 1; more < FRESH_CANDIDATES; more += 1) {
        const other = random.pick(this.#inputs);
        if (other.tried < chosen.tried) chosen = other;
      }
    }
    chosen.tried += 1;
    return chosen.bytes;
  }

  #keep(input: PooledInput): void {
    let isObsolete = false;
    for (const feature of this.#found) {
      const before = this.#owners.get(feature);
      if (before === undefined) this.features += 1;
      else {
        before.owned -= 1;
        isObsolete ||= before.owned === 0;
      }
      this.#owners.set(feature, input);
      this.#shortest[feature] = input.bytes.length;
    }
    this.#inputs.push(input);
    if (isObsolete) this.#inputs = this.#inputs.filter(({ owned }) => owned > 0);
  }
}
