import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { type CloseReason, isRecoverable } from './ingest.ts';
import { SourceWatch } from './source-watch.ts';

/** The stream whose source is judged. */
export interface SourceVerdictOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The stream has ended. */
  readonly closed: () => boolean;
  /** The media comes from the stand-in of the stream. */
  readonly standsIn: () => boolean;
  /** Sends the source away, or the stand-in (`ofStandIn`). Called after the present call of the provider has returned. */
  readonly onUnusable: (reason: CloseReason, ofStandIn: boolean) => void;
}

/** Whether packets of the present source are accepted. The first fault decides until another source comes. Nothing to close. */
export class SourceVerdict {
  readonly #options: SourceVerdictOptions;
  readonly #watch = new SourceWatch();
  /** Why packets are no longer accepted; null while they are. */
  #reason: CloseReason | null = null;
  #malformedSeen = 0;

  constructor(options: SourceVerdictOptions) {
    this.#options = options;
  }

  /** Packets of the source are no longer accepted. */
  get isUnusable(): boolean {
    return this.#reason !== null;
  }

  /** Another source follows. */
  restart(): void {
    this.#reason = null;
    this.#watch.restart();
  }

  /** Judges a packet that came at `now`; false: it is not accepted. */
  packet(packet: Packet, now: number): boolean {
    this.judge(this.#watch.packet(packet, now));
    return this.#reason === null;
  }

  /** Judges a change of the tracks; false: it is not accepted. */
  change(tracks: readonly Track[], now: number): boolean {
    this.judge(this.#watch.change(tracks, now));
    return this.#reason === null;
  }

  /** Judges the number of packets that could not be read so far. */
  malformed(count: number, firstFault: string | null): void {
    if (count === this.#malformedSeen) return;
    this.#malformedSeen = count;
    this.judge(this.#watch.fault(firstFault ?? 'unknown', this.#options.clock.monotonic()));
  }

  /** Stops accepting packets for this fault; null: there is none. */
  judge(what: string | null, code: CloseReason['code'] = 'peer-error'): void {
    if (what === null || this.#reason !== null || this.#options.closed()) return;
    const reason: CloseReason = { code, detail: what };
    this.#reason = reason;
    const ofStandIn = this.#options.standsIn() && isRecoverable(code);
    this.soon(() => {
      if (this.#reason === reason) this.#options.onUnusable(reason, ofStandIn);
    });
  }

  /** Runs `action` after the present call of the provider has returned, unless the stream has ended by then. */
  soon(action: () => void): void {
    const { closed, logger } = this.#options;
    setImmediate(guarded(logger, 'the end of an unusable source', () => (closed() ? undefined : action())));
  }
}
