/** A recording as MPEG-TS, which needs no finishing. */
import { canCarry } from '../../containers/mpegts/stream-type.ts';
import { TsBuffer } from '../../containers/mpegts/ts-buffer.ts';
import { TsMuxer } from '../../containers/mpegts/ts-muxer.ts';
import type { Packet } from '../../media/packet.ts';
import { MPEG_90K, rescale } from '../../media/timebase.ts';
import type { Track } from '../../media/track.ts';
import type { RecordContainer } from './record-container.ts';

/** Tables are repeated with keyframes, and at least this often, 90 kHz. */
const TABLES_INTERVAL = 45_000;
/** Bytes gathered before they are written, so that small packets do not become small writes. */
const GATHERED = 64 * 1024;
/** Or this much media, 90 kHz: what a `kill -9` can cost. */
const GATHERED_DURATION = 45_000;

export { canCarry as tsCanCarry };

export class TsContainer implements RecordContainer {
  readonly #muxer: TsMuxer;
  readonly #buffer = new TsBuffer();
  readonly #write: (chunks: readonly Uint8Array[]) => void;
  #tablesAt = Number.NEGATIVE_INFINITY;
  #flushedAt = Number.NEGATIVE_INFINITY;

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
    if (this.#buffer.length >= GATHERED || dts - this.#flushedAt >= GATHERED_DURATION) {
      this.#flushedAt = dts;
      this.flush();
    }
  }

  flush(): void {
    if (this.#buffer.length === 0) return;
    this.#write([this.#buffer.view()]);
    this.#buffer.reset();
  }
}
