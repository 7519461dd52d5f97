/** Pseudo-random numbers that are equal for equal seeds, so that a failure can be repeated. */

/** Mulberry32: small, fast, and good enough to choose mutations. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An unsigned 32-bit number. */
  u32(): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** 0 to `limit - 1`; 0 when `limit` is below 1. */
  below(limit: number): number {
    return limit < 1 ? 0 : this.u32() % limit;
  }

  /** An element of `items`, which must not be empty. */
  pick<T>(items: readonly [T, ...T[]] | readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new TypeError('nothing to pick from');
    return item;
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += 1) bytes[at] = this.u32();
    return bytes;
  }
}

/** A seed from a name, so that targets do not all make the same choices. */
export function seedOf(name: string, seed: number): number {
  let mixed = seed ^ 0x811c_9dc5;
  for (let at = 0; at < name.length; at += 1) mixed = Math.imul(mixed ^ name.charCodeAt(at), 0x0100_0193);
  return mixed >>> 0;
}
