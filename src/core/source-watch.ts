/** Judges a source by bytes and by our own clock, because all buffers behind it are bounded by the media time that the source claims. */
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import { isMediaTrack, type Track } from '../media/track.ts';
import { TokenBucket } from '../util/token-bucket.ts';

/** Bytes of one track that may come within a second of its time: half a gigabit a second, four of the largest frames. */
export const MAX_BYTES_PER_SECOND = 64 * 1024 * 1024;
/** A track that sends for this long, ms, while less than a second of its media time passes has a stopped clock. */
export const MAX_STANDSTILL_MS = 30_000;
/** Counts at most this much between two packets, ms, because a pause of the source does not mean a stopped clock. */
const MAX_STEP_MS = 1000;
/** Limit of changes of tracks or their parameters: a new source makes many, a switched source one every few seconds. */
const CHANGES = { burst: 60, perSecond: 1 } as const;
/** Limit of unreadable packets and parameters: a track that is broken for a few seconds has fewer. */
const MALFORMED = { burst: 500, perSecond: 100 } as const;

/** State of a track at the last whole second of its media time. */
interface Pace {
  seconds: number;
  bytes: number;
  activeMs: number;
  lastAt: number;
}

/**
 * Each method returns the fault, in words for the log, or null. `now` is monotonic, ms. Nothing is allocated per packet.
 */
export class SourceWatch {
  readonly #paces = new Map<number, Pace>();
  #changes = new TokenBucket(CHANGES);
  #malformed = new TokenBucket(MALFORMED);

  /** Checks that the media time of a track advances. */
  packet({ track, dts, data }: Packet, now: number): string | null {
    const seconds = toSeconds(dts, track.timebase);
    const pace = this.#paces.get(track.id);
    if (pace === undefined) {
      this.#paces.set(track.id, { seconds, bytes: data.length, activeMs: 0, lastAt: now });
      return null;
    }
    const passed = Math.min(MAX_STEP_MS, now - pace.lastAt);
    pace.lastAt = now;
    if (Math.abs(seconds - pace.seconds) >= 1) {
      pace.seconds = seconds;
      pace.bytes = data.length;
      pace.activeMs = 0;
      return null;
    }
    pace.bytes += data.length;
    if (pace.bytes > MAX_BYTES_PER_SECOND) {
      return `more than ${MAX_BYTES_PER_SECOND / 1024 / 1024} MiB of track ${track.id} came within a second of its time: its clock stands still`;
    }
    // Events have the time of their subject, and may all have the same subject.
    if (!isMediaTrack(track)) return null;
    pace.activeMs += passed;
    if (pace.activeMs < MAX_STANDSTILL_MS) return null;
    return `the clock of track ${track.id} stands still: less than a second of its time came in ${MAX_STANDSTILL_MS} ms`;
  }

  /** Checks how often the source changes its tracks or their parameters. */
  change(tracks: readonly Pick<Track, 'id'>[], now: number): string | null {
    for (const id of this.#paces.keys()) if (!tracks.some((track) => track.id === id)) this.#paces.delete(id);
    if (this.#changes.take(now)) return null;
    return `its parameters change more than ${CHANGES.perSecond} time a second, ${CHANGES.burst} times at once`;
  }

  /** Checks how many packets cannot be read. */
  fault(what: string, now: number): string | null {
    if (this.#malformed.take(now)) return null;
    return `more than ${MALFORMED.perSecond} packets a second cannot be read, the first one: ${what}`;
  }

  /** Another source follows. */
  restart(): void {
    this.#paces.clear();
    this.#changes = new TokenBucket(CHANGES);
    this.#malformed = new TokenBucket(MALFORMED);
  }
}
