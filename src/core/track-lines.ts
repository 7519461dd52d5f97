import { isMediaTrack, type Track } from '../media/track.ts';
import type { Logger } from '../util/logger.ts';
import type { ProtocolError } from '../util/protocol-error.ts';
import { TokenBucket } from '../util/token-bucket.ts';

/** Log lines about new parameters: after a burst, one every ten seconds with the number of changes since the last. */
const LINES = { burst: 10, perSecond: 0.1 } as const;

/** Logs the tracks of a stream when they change, at a limited rate. */
export class TrackLines {
  readonly #logger: Logger;
  readonly #budget = new TokenBucket(LINES);
  #untold = 0;
  #faultTold = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Logs once that parameters are invalid, because a source may repeat them. Null: they are valid. */
  tellFault(fault: ProtocolError | null): void {
    if (fault === null || this.#faultTold) return;
    this.#faultTold = true;
    this.#logger.warn(
      { code: fault.code },
      `the parameters of a track cannot be read: ${fault.message}; the track is left out or keeps its previous ones`,
    );
  }

  /** The stream has these tracks since `now` (monotonic, ms). */
  tell(tracks: readonly Track[], now: number): void {
    if (!this.#budget.take(now)) {
      this.#untold += 1;
      return;
    }
    const untold = this.#untold;
    this.#untold = 0;
    const words = tracks.map((track) =>
      !isMediaTrack(track) ? track.type : `${track.codec}${track.type === 'video' ? ` ${track.width}x${track.height}` : ''}`,
    );
    this.#logger.info({ tracks: words, ...(untold > 0 && { changesBefore: untold }) }, `stream has tracks: ${words.join(', ')}`);
  }
}
