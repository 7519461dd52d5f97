/** H.264 and H.265 of a transport stream: Annex B access units → 4-byte lengths and a configuration record. */
import { H264NalType, h264NalType } from '../../codecs/h264/nal-type.ts';
import { parseH264Sps } from '../../codecs/h264/sps.ts';
import { H265NalType, h265NalType } from '../../codecs/h265/nal-type.ts';
import { annexbToLengthPrefixed, type NalFilter } from '../../codecs/nal/convert.ts';
import { parameterSetsOf, updateConfig } from '../../codecs/parameter-sets.ts';
import { VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { UnitReader, UnitSink } from './elementary-unit.ts';
import { frameBounds } from './frame-bounds.ts';
import type { PesPacket } from './ts-demuxer.ts';

/** Limit of bytes of a frame from several PES packets. */
const MAX_FRAME = 4_194_304;
const MAX_PIECES = 4096;
/** Distance of frames in one PES packet while their rate is unknown, 90 kHz: that of 25 frames per second. */
const USUAL_STEP = 3600;

/** A frame whose end has not arrived. */
interface OpenFrame {
  pts: number | null;
  dts: number | null;
  readonly parts: Uint8Array[];
  bytes: number;
  hasSlices: boolean;
}

/**
 * Passes on each PES packet as one access unit, as nearly all multiplexers write them. The first smaller packet (one NAL unit, a slice, the
 * second field without a time) shows a multiplexer that splits frames: from then on units are assembled, and each leaves when the next
 * begins. Packets with several frames are split.
 */
export class VideoUnits implements UnitReader {
  config: Uint8Array | null = null;
  readonly #codec: VideoCodec;
  readonly #keep: NalFilter;
  #lastDts: number | null = null;
  /** The frame that is being assembled from pieces. */
  #open: OpenFrame | null = null;
  #inPieces = false;
  /** Two fields in one packet are one frame of the container. */
  #fields = false;
  /** Frames of the previous packet. */
  #before = { dts: 0, frames: 0 };

  constructor(codec: VideoCodec) {
    this.#codec = codec;
    this.#keep = codec === VideoCodec.H264 ? keepsH264 : keepsH265;
  }

  read(packet: PesPacket, sink: UnitSink): void {
    const data = annexbToLengthPrefixed(packet.data, this.#keep);
    // Drops a frame with a missing part.
    if (packet.discontinuity) this.#open = null;
    // A delimiter alone shares the time of the following data.
    if (data.length === 0 && packet.dts === null) return;
    const bounds = frameBounds(this.#codec, data);
    const { dts, pts } = packet;
    const whole = bounds.hasSlices && !bounds.isTail && dts !== null;
    // A packet without a time cannot be shown, unless it continues a frame.
    if (!whole && (dts !== null || this.#lastDts !== null)) this.#inPieces = true;
    if (this.#inPieces) this.#join(data, { pts, dts, whole, hasSlices: bounds.hasSlices }, sink);
    else if (dts !== null) this.#cut(data, { pts: pts ?? dts, dts, further: bounds.further }, sink);
  }

  end(sink: UnitSink): void {
    this.#close(sink);
  }

  #join(
    data: Uint8Array,
    { pts, dts, whole, hasSlices }: { pts: number | null; dts: number | null; whole: boolean; hasSlices: boolean },
    sink: UnitSink,
  ): void {
    const begins = whole || (!hasSlices && dts !== null);
    if (begins && this.#open?.hasSlices === true) this.#close(sink);
    if (this.#open === null && !begins) return;
    this.#open ??= { pts: null, dts: null, parts: [], bytes: 0, hasSlices: false };
    const open = this.#open;
    open.pts ??= pts;
    open.dts ??= dts;
    open.parts.push(data);
    open.bytes += data.length;
    open.hasSlices ||= hasSlices;
    if (dts !== null) this.#lastDts = dts;
    if (open.bytes <= MAX_FRAME && open.parts.length <= MAX_PIECES) return;
    this.#open = null;
    throw new ProtocolError('TS_VIDEO', `frame of more than ${MAX_FRAME} bytes or ${MAX_PIECES} pieces`, 0);
  }

  #close(sink: UnitSink): void {
    const open = this.#open;
    this.#open = null;
    if (open === null || open.dts === null || open.bytes === 0) return;
    const data = new Uint8Array(open.bytes);
    let at = 0;
    for (const part of open.parts) {
      data.set(part, at);
      at += part.length;
    }
    this.#learn(data);
    sink({ pts: open.pts ?? open.dts, dts: open.dts, data });
  }

  /** Frames after the first one of a packet have no times: they follow at the rate of the previous packet. */
  #cut(data: Uint8Array, { pts, dts, further }: { pts: number; dts: number; further: readonly number[] }, sink: UnitSink): void {
    this.#learn(data);
    const cuts = this.#fields ? [] : further;
    const { frames } = this.#before;
    const step = frames > 0 && dts > this.#before.dts ? (dts - this.#before.dts) / frames : USUAL_STEP;
    this.#before = { dts, frames: cuts.length + 1 };
    this.#lastDts = dts;
    let from = 0;
    for (let index = 0; index <= cuts.length; index += 1) {
      const to = cuts[index] ?? data.length;
      const delay = Math.round(index * step);
      sink({ pts: pts + delay, dts: dts + delay, data: cuts.length === 0 ? data : data.slice(from, to) });
      from = to;
    }
  }

  #learn(data: Uint8Array): void {
    const sets = parameterSetsOf(this.#codec, data);
    if (sets === null) return;
    this.config = updateConfig(this.#codec, this.config, sets) ?? this.config;
    const [sps] = sets.sps;
    if (sps !== undefined && this.#codec === VideoCodec.H264) this.#fields = !parseH264Sps(sps).frameMbsOnly;
  }
}

/** Delimiters and fillers are not allowed in a stream with lengths. */
function keepsH264(firstByte: number): boolean {
  const type = h264NalType(firstByte);
  return type !== H264NalType.AUD && type !== H264NalType.FILLER;
}

function keepsH265(firstByte: number): boolean {
  const type = h265NalType(firstByte);
  return type !== H265NalType.AUD && type !== H265NalType.FILLER;
}
