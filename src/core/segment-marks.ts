/** Between who numbers the segments of an outbound stream and who passes the numbers on. */
import type { Packet } from '../media/packet.ts';
import type { SegmentMark } from '../media/segment-mark.ts';

/** Reported within the call that brings the packet to the numbering publisher, before later publishers get it. */
export type MarkListener = (mark: SegmentMark, packet: Packet) => void;

/** One for each outbound stream. Needs no closing. */
export class SegmentMarks {
  #listener: MarkListener | null = null;
  #followers: readonly (() => void)[] = [];

  /** A segment begins with `packet`. */
  tell(mark: SegmentMark, packet: Packet): void {
    this.#listener?.(mark, packet);
  }

  /** `follower`, who numbers as another server says, is told when the stream comes from no such server any more. */
  follow(follower: () => void): void {
    this.#followers = [...this.#followers, follower];
  }

  /** Nobody says any more where segments begin: who numbers the stream decides by itself. */
  leave(): void {
    for (const follower of this.#followers) follower();
  }

  /** Somebody passes the numbers on. */
  get wanted(): boolean {
    return this.#listener !== null;
  }

  /** One listener at a time: the last one counts; null: nobody passes them on. */
  listen(listener: MarkListener | null): void {
    this.#listener = listener;
  }
}
