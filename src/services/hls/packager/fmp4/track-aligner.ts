/**
 * Feeds the tracks of a stream so that followers do not run past a cut the leading track has not made yet.
 * A follower waits only near the end of a segment, and never long: a silent leader must not silence the rest.
 */
import type { Packet } from '../../../../media/packet.ts';
import { toMilliseconds } from '../../../../media/timebase.ts';
import type { TrackPackager } from './track-packager.ts';

/**
 * Maximum of media (ms) that a follower may be ahead of the leader before it continues alone. Waiting costs viewers nothing: they cannot
 * play audio without the late frames (a transcoded leader may be late).
 */
const MAX_LEAD = 3000;
const MAX_WAITING = 512;
/** Three seconds of 85 Mbit/s. */
const MAX_WAITING_BYTES = 32 * 1024 * 1024;

interface AlignedTrack {
  readonly packager: TrackPackager;
  readonly waiting: Packet[];
  /** Bytes of the waiting packets. */
  bytes: number;
}

/** Passes packets on within `push`. Waiting packets are limited in media time, number and bytes, not by the clock. Needs no closing. */
export class TrackAligner {
  readonly #alignedTracks = new Map<number, AlignedTrack>();
  #leader: AlignedTrack | null = null;
  /** Packets of followers from before the leader's first frame. */
  discarded = 0;

  get leader(): TrackPackager | null {
    return this.#leader?.packager ?? null;
  }

  /** Adds a track. The first video track leads; without one the first track does. */
  add(packager: TrackPackager): void {
    const aligned = { packager, waiting: [], bytes: 0 };
    this.#alignedTracks.set(packager.track.id, aligned);
    const leader = this.#leader;
    const outranks = leader?.packager.track.type === 'audio' && !leader.packager.started && packager.track.type === 'video';
    if (leader === null || outranks) this.#lead(aligned);
  }

  /** Takes a track away; another one leads when it led. */
  remove(trackId: number): void {
    const aligned = this.#alignedTracks.get(trackId);
    if (aligned === undefined) return;
    this.#alignedTracks.delete(trackId);
    if (aligned !== this.#leader) return;
    this.#leader = null;
    const rest = [...this.#alignedTracks.values()];
    const next = rest.find((candidate) => candidate.packager.track.type === 'video') ?? rest[0];
    if (next !== undefined) this.#lead(next);
  }

  get(trackId: number): TrackPackager | null {
    return this.#alignedTracks.get(trackId)?.packager ?? null;
  }

  /** Decoding time (ms) before which no packet of any track makes anything new to list. */
  get nextListed(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { packager } of this.#alignedTracks.values()) first = Math.min(first, packager.nextListed);
    return first;
  }

  packagers(): TrackPackager[] {
    return [...this.#alignedTracks.values()].map((aligned) => aligned.packager);
  }

  /** Hands `packet` to its track now, or when the leader has come as far. */
  push(packet: Packet): void {
    const aligned = this.#alignedTracks.get(packet.track.id);
    if (aligned === undefined) return;
    if (aligned === this.#leader) {
      aligned.packager.push(packet);
      for (const follower of this.#alignedTracks.values()) if (follower !== aligned) this.#drain(follower);
      return;
    }
    aligned.waiting.push(packet);
    aligned.bytes += packet.data.length;
    this.#drain(aligned);
  }

  /** A segment has begun in some track: absent tracks list their gaps. */
  passPauses(): void {
    for (const { packager } of this.#alignedTracks.values()) packager.passPause();
  }

  /** Passes on the waiting packets and closes what is open. */
  flush(): void {
    for (const aligned of this.#alignedTracks.values()) {
      for (const packet of aligned.waiting.splice(0)) aligned.packager.push(packet);
      aligned.bytes = 0;
      aligned.packager.flush();
    }
  }

  #lead(aligned: AlignedTrack): void {
    if (this.#leader !== null) this.#leader.packager.leads = false;
    this.#leader = aligned;
    aligned.packager.leads = true;
  }

  #drain(aligned: AlignedTrack): void {
    const { waiting, packager } = aligned;
    let taken = 0;
    for (const packet of waiting) {
      const time = presentationTime(packet);
      if (!this.#mayPass(aligned, packet, waiting.length - taken)) break;
      taken += 1;
      aligned.bytes -= packet.data.length;
      if (!packager.started && this.#endsBeforeLeader(packet, time)) this.discarded += 1;
      else packager.push(packet);
    }
    if (taken > 0) waiting.splice(0, taken);
  }

  #mayPass(aligned: AlignedTrack, packet: Packet, waiting: number): boolean {
    const time = presentationTime(packet);
    // A frame belongs to the segment that begins in its first half: keyframes up to there must be known.
    const middle = time + toMilliseconds(packet.duration, packet.track.timebase) / 2;
    const leader = this.#leader;
    if (leader === null || leader === aligned) return true;
    const last = aligned.waiting.at(-1);
    const ahead = last === undefined ? 0 : presentationTime(last) - time;
    if (!leader.packager.started) {
      if (ahead < MAX_LEAD && waiting < MAX_WAITING && aligned.bytes < MAX_WAITING_BYTES) return false;
      this.#lead(aligned);
      return true;
    }
    if (middle < leader.packager.decodedUntil || middle < leader.packager.earliestCut || aligned.packager.nextCutKnown) return true;
    return ahead >= MAX_LEAD || waiting >= MAX_WAITING || aligned.bytes >= MAX_WAITING_BYTES;
  }

  #endsBeforeLeader(packet: Packet, time: number): boolean {
    const leader = this.#leader;
    if (leader === null || leader.packager === this.#alignedTracks.get(packet.track.id)?.packager) return false;
    const middle = time + toMilliseconds(packet.duration, packet.track.timebase) / 2;
    return middle < leader.packager.startTime;
  }
}

function presentationTime(packet: Packet): number {
  return toMilliseconds(packet.pts, packet.track.timebase);
}
