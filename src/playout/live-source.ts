/** Items that are live streams of this server, tapped at their router. */
import type { CloseReason } from '../core/ingest.ts';
import type { StreamAddress } from '../core/stream-address.ts';
import { streamOfUrl, streamText } from '../core/stream-address.ts';
import type { StreamLineage } from '../core/stream-lineage.ts';
import { sideDataOf } from '../core/stream-side-data.ts';
import type { StreamTap } from '../core/stream-taps.ts';
import type { Packet } from '../media/packet.ts';
import { ItemSideData } from './item-side-data.ts';
import type { ItemSource } from './item-source.ts';
import type { FileEvent } from './media-file.ts';
import { isOfSource, sourceTrackOf } from './source-track.ts';

/** Packets that come within one turn: they are taken before the next. */
const MAX_WAITING = 5000;

/** A stream that can be tapped. */
export interface TappedStream {
  tap(tap: StreamTap): () => void;
}

/** The live items of all channels of a server. */
export class LiveStreams {
  readonly #find: (address: StreamAddress) => TappedStream | undefined;
  readonly #lineage: StreamLineage;

  /** `find` looks for an inbound stream that runs; `lineage` is that of the server. */
  constructor(find: (address: StreamAddress) => TappedStream | undefined, lineage: StreamLineage) {
    this.#find = find;
    this.#lineage = lineage;
  }

  /** Throws if there is no such stream, or if it is made of `channel`, directly or not. */
  open(url: string, channel: StreamAddress): ItemSource {
    const address = streamOfUrl(url);
    if (address === null) throw new Error(`${JSON.stringify(url)} is not stream://<virtual host>/<application>/<stream>`);
    const loop = this.#lineage.loopOf(channel, address);
    if (loop !== null) throw new Error(loop);
    const stream = this.#find(address);
    if (stream === undefined) throw new Error(`there is no stream ${streamText(address)}`);
    return new LiveSource(stream, this.#lineage.add(channel, address));
  }
}

/** Returns the packets from the next keyframe on. */
class LiveSource implements ItemSource {
  readonly live = true;
  readonly start = 0;
  readonly sideData = new ItemSideData();
  readonly #events: FileEvent[] = [];
  readonly #end: () => void;
  readonly #forget: () => void;
  #waiter: PromiseWithResolvers<FileEvent | null> | null = null;
  #fault: Error | null = null;
  #closed = false;

  constructor(stream: TappedStream, forget: () => void) {
    this.#forget = forget;
    this.#end = stream.tap({
      onTracks: (tracks) => this.#take({ type: 'tracks', tracks: tracks.filter(isOfSource).map(sourceTrackOf) }),
      onPacket: (packet) => this.#takePacket(packet),
      onEnd: (reason) => this.#fail(reason),
    });
  }

  async next(): Promise<FileEvent | null> {
    const event = this.#events.shift();
    if (event !== undefined) return event;
    if (this.#fault !== null) throw this.#fault;
    if (this.#closed) return null;
    this.#waiter = Promise.withResolvers<FileEvent | null>();
    return await this.#waiter.promise;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#end();
    this.#forget();
    this.#waiter?.resolve(null);
    this.#waiter = null;
  }

  #takePacket(packet: Packet): void {
    if (packet.event === undefined) {
      this.#take(eventOf(packet));
      return;
    }
    const data = sideDataOf(packet);
    if (data !== null) this.sideData.add(data);
  }

  #take(event: FileEvent): void {
    const waiter = this.#waiter;
    if (waiter !== null) {
      this.#waiter = null;
      waiter.resolve(event);
      return;
    }
    this.#events.push(event);
    if (this.#events.length <= MAX_WAITING) return;
    this.#end();
    this.#events.length = 0;
    this.#fault = new Error('its packets come faster than they can be processed');
  }

  #fail({ detail }: CloseReason): void {
    this.#fault = new Error(`the stream ended: ${detail}`);
    this.#waiter?.reject(this.#fault);
    this.#waiter = null;
  }
}

function eventOf({ track, pts, dts, duration, keyframe, data }: Packet): FileEvent {
  return { type: 'packet', packet: { trackId: track.id, pts, dts, keyframe, data }, timebase: track.timebase, duration };
}
