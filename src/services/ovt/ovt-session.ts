/** One edge that plays one stream. */
import { randomUUID } from 'node:crypto';
import { KeyframeGate } from '../../media/keyframe-gate.ts';
import type { Packet } from '../../media/packet.ts';
import type { SegmentMark } from '../../media/segment-mark.ts';
import type { Track } from '../../media/track.ts';
import type { PlacedMark } from '../../wire/ovt/mark.ts';

/** Bytes that may wait in a connection: seconds of a large stream. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** An edge that has not kept up for so long, ms, is sent away. */
const MAX_STALL_MS = 10_000;

/** A connection as its sessions see it; it may carry several. */
export interface OvtLink {
  /** Bytes not yet taken by the network. */
  readonly waiting: number;
  /** Sends bytes; what is sent in one turn leaves together. */
  send(bytes: Buffer): void;
  /** Tells where a segment begins. */
  tellMark(mark: PlacedMark): void;
  /** The stream that `session` plays has ended. */
  streamEnded(session: OvtSession, detail: string): void;
  /** Gives the edge up. */
  cut(detail: string): void;
}

/** Sends from the next packet on, keyframe or not: an edge must see soon that the stream is alive. */
export class OvtSession {
  /** Names the session in the API. */
  readonly id = randomUUID();
  /** Packets left out because the edge did not keep up. */
  dropped = 0;
  bytes = 0;
  readonly #link: OvtLink;
  readonly #now: () => number;
  /** Ids of the tracks that the edge knows of. */
  readonly #told: ReadonlySet<number>;
  readonly #events: boolean;
  /** The edge is told where segments begin. */
  readonly marked: boolean;
  readonly #gate: KeyframeGate;
  /** Since when the edge has not kept up; null when it does. */
  #stalledSince: number | null = null;

  /** `tracks`: those that the edge is told of. `events`: it takes what is on data tracks. `now`: monotonic, ms. */
  constructor(options: {
    readonly link: OvtLink;
    readonly tracks: readonly Track[];
    readonly events: boolean;
    readonly marked: boolean;
    readonly now: () => number;
  }) {
    this.#link = options.link;
    this.#now = options.now;
    this.#events = options.events;
    this.marked = options.marked;
    this.#told = new Set(options.tracks.map(({ id }) => id));
    this.#gate = new KeyframeGate(options.tracks);
  }

  /** Sends `packet` as `bytes`; false when it was left out. */
  send(packet: Packet, bytes: Buffer): boolean {
    if (!this.#told.has(packet.track.id) || (packet.track.type === 'data' && !this.#events)) return false;
    if (this.#link.waiting > MAX_WAITING_BYTES) {
      this.#stall();
      return false;
    }
    this.#stalledSince = null;
    if (!this.#gate.passes(packet)) {
      this.dropped += 1;
      return false;
    }
    this.#link.send(bytes);
    this.bytes += bytes.length;
    return true;
  }

  /** Tells where a segment begins, before the packet that it begins with. */
  mark(mark: SegmentMark, { track, dts }: Packet): void {
    if (this.#told.has(track.id)) this.#link.tellMark({ trackId: track.id, dts, mark });
  }

  /** The stream is over for this edge, which may ask for it anew. */
  end(detail: string): void {
    this.#link.streamEnded(this, detail);
  }

  #stall(): void {
    this.dropped += 1;
    this.#gate.shut();
    const now = this.#now();
    this.#stalledSince ??= now;
    if (now - this.#stalledSince > MAX_STALL_MS) this.#link.cut(`the edge took nothing for ${MAX_STALL_MS} ms`);
  }
}
