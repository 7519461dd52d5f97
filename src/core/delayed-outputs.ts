import type { Packet } from '../media/packet.ts';
import { rescale } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { DelayBuffer } from './delay-buffer.ts';
import type { CloseReason } from './ingest.ts';
import type { InheritedOutputs } from './inherited-outputs.ts';
import type { OutboundStream } from './outbound-stream.ts';
import type { LeftOutProfile, Outputs } from './stream-outputs.ts';
import type { Urgency } from './urgency.ts';

/** After these ends the delayed rest is discarded; after all others it is still released, so that recordings are complete. */
const UNSEEN: readonly CloseReason['code'][] = ['deleted', 'denied', 'no-room'];

/**
 * Outputs of a stream that get everything `delayMs` after its arrival (`Publishers/DelayBufferTimeMs`). The wall clock of the media remains
 * that of the arrival.
 */
export class DelayedOutputs implements Outputs {
  readonly #outputs: Outputs;
  readonly #buffer: DelayBuffer;
  /** The last packet released; null: none yet. */
  #released: Packet | null = null;

  /** `onFault`: the outputs threw while no packet came. */
  constructor(
    outputs: Outputs,
    options: { readonly delayMs: number; readonly clock: Clock; readonly logger: Logger; readonly onFault: (error: unknown) => void },
  ) {
    this.#outputs = outputs;
    this.#buffer = new DelayBuffer({
      ...options,
      onPacket: (packet, arrivedAt) => {
        this.#released = packet;
        outputs.push(packet, arrivedAt);
      },
      onReleased: () => outputs.drain(),
    });
  }

  get streams(): readonly OutboundStream[] {
    return this.#outputs.streams;
  }

  get leftOut(): readonly LeftOutProfile[] {
    return this.#outputs.leftOut;
  }

  get urgency(): Urgency {
    return this.#outputs.urgency;
  }

  /** The packets that complete parts now are in the buffer already, so no arriving packet is urgent. */
  get neededAt(): number {
    return Number.NEGATIVE_INFINITY;
  }

  get passesVideo(): boolean {
    return this.#outputs.passesVideo;
  }

  setTracks(tracks: readonly Track[], complete: boolean): void {
    this.#buffer.defer(() => this.#outputs.setTracks(tracks, complete));
  }

  renewPlaylists(): void {
    this.#buffer.defer(() => this.#outputs.renewPlaylists());
  }

  push(packet: Packet): void {
    this.#buffer.push(packet);
  }

  /** Bypasses the delay, with the time of the packets that viewers get now. */
  pushAhead(packet: Packet): void {
    const released = this.#released;
    if (released === null) {
      this.push(packet);
      return;
    }
    const dts = rescale(released.dts, released.track.timebase, packet.track.timebase);
    this.#outputs.pushAhead({ ...packet, pts: packet.pts - packet.dts + dts, dts });
    this.#outputs.drain();
  }

  /** Nothing to do: the outputs are drained at the end of their own turns. */
  drain(): void {}

  settle(reason: CloseReason, done: () => void): boolean {
    return !UNSEEN.includes(reason.code) && this.#buffer.settle(done);
  }

  release(): InheritedOutputs {
    this.#buffer.flush();
    this.#buffer.close();
    return this.#outputs.release();
  }

  close(reason: CloseReason): void {
    try {
      if (!UNSEEN.includes(reason.code)) this.#buffer.flush();
    } finally {
      this.#buffer.close();
      this.#outputs.close(reason);
    }
  }
}
