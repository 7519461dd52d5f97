/** Backlog for edges with the same segment numbers: everything since the start of the previous segment. */
import type { Packet } from '../../media/packet.ts';
import type { SegmentMark } from '../../media/segment-mark.ts';
import { toMilliseconds } from '../../media/timebase.ts';

/**
 * Limit of kept bytes; beyond it nothing is kept, and an edge that joins then starts with the next segment. Less than the limit of a
 * connection's queue.
 */
const MAX_BYTES = 12 * 1024 * 1024;
const MAX_PACKETS = 16_384;

/** A packet, with the mark if a segment starts with it. */
export interface HeldPacket {
  readonly packet: Packet;
  readonly mark: SegmentMark | null;
}

/** For one stream. Keeps packets without copying; needs no closing. */
export class MarkBacklog {
  #held: HeldPacket[] = [];
  #bytes = 0;
  /** Positions of the last two segment starts among the kept packets; fewer at the beginning. */
  #begins: number[] = [];
  /** Mark of the next packet. */
  #mark: SegmentMark | null = null;

  /** A segment starts with `packet`, which is pushed next. */
  begin(mark: SegmentMark, packet: Packet): void {
    this.#mark = mark;
    const [, present] = this.#begins;
    if (present !== undefined) this.#forget(present);
    // Packets of other tracks that belong to the next segment may precede its mark.
    else if (this.#begins.length === 0) this.#held = this.#held.filter((held) => isOf(held.packet, mark, packet.track.id));
  }

  /** Packets are not kept before the first mark. */
  push(packet: Packet): void {
    const mark = this.#mark;
    this.#mark = null;
    if (mark === null && this.#begins.length === 0) return;
    if (mark !== null) this.#begins.push(this.#held.length);
    this.#held.push({ packet, mark });
    this.#bytes += packet.data.length;
    if (this.#bytes > MAX_BYTES || this.#held.length > MAX_PACKETS) this.clear();
  }

  /** In the order for edges: the first has a mark. Empty if the backlog would be too large. */
  get packets(): readonly HeldPacket[] {
    const first = this.#begins[0];
    if (first === undefined) return [];
    const [begin, early, rest] = [this.#held.slice(first, first + 1), this.#held.slice(0, first), this.#held.slice(first + 1)];
    return [...begin, ...early, ...rest];
  }

  clear(): void {
    this.#held = [];
    this.#begins = [];
    this.#bytes = 0;
  }

  /** The segment that starts at `present` becomes the previous segment. */
  #forget(present: number): void {
    const { mark, packet } = this.#held[present] ?? {};
    if (mark === undefined || mark === null || packet === undefined) return;
    const early = this.#held.slice(0, present).filter((held) => isOf(held.packet, mark, packet.track.id));
    this.#held = [...early, ...this.#held.slice(present)];
    this.#begins = [early.length];
    this.#bytes = this.#held.reduce((sum, held) => sum + held.packet.data.length, 0);
  }
}

/** Whether a packet of another track than `leader` precedes the mark but belongs to its segment. */
function isOf({ track, pts, duration }: Packet, { time }: SegmentMark, leader: number): boolean {
  return track.id !== leader && toMilliseconds(pts + duration / 2, track.timebase) >= time;
}
