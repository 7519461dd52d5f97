import type { Packet } from './packet.ts';
import { isVideoTrack, type Track } from './track.ts';

/**
 * Passes only packets that a receiver can decode after a loss: each video track continues with its next keyframe, all other tracks with the
 * first of these keyframes.
 */
export class KeyframeGate {
  readonly #videoIds: readonly number[];
  /** Video tracks whose keyframe has not arrived; null while all pass. */
  #awaiting: Set<number> | null = null;
  /** No keyframe has passed since the gate was shut. */
  #silent = false;

  /** The gate is open until it is shut. */
  constructor(tracks: readonly Track[]) {
    this.#videoIds = tracks.filter(isVideoTrack).map(({ id }) => id);
  }

  /** Call it when packets were lost, and before the first packet if the receiver has none. */
  shut(): void {
    if (this.#videoIds.length === 0) return;
    this.#awaiting = new Set(this.#videoIds);
    this.#silent = true;
  }

  passes({ track, keyframe }: Packet): boolean {
    const awaiting = this.#awaiting;
    if (awaiting === null) return true;
    if (!this.#videoIds.includes(track.id)) return !this.#silent;
    if (!keyframe && awaiting.has(track.id)) return false;
    awaiting.delete(track.id);
    this.#silent = false;
    if (awaiting.size === 0) this.#awaiting = null;
    return true;
  }
}
