/** Backlog for edges that number alike: everything since the segment before the present one began. */
import type { Packet } from '../../media/packet.ts';
import type { SegmentMark } from '../../media/segment-mark.ts';
import { toMilliseconds } from '../../media/timebase.ts';

/** More is not held: whoever joins then begins with the next segment. Less than may wait in a connection. */
const MAX_BYTES = 12 * 1024 * 1024;
const MAX_PACKETS = 16_384;

/** A packet, with the mark where a segment begins with it. */
export interface HeldPacket {
  readonly packet: Packet;
  readonly mark: SegmentMark | null;
}

/** For one stream. Holds packets as they are; needs no closing. */
export class MarkBacklog {
  #held: HeldPacket[] = [];
  #bytes = 0;
  /** Where the last two segments begin among the held ones; fewer at the beginning. */
  #begins: number[] = [];
  /** Mark of the next packet. */
  #mark: SegmentMark | null = null;

  /** A segment begins with `packet`, which comes next. */
  begin(mark: SegmentMark, packet: Packet): void {
    this.#mark = mark;
    const [, present] = this.#begins;
    if (present !== undefined) this.#forget(present);
    // Other tracks' packets of the next segment may lie before its mark.
    else if (this.#begins.length === 0) this.#held = this.#held.filter((held) => isOf(held.packet, mark, packet.track.id));
  }

  /** Nothing is held before the first mark. */
  push(packet: Packet): void {
    const mark = this.#mark;
    this.#mark = null;
    if (mark === null && this.#begins.length === 0) return;
    if (mark !== null) this.#begins.push(this.#held.length);
    this.#held.push({ packet, mark });
    this.#bytes += packet.data.length;
    if (this.#bytes > MAX_BYTES || this.#held.length > MAX_PACKETS) this.clear();
  }

  /** In the order in which edges need them: the first carries a mark. Empty where too much would have to be held. */
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

  /** The segment that begins at `present` is the one before the present one from now on. */
  #forget(present: number): void {
    const { mark, packet } = this.#held[present] ?? {};
    if (mark === undefined || mark === null || packet === undefined) return;
    const early = this.#held.slice(0, present).filter((held) => isOf(held.packet, mark, packet.track.id));
    this.#held = [...early, ...this.#held.slice(present)];
    this.#begins = [early.length];
    this.#bytes = this.#held.reduce((sum, held) => sum + held.packet.data.length, 0);
  }
}

/** A packet of another track than `leader` that came before the mark, and is of the segment that begins there. */
function isOf({ track, pts, duration }: Packet, { time }: SegmentMark, leader: number): boolean {
  return track.id !== leader && toMilliseconds(pts + duration / 2, track.timebase) >= time;
}
