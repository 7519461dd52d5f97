/** Finds out that a source sends neither audio nor video. */
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import type { SourceTrack } from './ingest.ts';

const CHECK_MS = 100;
/** A timer of Node.js that is set for more than 24 days comes at once. */
const MAX_WAIT_MS = 3_600_000;
/** A check later than this, ms, was held up, and so was the reading of data sent meanwhile. */
const STALL_MS = 2000;

/** Watches one stream, whatever its present source; the owner stops it. */
export class SilenceWatch {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #onSilent: (limit: number) => void;
  /** Ids of tracks that are neither audio nor video. */
  #dataTracks: ReadonlySet<number> = new Set();
  #heardAt: number;
  #timer: NodeJS.Timeout | undefined;

  /** `onSilent`: the limit, ms, has passed; again every 100 ms until the watch is stopped or something is heard. */
  constructor({ clock, logger, onSilent }: { readonly clock: Clock; readonly logger: Logger; readonly onSilent: (limit: number) => void }) {
    this.#clock = clock;
    this.#logger = logger;
    this.#onSilent = onSilent;
    this.#heardAt = clock.monotonic();
  }

  /** Since the last packet of audio or video, or since the beginning of the source, ms. */
  get silence(): number {
    return this.#clock.monotonic() - this.#heardAt;
  }

  /** A source begins, which may be silent for `limit` ms; 0: without limit. */
  start(limit: number): void {
    this.stop();
    this.#heardAt = this.#clock.monotonic();
    if (limit <= 0) return;
    // Time of the previous check, if the limit had nearly passed by then.
    let lookedAt: number | null = null;
    const look = guarded(this.#logger, 'the watch over a stream', () => {
      const now = this.#clock.monotonic();
      const left = limit - this.silence;
      // After a stall, data that has arrived is read before the next check, so one late check is not enough.
      const isHeldUp = lookedAt === null || now - lookedAt > STALL_MS;
      lookedAt = left <= CHECK_MS ? now : null;
      this.#timer = setTimeout(look, Math.min(Math.max(left - CHECK_MS, CHECK_MS), MAX_WAIT_MS));
      if (!isHeldUp && left <= 0) this.#onSilent(limit);
    });
    // Ten checks a second for each stream would be a large part of the cost of an unwatched stream.
    this.#timer = setTimeout(look, Math.min(Math.max(limit - CHECK_MS, 0), MAX_WAIT_MS));
  }

  /** Idempotent. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Sets the tracks of the source. */
  setTracks(tracks: readonly SourceTrack[]): void {
    this.#dataTracks = new Set(tracks.filter(({ type }) => type !== 'video' && type !== 'audio').map(({ id }) => id));
  }

  /**
   * A packet of `trackId` came at `now`. Data tracks do not count: their packets may come from a person or a script while the encoder is
   * dead.
   */
  heard(trackId: number, now: number): void {
    if (!this.#dataTracks.has(trackId)) this.#heardAt = now;
  }
}
