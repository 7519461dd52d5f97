/** Connects the publisher that numbers the segments of an outbound stream with the publishers that pass the numbers on. */
import type { Packet } from '../media/packet.ts';
import type { SegmentMark } from '../media/segment-mark.ts';

/** Called within the call that brings the packet to the numbering publisher, before later publishers get the packet. */
export type MarkListener = (mark: SegmentMark, packet: Packet) => void;

/** The segment marks of one outbound stream. Needs no closing. */
export class SegmentMarks {
  #listener: MarkListener | null = null;
  #followers: readonly (() => void)[] = [];

  /** A segment begins with `packet`. */
  tell(mark: SegmentMark, packet: Packet): void {
    this.#listener?.(mark, packet);
  }

  /** `follower` numbers by another server's marks. It is called when the stream no longer comes from that server. */
  follow(follower: () => void): void {
    this.#followers = [...this.#followers, follower];
  }

  /** The marks have ended: from now on the numbering publisher decides by itself. */
  leave(): void {
    for (const follower of this.#followers) follower();
  }

  /** A publisher passes the numbers on. */
  get wanted(): boolean {
    return this.#listener !== null;
  }

  /** One listener at a time, the last one set; null: the numbers are not passed on. */
  listen(listener: MarkListener | null): void {
    this.#listener = listener;
  }
}
