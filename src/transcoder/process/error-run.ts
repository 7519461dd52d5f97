/** Facts about the faults of an encode, for reports that it has failed. */
import type { EncodeErrors, EncodeFaultFacts } from '../../core/transcoding.ts';
import type { Clock } from '../../util/clock.ts';
import type { CodecModule } from '../encoder-catalogue.ts';
import type { EncodePart } from '../messages.ts';
import { NoEncoder } from './encoder-opening.ts';

/** Consecutive errors in one part of an encode. Nothing to close. */
export class ErrorRun {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #count = 0;
  #since = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Adds an error; returns their number. */
  add(): number {
    if (this.#count === 0) this.#since = this.#clock.monotonic();
    this.#count += 1;
    return this.#count;
  }

  /** Ends the run: the part works. */
  clear(): void {
    this.#count = 0;
  }

  get errors(): EncodeErrors {
    return { count: this.#count, withinMs: this.#count === 0 ? 0 : Math.round(this.#clock.monotonic() - this.#since) };
  }
}

/** Facts about a failing encode: the module of its encoder, if that is at fault, and the number of errors. */
export function faultFacts(
  error: unknown,
  part: EncodePart,
  { module, errors: { errors } }: { readonly module: CodecModule | null; readonly errors: ErrorRun },
): EncodeFaultFacts {
  const tried = error instanceof NoEncoder ? error.module : module;
  return { ...(part === 'encoder' && tried !== null && { module: tried }), ...(errors.count > 0 && { errors }) };
}
