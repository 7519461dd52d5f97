/** What instrumented code counts while it runs: blocks entered, and bytes asked for. One of it in a process. */

/** More blocks than `src/` has, several times over; a file that no longer fits is loaded as it is. */
export const MAX_COUNTERS = 131_072;

/** The name under which instrumented code finds it. */
const KEY = Symbol.for('millrace.fuzz.coverage');

/** A file that counts. */
export interface InstrumentedFile {
  readonly path: string;
  readonly firstCounter: number;
  readonly counters: number;
  /** Numbers and texts that the code compares with, or that are constants of the wire. */
  readonly constants: readonly (number | string)[];
}

/** Counters of all loaded files. */
export class Coverage {
  /** How often each block ran since `reset`. */
  readonly counts = new Uint32Array(MAX_COUNTERS);
  readonly files: InstrumentedFile[] = [];
  /** Bytes asked of the allocator since `reset`, as far as the code says how many. */
  allocated = 0;

  /** Counters given out so far. */
  get used(): number {
    const last = this.files.at(-1);
    return last === undefined ? 0 : last.firstCounter + last.counters;
  }

  reset(): void {
    this.counts.fill(0, 0, this.used);
    this.allocated = 0;
  }

  /** Counts what an allocation is asked for, a number of bytes or something to copy; returns it. */
  readonly asked = <T>(wanted: T): T => {
    if (typeof wanted === 'number') this.allocated += wanted > 0 ? wanted : 0;
    else if (ArrayBuffer.isView(wanted)) this.allocated += wanted.byteLength;
    return wanted;
  };
}

/** The one of this process, made by the first who asks. */
export function coverage(): Coverage {
  const holder = globalThis as unknown as Record<symbol, Coverage | undefined>;
  holder[KEY] ??= new Coverage();
  return holder[KEY];
}
