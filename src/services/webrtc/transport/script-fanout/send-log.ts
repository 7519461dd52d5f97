/** When and how large the packets of one viewer left, by transport-wide sequence number. */
import { SENDS_KEPT } from '../fanout/fanout.ts';

export class SendLog {
  readonly #sequences = new Int32Array(SENDS_KEPT).fill(-1);
  readonly #times = new Uint32Array(SENDS_KEPT);
  readonly #lengths = new Uint16Array(SENDS_KEPT);

  /** `at`: µs. */
  write(sequence: number, length: number, at: number): void {
    const place = sequence % SENDS_KEPT;
    this.#sequences[place] = sequence;
    this.#times[place] = at >>> 0;
    this.#lengths[place] = length;
  }

  /** Pairs of µs and bytes for the numbers from `first` on; what is not known is left as it is. */
  read(first: number, into: Uint32Array): void {
    for (let n = 0; 2 * n + 1 < into.length; n += 1) {
      const sequence = (first + n) & 0xffff;
      const place = sequence % SENDS_KEPT;
      if (this.#sequences[place] !== sequence) continue;
      into[2 * n] = this.#times[place] ?? 0;
      into[2 * n + 1] = this.#lengths[place] ?? 0;
    }
  }
}
