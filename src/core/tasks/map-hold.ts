/** Packets of a new stream that are kept while a map file is read, so that its tasks miss nothing. */
import type { Packet } from '../../media/packet.ts';

/** Reading takes milliseconds; beyond the first of these limits, the tasks begin with the next keyframe. */
const MAX_PACKETS = 500;
const MAX_BYTES = 16 * 1024 * 1024;

/** Keeps nothing before `hold` and after `release`; the owner releases it when the map was read or the stream ends. */
export class MapHold {
  #held: Packet[] | null = null;
  #bytes = 0;
  #isWanted = false;
  #missed = 0;

  /** Keeps packets until `release`. */
  hold(): void {
    this.#held = [];
    this.#bytes = 0;
    this.#isWanted = true;
    this.#missed = 0;
  }

  /** Returns how many packets since `hold` the tasks did not get, because there was no room for them. Idempotent. */
  release(): number {
    const missed = this.#missed;
    this.#letGo();
    this.#isWanted = false;
    this.#missed = 0;
    return missed;
  }

  /** Holds the packet if `hold` was called. When full, it counts the packet and everything held before as missed. */
  push(packet: Packet): void {
    if (!this.#isWanted) return;
    if (this.#held === null) {
      this.#missed += 1;
    } else if (this.#held.length >= MAX_PACKETS || this.#bytes + packet.data.length > MAX_BYTES) {
      this.#missed = this.#held.length + 1;
      this.#letGo();
    } else {
      this.#held.push(packet);
      this.#bytes += packet.data.length;
    }
  }

  /** The kept entries, in order; empty if nothing is held. */
  get packets(): readonly Packet[] {
    return this.#held ?? [];
  }

  #letGo(): void {
    this.#held = null;
    this.#bytes = 0;
  }
}
