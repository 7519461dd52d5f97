/** One edge that plays one stream. */
import { randomUUID } from 'node:crypto';
import { KeyframeGate } from '../../media/keyframe-gate.ts';
import type { Packet } from '../../media/packet.ts';
import type { SegmentMark } from '../../media/segment-mark.ts';
import type { Track } from '../../media/track.ts';
import type { PlacedMark } from '../../wire/ovt/mark.ts';

/** Unsent bytes of a connection: seconds of a large stream. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** An edge that has been behind for this time, ms, is disconnected. */
const MAX_STALL_MS = 10_000;

/** A connection, as seen by its sessions, of which it may have several. */
export interface OvtLink {
  /** Unsent bytes. */
  readonly waiting: number;
  /** Sends bytes; all bytes of one turn are sent together. */
  send(bytes: Buffer): void;
  /** Announces the start of a segment. */
  tellMark(mark: PlacedMark): void;
  /** The stream that `session` plays has ended. */
  streamEnded(session: OvtSession, detail: string): void;
  /** Closes the connection. */
  cut(detail: string): void;
}

/** Sends from the next packet on, even without a keyframe: an edge must soon see that the stream is alive. */
export class OvtSession {
  /** Names the session in the API. */
  readonly id = randomUUID();
  /** Packets dropped because the edge was behind. */
  dropped = 0;
  bytes = 0;
  readonly #link: OvtLink;
  readonly #now: () => number;
  /** Ids of the tracks in the edge's description. */
  readonly #told: ReadonlySet<number>;
  readonly #events: boolean;
  /** The edge gets marks of segments. */
  readonly marked: boolean;
  readonly #gate: KeyframeGate;
  /** Since when the edge is behind; null if it is not. */
  #stalledSince: number | null = null;

  /** `tracks`: the tracks in the edge's description. `events`: it accepts events on data tracks. `now`: monotonic, ms. */
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

  /** Sends `packet` as `bytes`; false if it was dropped. */
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

  /** Announces the start of a segment, before its first packet. */
  mark(mark: SegmentMark, { track, dts }: Packet): void {
    if (this.#told.has(track.id)) this.#link.tellMark({ trackId: track.id, dts, mark });
  }

  /** The stream has ended for this edge, which may request it again. */
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
