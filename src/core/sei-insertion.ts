/** SEI of events on its way into the frames of an outbound stream. */
import { buildSeiUnit, carriesSei, insertBeforeSlices, SEI_USER_DATA_UNREGISTERED } from '../codecs/nal/sei-writer.ts';
import type { VideoCodec } from '../media/codec.ts';
import type { Packet } from '../media/packet.ts';
import { toMilliseconds } from '../media/timebase.ts';
import { isVideoTrack, type Track } from '../media/track.ts';
import { ProtocolError } from '../util/protocol-error.ts';

/** Limit of messages that wait for a frame of one track; the oldest are dropped. */
const MAX_WAITING = 32;

interface WaitingSei {
  /** Time of the event, ms: earlier frames do not get its message. */
  readonly from: number;
  readonly keyframeOnly: boolean;
  readonly payload: Uint8Array;
}

/** Does nothing while there are no such events. */
export class SeiInsertion {
  /** By track. */
  readonly #waiting = new Map<number, WaitingSei[]>();

  /** Number of tracks with waiting messages. */
  get size(): number {
    return this.#waiting.size;
  }

  /** The event goes into the next frame of each of the H.264 and H.265 tracks. */
  add(event: Packet, tracks: readonly Track[]): void {
    const entry = {
      from: toMilliseconds(event.pts, event.track.timebase),
      keyframeOnly: event.event?.keyframeOnly === true,
      payload: event.data,
    };
    for (const track of tracks) {
      if (!isVideoTrack(track) || !carriesSei(track.codec)) continue;
      const waiting = this.#waiting.get(track.id) ?? [];
      this.#waiting.set(track.id, waiting);
      waiting.push(entry);
      if (waiting.length > MAX_WAITING) waiting.shift();
    }
  }

  /** The packet with the waiting SEI messages inserted; most packets are returned unchanged. */
  apply(packet: Packet): Packet {
    const { track } = packet;
    const waiting = this.#waiting.get(track.id);
    if (waiting === undefined || track.type !== 'video') return packet;
    const due = this.#take(packet, waiting);
    if (due.length === 0) return packet;
    try {
      return { ...packet, data: insertBeforeSlices(track.codec, packet.data, unitsOf(track.codec, due)) };
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return packet;
    }
  }

  #take(packet: Packet, waiting: readonly WaitingSei[]): WaitingSei[] {
    const end = toMilliseconds(packet.dts + packet.duration, packet.track.timebase);
    const due = waiting.filter(({ from, keyframeOnly }) => from <= end && (packet.keyframe || !keyframeOnly));
    if (due.length === 0) return due;
    const left = waiting.filter((entry) => !due.includes(entry));
    if (left.length > 0) this.#waiting.set(packet.track.id, left);
    else this.#waiting.delete(packet.track.id);
    return due;
  }
}

function unitsOf(codec: VideoCodec, due: readonly WaitingSei[]): Uint8Array[] {
  return due.map(({ payload }) => buildSeiUnit(codec, SEI_USER_DATA_UNREGISTERED, payload));
}
