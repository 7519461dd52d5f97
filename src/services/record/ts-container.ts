/** A recording as MPEG-TS, which needs no finishing. */
import { canCarry } from '../../containers/mpegts/stream-type.ts';
import { TsBuffer } from '../../containers/mpegts/ts-buffer.ts';
import { TsMuxer } from '../../containers/mpegts/ts-muxer.ts';
import type { Packet } from '../../media/packet.ts';
import { MPEG_90K, rescale } from '../../media/timebase.ts';
import type { Track } from '../../media/track.ts';
import { MAX_HELD_BACK, type RecordContainer } from './record-container.ts';

/** Tables are repeated with keyframes, and at least this often, 90 kHz. */
const TABLES_INTERVAL = 45_000;
/** Bytes gathered before they are written, at most: more writes cost more than more memory. */
const MAX_GATHERED = 256 * 1024;

export { canCarry as tsCanCarry };

/** Writes within `push` and `flush`, tables again and again. Opens no file and needs no closing. */
export class TsContainer implements RecordContainer {
  readonly #muxer: TsMuxer;
  readonly #buffer = new TsBuffer();
  readonly #write: (chunks: readonly Uint8Array[]) => void;
  #tablesAt = Number.NEGATIVE_INFINITY;
  /** Decode time of the first held packet, 90 kHz; NaN for none. The very first is written at once. */
  #since = Number.NEGATIVE_INFINITY;

  /** `first`: the packet the file begins with; it gets the time `startAt` (90 kHz). Throws `ProtocolError` for a broken configuration. */
  constructor(options: { tracks: readonly Track[]; first: Packet; startAt: number; write: (chunks: readonly Uint8Array[]) => void }) {
    this.#muxer = new TsMuxer(options.tracks);
    this.#write = options.write;
    this.#muxer.origin = rescale(options.first.pts, options.first.track.timebase, MPEG_90K) - options.startAt;
  }

  get pending(): number {
    return this.#buffer.length;
  }

  push(packet: Packet): void {
    const dts = rescale(packet.dts, packet.track.timebase, MPEG_90K);
    if (dts - this.#tablesAt >= TABLES_INTERVAL || (packet.keyframe && packet.track.type === 'video')) {
      this.#muxer.writeTables(this.#buffer);
      this.#tablesAt = dts;
    }
    this.#muxer.writePacket(packet, this.#buffer);
    if (Number.isNaN(this.#since)) this.#since = dts;
    // One more packet of this kind would exceed the limit, so the present ones are written.
    const grown = dts + rescale(2 * packet.duration, packet.track.timebase, MPEG_90K) - this.#since;
    if (this.#buffer.length >= MAX_GATHERED || grown > MAX_HELD_BACK) this.flush();
  }

  flush(): void {
    if (this.#buffer.length === 0) return;
    this.#write([this.#buffer.view()]);
    this.#buffer.reset();
    this.#since = Number.NaN;
  }
}
