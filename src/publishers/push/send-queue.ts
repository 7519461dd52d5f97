/** What waits for a receiver: bounded, and after a loss it goes on with keyframes only. */
import type { Packet } from '../../media/packet.ts';
import { isMovingPicture, type Track } from '../../media/track.ts';
import type { BoundedQueue } from '../../util/bounded-queue.ts';

/** Packets that may wait: some six seconds of one video and one audio track. */
export const SEND_QUEUE_PACKETS = 500;
/** Bytes that may wait. */
export const SEND_QUEUE_BYTES = 16 * 1024 * 1024;

/**
 * Begins with a keyframe of every video track. When it is full, everything in it is dropped and each video track goes on
 * with its next keyframe; audio follows the first of them. Drops are counted on the queue.
 */
export class SendQueue {
  readonly #queue: BoundedQueue<Packet>;
  readonly #videoIds: readonly number[];
  #bytes = 0;
  /** Video tracks whose keyframe has not come; null when all pass. */
  #awaiting: Set<number> | null;
  /** No keyframe has passed since the beginning or the last loss. */
  #silent: boolean;
  #dropped = 0;

  constructor(queue: BoundedQueue<Packet>, tracks: readonly Track[]) {
    this.#queue = queue;
    this.#videoIds = tracks.filter(isMovingPicture).map(({ id }) => id);
    this.#awaiting = this.#videoIds.length === 0 ? null : new Set(this.#videoIds);
    this.#silent = this.#awaiting !== null;
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Packets lost because the receiver did not keep up; what precedes the first keyframe is not lost. */
  get dropped(): number {
    return this.#dropped;
  }

  push(packet: Packet): void {
    if (!this.#passes(packet)) {
      if (this.#dropped > 0) this.#drop(1);
      return;
    }
    if (this.#bytes + packet.data.length <= SEND_QUEUE_BYTES && this.#queue.push(packet)) {
      this.#bytes += packet.data.length;
      return;
    }
    this.#dropped += this.#queue.size;
    this.#queue.dropAll();
    this.#bytes = 0;
    this.#drop(1);
    this.#awaiting = this.#videoIds.length === 0 ? null : new Set(this.#videoIds);
    this.#silent = this.#awaiting !== null;
  }

  shift(): Packet | undefined {
    const packet = this.#queue.shift();
    if (packet !== undefined) this.#bytes -= packet.data.length;
    return packet;
  }

  #passes({ track, keyframe }: Packet): boolean {
    const awaiting = this.#awaiting;
    if (awaiting === null) return true;
    if (this.#videoIds.includes(track.id)) {
      if (!keyframe && awaiting.has(track.id)) return false;
      awaiting.delete(track.id);
      this.#silent = false;
      if (awaiting.size === 0) this.#awaiting = null;
      return true;
    }
    return !this.#silent;
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#queue.countDrop(count);
  }
}
