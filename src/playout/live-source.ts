/** Items that are live streams of this server, tapped where they come in. */
import type { CloseReason } from '../core/ingest.ts';
import type { StreamAddress } from '../core/stream-address.ts';
import { streamKey, streamText } from '../core/stream-address.ts';
import type { StreamTap } from '../core/stream-taps.ts';
import type { Packet } from '../media/packet.ts';
import type { ItemSource } from './item-source.ts';
import type { FileEvent } from './media-file.ts';
import { isOfSource, sourceTrackOf } from './source-track.ts';

const SCHEME = 'stream://';
/** Packets that come within one turn: they are taken before the next. */
const MAX_WAITING = 5000;

/** What can be tapped: an inbound stream. */
export interface TappedStream {
  tap(tap: StreamTap): () => void;
}

/** The live items of all channels of a server: it knows who plays whom, so that no channel plays itself. */
export class LiveStreams {
  readonly #find: (address: StreamAddress) => TappedStream | undefined;
  /** What each channel taps, by `streamKey`; a channel may tap a stream twice, for what is on air and what is cued. */
  readonly #tapped = new Map<string, string[]>();

  /** `find` looks for an inbound stream that runs. */
  constructor(find: (address: StreamAddress) => TappedStream | undefined) {
    this.#find = find;
  }

  /** Throws when there is no such stream, or when it is made of `channel`. */
  open(url: string, channel: StreamAddress): ItemSource {
    const address = addressOf(url);
    const target = streamKey(address);
    const owner = streamKey(channel);
    if (this.#leads(target, owner)) throw new Error(`${streamText(address)} plays this very channel`);
    const stream = this.#find(address);
    if (stream === undefined) throw new Error(`there is no stream ${streamText(address)}`);
    this.#tapped.set(owner, [...(this.#tapped.get(owner) ?? []), target]);
    return new LiveSource(stream, () => this.#forget(owner, target));
  }

  #leads(from: string, to: string, seen = new Set<string>()): boolean {
    if (from === to) return true;
    if (seen.has(from)) return false;
    seen.add(from);
    return (this.#tapped.get(from) ?? []).some((next) => this.#leads(next, to, seen));
  }

  #forget(owner: string, target: string): void {
    const rest = this.#tapped.get(owner) ?? [];
    rest.splice(rest.indexOf(target), 1);
    if (rest.length === 0) this.#tapped.delete(owner);
  }
}

/** Hands out what comes from the next keyframe on. */
class LiveSource implements ItemSource {
  readonly live = true;
  readonly start = 0;
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
      onPacket: (packet) => this.#take(eventOf(packet)),
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
    this.#fault = new Error('its packets come faster than they can be taken');
  }

  #fail({ detail }: CloseReason): void {
    this.#fault = new Error(`the stream ended: ${detail}`);
    this.#waiter?.reject(this.#fault);
    this.#waiter = null;
  }
}

function addressOf(url: string): StreamAddress {
  const [vhost = '', app = '', stream = '', ...rest] = url.slice(SCHEME.length).split('/');
  if (!url.startsWith(SCHEME) || vhost === '' || app === '' || stream === '' || rest.length > 0) {
    throw new Error(`${JSON.stringify(url)} is not ${SCHEME}<virtual host>/<application>/<stream>`);
  }
  return { vhost, app, stream };
}

function eventOf({ track, pts, dts, duration, keyframe, data }: Packet): FileEvent {
  return { type: 'packet', packet: { trackId: track.id, pts, dts, keyframe, data }, timebase: track.timebase, duration };
}
