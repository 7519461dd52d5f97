/** Packets that wait for a receiver: bounded, and after a loss the queue continues only with keyframes. */
import { KeyframeGate } from '../../media/keyframe-gate.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import type { BoundedQueue } from '../../util/bounded-queue.ts';

/** Packets that may wait: some six seconds of one video and one audio track. */
export const MAX_SEND_QUEUE_PACKETS = 500;
/** Bytes that may wait. */
export const MAX_SEND_QUEUE_BYTES = 16 * 1024 * 1024;

/**
 * Begins with a keyframe of every video track. When full, all its packets are dropped and each video track continues with its next
 * keyframe; audio continues with the first of them. Drops are counted on the queue.
 */
export class SendQueue {
  readonly #queue: BoundedQueue<Packet>;
  readonly #gate: KeyframeGate;
  #bytes = 0;
  #dropped = 0;

  constructor(queue: BoundedQueue<Packet>, tracks: readonly Track[]) {
    this.#queue = queue;
    this.#gate = new KeyframeGate(tracks);
    this.#gate.shut();
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Packets lost because the receiver was too slow; packets before the first keyframe are not counted. */
  get dropped(): number {
    return this.#dropped;
  }

  push(packet: Packet): void {
    if (!this.#gate.passes(packet)) {
      if (this.#dropped > 0) this.#drop(1);
      return;
    }
    if (this.#bytes + packet.data.length <= MAX_SEND_QUEUE_BYTES && this.#queue.push(packet)) {
      this.#bytes += packet.data.length;
      return;
    }
    this.#dropped += this.#queue.size;
    this.#queue.dropAll();
    this.#bytes = 0;
    this.#drop(1);
    this.#gate.shut();
  }

  shift(): Packet | undefined {
    const packet = this.#queue.shift();
    if (packet !== undefined) this.#bytes -= packet.data.length;
    return packet;
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#queue.countDrop(count);
  }
}
