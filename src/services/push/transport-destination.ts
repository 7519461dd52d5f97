/** Sends a transport stream over any payload link. */
import { type PayloadSink, TransportOutput } from '../../containers/mpegts/transport-output.ts';
import type { Packet } from '../../media/packet.ts';
import { MPEG_90K, rescale } from '../../media/timebase.ts';
import type { Destination, DestinationOptions } from './destination.ts';
import type { LinkEvents, PayloadLink } from './payload-link.ts';
import { PushFailure } from './push-failure.ts';

export class TransportDestination implements Destination, PayloadSink {
  sentBytes = 0;
  readonly #output: TransportOutput;
  readonly #link: PayloadLink;
  readonly #deadline: NodeJS.Timeout;
  /** Decoding time of the first packet, 90 kHz: the receiver's 0. */
  #base: number | null = null;

  /** Begins to connect. `open` throws `PushFailure` for a request that can never work. */
  constructor({ tracks, timeouts, events }: DestinationOptions, open: (events: LinkEvents) => PayloadLink) {
    this.#output = new TransportOutput(tracks, this);
    this.#link = open({
      onOpen: () => {
        clearTimeout(this.#deadline);
        events.onOpen();
      },
      onWritable: () => events.onWritable(),
      onFailed: (failure) => {
        clearTimeout(this.#deadline);
        events.onFailed(failure);
      },
    });
    this.#deadline = setTimeout(() => {
      this.#link.fail(new PushFailure('timeout', `the receiver did not answer within ${timeouts.connection} ms`));
    }, timeouts.connection);
  }

  get dropped(): number {
    return this.#link.dropped;
  }

  write(packet: Packet): boolean {
    const time = rescale(packet.dts, packet.track.timebase, MPEG_90K);
    if (this.#base === null) {
      this.#base = time;
      this.#output.beginAt(time);
    }
    // Audio from before the first frame.
    if (time < this.#base) return this.#link.writable;
    this.#output.push(packet);
    return this.#link.writable;
  }

  flush(): void {
    this.#output.flush();
    this.#link.flush();
  }

  close(): Promise<void> {
    clearTimeout(this.#deadline);
    return this.#link.close();
  }

  onPayload(payload: Uint8Array): void {
    if (this.#link.send(payload)) this.sentBytes += payload.length;
  }

  onEntryPoint(): void {
    this.#link.onEntryPoint();
  }
}
