/** One track of a stream, packetised once and handed to the fanout. */
import { VideoCodec } from '../../../media/codec.ts';
import type { Packet } from '../../../media/packet.ts';
import { rescale } from '../../../media/timebase.ts';
import { messageOf } from '../../../util/message-of.ts';
import { Av1Packetizer } from '../../../wire/rtp/av1-packetizer.ts';
import { NalPacketizer } from '../../../wire/rtp/nal-packetizer.ts';
import type { Payloads } from '../../../wire/rtp/packetizer.ts';
import { OpusPacketizer, Vp8Packetizer } from '../../../wire/rtp/plain-packetizer.ts';
import type { Fanout } from '../transport/fanout/fanout.ts';
import { playClockRate, type WebrtcTrack } from './codec-plan.ts';
import { ParameterSetUnits } from './parameter-set-units.ts';
import { SequenceHeaderUnit } from './sequence-header-unit.ts';

/** Leaves room for headers, extensions, protection and tunnels below an MTU of 1500. */
const PAYLOAD_BUDGET = 1160;
const TIMESTAMPS = 2 ** 32;

/** The fanout is shared; the source opened in it belongs to this track. */
export interface MediaSourceOptions {
  readonly fanout: Fanout;
  readonly track: WebrtcTrack;
  /** Wall clock at media time 0. */
  readonly epochMs: number;
  /** Video gets error correction for viewers that take it. */
  readonly fec: boolean;
  /** Called with the first frame that cannot be sent, and why. */
  readonly onRefused: (reason: string) => void;
}

/** Made and closed by its stream; afterwards its viewers get nothing more. */
export class MediaSource {
  /** Number of the source in the fanout. */
  readonly id: number;
  readonly #fanout: Fanout;
  readonly #clockRate: number;
  readonly #packetize: (packet: Packet) => Payloads;
  readonly #onRefused: (reason: string) => void;
  #track: WebrtcTrack;
  #refused = 0;

  constructor({ fanout, track, epochMs, fec, onRefused }: MediaSourceOptions) {
    this.#fanout = fanout;
    this.#track = track;
    this.#onRefused = onRefused;
    this.#clockRate = playClockRate(track);
    this.#packetize = packetizerOf(track);
    this.id = fanout.openSource({ clockRate: this.#clockRate, epochMs, fec: fec && track.type === 'video' });
  }

  get track(): WebrtcTrack {
    return this.#track;
  }

  /** Frames that could not be sent: malformed, or an audio frame larger than a packet. */
  get refused(): number {
    return this.#refused;
  }

  /** New parameters of the same track. */
  update(track: WebrtcTrack): void {
    this.#track = track;
  }

  push(packet: Packet): void {
    let payloads: Payloads;
    try {
      payloads = this.#packetize(packet);
    } catch (error) {
      this.#refuse(messageOf(error));
      return;
    }
    if (payloads.sizes.length === 0) {
      if (this.#track.type === 'audio' && packet.data.length > 0)
        this.#refuse(`a frame of ${packet.data.length} bytes does not fit a packet`);
      return;
    }
    const ticks = rescale(packet.pts, packet.track.timebase, { num: 1, den: this.#clockRate });
    const sent = this.#fanout.push(this.id, {
      timestamp: ((ticks % TIMESTAMPS) + TIMESTAMPS) % TIMESTAMPS,
      keyframe: packet.keyframe,
      marker: this.#track.type === 'video',
      payloads: payloads.bytes,
      sizes: payloads.sizes,
    });
    if (!sent) this.#refuse('a packet of the frame is too large');
  }

  close(): void {
    this.#fanout.closeSource(this.id);
  }

  #refuse(reason: string): void {
    this.#refused += 1;
    if (this.#refused === 1) this.#onRefused(reason);
  }
}

function packetizerOf(track: WebrtcTrack): (packet: Packet) => Payloads {
  if (track.type === 'audio') {
    const opus = new OpusPacketizer(PAYLOAD_BUDGET);
    return (packet) => opus.packetize(packet.data);
  }
  if (track.codec === VideoCodec.VP8) {
    const vp8 = new Vp8Packetizer(PAYLOAD_BUDGET);
    return (packet) => vp8.packetize(packet.data);
  }
  if (track.codec === VideoCodec.AV1) {
    const av1 = new Av1Packetizer(PAYLOAD_BUDGET);
    const header = new SequenceHeaderUnit();
    return (packet) => av1.packetize(packet.data, packet.keyframe, packet.keyframe ? header.missingIn(packet) : null);
  }
  const nal = new NalPacketizer(track.codec === VideoCodec.H265 ? 'H265' : 'H264', PAYLOAD_BUDGET);
  const sets = new ParameterSetUnits();
  return (packet) => nal.packetize(packet.data, packet.keyframe ? sets.missingIn(packet) : null);
}
