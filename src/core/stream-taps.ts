import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import { forEachGiven, forEachGuarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import type { CloseReason } from './ingest.ts';
import { Urgency } from './urgency.ts';

/**
 * A listener on an inbound stream beside its outputs: gets packets behind the router, before any encode. Called within the stream's turn,
 * so it must not block; a tap that throws is removed.
 */
export interface StreamTap {
  /** Tracks as they are now: at once when they are known, and before the first packet that needs them. */
  onTracks(tracks: readonly Track[]): void;
  /** Its bytes are shared with all other readers. Events and cues of subtitles come as packets, too. */
  onPacket(packet: Packet): void;
  /** The stream has ended; nothing follows. */
  onEnd(reason: CloseReason): void;
}

/** The taps of one inbound stream. Needs no closing. */
export class StreamTaps {
  readonly #taps = new Set<StreamTap>();
  readonly #logger: Logger;
  readonly #onPacketFault = (tap: StreamTap, error: unknown): void => this.#fail(tap, error);

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A tap plays the stream on: batched packets would be late. */
  get urgency(): Urgency {
    return this.#taps.size > 0 ? Urgency.LOW_LATENCY : Urgency.NONE;
  }

  /** Any packet may be the awaited one. */
  get neededAt(): number {
    return this.#taps.size > 0 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }

  /** Adds a tap; returns an idempotent function that removes it. */
  add(tap: StreamTap, tracks: readonly Track[]): () => void {
    this.#taps.add(tap);
    if (tracks.length > 0) forEachGuarded([tap], (added) => added.onTracks(tracks), this.#onPacketFault);
    return () => this.#taps.delete(tap);
  }

  setTracks(tracks: readonly Track[]): void {
    if (this.#taps.size > 0) forEachGuarded(this.#taps, (tap) => tap.onTracks(tracks), this.#onPacketFault);
  }

  push(packet: Packet): void {
    if (this.#taps.size > 0) forEachGiven(this.#taps, packet, give, this.#onPacketFault);
  }

  end(reason: CloseReason): void {
    const taps = [...this.#taps];
    this.#taps.clear();
    forEachGuarded(taps, (tap) => tap.onEnd(reason), this.#onPacketFault);
  }

  #fail(tap: StreamTap, error: unknown): void {
    this.#taps.delete(tap);
    this.#logger.error({ err: error }, 'a consumer of the stream failed and was removed');
  }
}

function give(tap: StreamTap, packet: Packet): void {
  tap.onPacket(packet);
}
