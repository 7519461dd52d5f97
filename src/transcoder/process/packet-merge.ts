/** Merges the packets of several tracks into decoding order, however late each track delivers. */

/** A packet to merge. */
export interface MergedPacket {
  /** When it is to be decoded. */
  readonly seconds: number;
  readonly data: Uint8Array;
}

/** A track that brings nothing while the others go on by this much is not waited for, seconds. */
const MAX_SPREAD_S = 5;
/** Limits of the packets that wait for it: bytes, and their number. */
const MAX_WAITING = 64 * 1024 * 1024;
const MAX_PACKETS = 32_768;

/** Holds packets until it is clear that none comes before them. */
export class PacketMerge<Value extends MergedPacket> {
  readonly #queues = new Map<number, Value[]>();
  #bytes = 0;
  #count = 0;
  #latest = Number.NEGATIVE_INFINITY;

  /** `ids` of all tracks. */
  constructor(ids: readonly number[]) {
    for (const id of ids) this.#queues.set(id, []);
  }

  /** Packets of one track come in order. */
  put(id: number, packet: Value): void {
    const queue = this.#queues.get(id);
    if (queue === undefined) return;
    queue.push(packet);
    this.#bytes += packet.data.length;
    this.#count += 1;
    this.#latest = Math.max(this.#latest, packet.seconds);
  }

  /** The next packet in order; null if an earlier packet may still come. `ended`: all packets have come. */
  take(ended: boolean): Value | null {
    let first: Value[] | null = null;
    let complete = true;
    for (const queue of this.#queues.values()) {
      const [head] = queue;
      if (head === undefined) complete = false;
      else if (first === null || head.seconds < (first[0]?.seconds ?? 0)) first = queue;
    }
    const head = first?.[0];
    if (first === null || head === undefined) return null;
    const late = this.#latest - head.seconds > MAX_SPREAD_S || this.#bytes > MAX_WAITING || this.#count > MAX_PACKETS;
    if (!complete && !late && !ended) return null;
    first.shift();
    this.#bytes -= head.data.length;
    this.#count -= 1;
    return head;
  }

  /** Forgets everything; packets from elsewhere follow. */
  clear(): void {
    for (const queue of this.#queues.values()) queue.length = 0;
    this.#bytes = 0;
    this.#count = 0;
    this.#latest = Number.NEGATIVE_INFINITY;
  }
}
