/** A transport stream cut into payloads of datagrams: muxed once for all receivers. */

import type { Packet } from '../../media/packet.ts';
import { toMilliseconds } from '../../media/timebase.ts';
import type { Track } from '../../media/track.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { sameElementary } from './elementary.ts';
import { TS_PACKET_LENGTH, TsBuffer } from './ts-buffer.ts';
import { TsMuxer } from './ts-muxer.ts';

/** Payload of one datagram: seven packets, like every SRT program. */
const PAYLOAD_LENGTH = 7 * TS_PACKET_LENGTH;
/** Interval of the tables, ms of media. */
const TABLE_INTERVAL_MS = 500;

/** Receives the payloads. */
export interface PayloadSink {
  /** A payload of 1 to 7 packets that will never change. */
  onPayload(payload: Uint8Array): void;
  /** The following payloads begin with the tables and a keyframe: a viewer may join here. */
  onEntryPoint(): void;
}

/** Serves one playlist. Calls its sink within `push`, `setTracks` or `flush`; it keeps no timer and needs no closing. */
export class TransportOutput {
  /** Packets that could not be muxed because they break their format. */
  brokenPackets = 0;
  readonly #sink: PayloadSink;
  readonly #buffer = new TsBuffer();
  readonly #muxer: TsMuxer;
  #tracks: readonly Track[];
  #tablesAt = Number.NEGATIVE_INFINITY;

  /** Throws `ProtocolError` if a decoder configuration is broken. */
  constructor(tracks: readonly Track[], sink: PayloadSink) {
    this.#tracks = tracks;
    this.#sink = sink;
    this.#muxer = new TsMuxer(tracks);
  }

  /** Output times begin at `origin`, 90 kHz; call it before the first packet. Without it they are those of the stream. */
  beginAt(origin: number): void {
    this.#muxer.origin = origin;
  }

  /** Replaces the tracks; the tables are repeated if decoders need another configuration. */
  setTracks(tracks: readonly Track[]): void {
    const before = this.#tracks;
    this.#tracks = tracks;
    const same =
      before.length === tracks.length &&
      before.every((track, index) => tracks[index]?.id === track.id && sameElementary(track, tracks[index]));
    if (same) return;
    this.flush();
    this.#muxer.setTracks(tracks);
    this.#tablesAt = Number.NEGATIVE_INFINITY;
  }

  /** Takes packets of any track; tracks of other playlists are ignored. */
  push(packet: Packet): void {
    if (!this.#muxer.carries(packet.track.id)) return;
    const time = toMilliseconds(packet.dts, packet.track.timebase);
    const leads = packet.track === this.#lead || packet.track.id === this.#lead?.id;
    const entry = leads && packet.keyframe && (packet.track.type === 'video' || time - this.#tablesAt >= TABLE_INTERVAL_MS);
    if (entry) {
      this.flush();
      this.#sink.onEntryPoint();
    }
    if (entry || Math.abs(time - this.#tablesAt) >= TABLE_INTERVAL_MS) {
      this.#tablesAt = time;
      this.#muxer.writeTables(this.#buffer);
    }
    try {
      this.#muxer.writePacket(packet, this.#buffer);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.brokenPackets += 1;
    }
  }

  /** Passes on all payloads; the last may be short, so that no packet waits for the next frame. */
  flush(): void {
    if (this.#buffer.length === 0) return;
    const bytes = this.#buffer.view().slice();
    this.#buffer.reset();
    for (let at = 0; at < bytes.length; at += PAYLOAD_LENGTH) this.#sink.onPayload(bytes.subarray(at, at + PAYLOAD_LENGTH));
  }

  /** The track whose keyframes are entry points. */
  get #lead(): Track | undefined {
    return this.#tracks.find((track) => track.type === 'video') ?? this.#tracks.find((track) => track.type === 'audio');
  }
}
