/** Counters of instrumented code: blocks entered, and bytes requested from the allocator. One set for each process. */

/** Several times the number of blocks in `src/`; a file that does not fit is loaded without counters. */
export const MAX_COUNTERS = 131_072;

/** The name under which instrumented code finds the counters. */
const KEY = Symbol.for('millrace.fuzz.coverage');

/** A file with counters. */
export interface InstrumentedFile {
  readonly path: string;
  readonly firstCounter: number;
  readonly counters: number;
  /** Numbers and texts that the code compares with, and constants of wire formats. */
  readonly constants: readonly (number | string)[];
}

/** Counters of all loaded files. */
export class Coverage {
  /** How often each block ran since `reset`. */
  readonly counts = new Uint32Array(MAX_COUNTERS);
  readonly files: InstrumentedFile[] = [];
  /** Bytes requested from the allocator since `reset`, as far as the code tells their number. */
  allocated = 0;

  /** Number of assigned counters. */
  get used(): number {
    const last = this.files.at(-1);
    return last === undefined ? 0 : last.firstCounter + last.counters;
  }

  reset(): void {
    this.counts.fill(0, 0, this.used);
    this.allocated = 0;
  }

  /** Counts the size of an allocation, given as a number of bytes or as an object to copy; returns its argument. */
  readonly asked = <T>(wanted: T): T => {
    if (typeof wanted === 'number') this.allocated += wanted > 0 ? wanted : 0;
    else if (ArrayBuffer.isView(wanted)) this.allocated += wanted.byteLength;
    return wanted;
  };
}

/** The counters of this process, made at the first call. */
export function coverage(): Coverage {
  const holder = globalThis as unknown as Record<symbol, Coverage | undefined>;
  holder[KEY] ??= new Coverage();
  return holder[KEY];
}
