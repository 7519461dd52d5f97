/** Packets of a new stream that are kept while a map file is read, so that its tasks miss nothing. */
import type { Packet } from '../../media/packet.ts';

/** Reading takes milliseconds; with more than this the tasks begin with the next keyframe. */
const MAX_HOLD = 500;

/** Keeps nothing before `hold` and after `release`; the owner releases it when the map was read or the stream ends. */
export class MapHold {
  #held: Packet[] | null = null;

  /** Keeps what comes until `release`. */
  hold(): void {
    this.#held = [];
  }

  release(): void {
    this.#held = null;
  }

  push(packet: Packet): void {
    if (this.#held === null) return;
    if (this.#held.length === MAX_HOLD) this.#held = null;
    else this.#held.push(packet);
  }

  /** What is kept, in order; nothing when nothing is held. */
  get packets(): readonly Packet[] {
    return this.#held ?? [];
  }
}
