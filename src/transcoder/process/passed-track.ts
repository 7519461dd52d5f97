/** A track of a file whose packets pass as they are. */

import { configOfAdts, parseAdtsHeader } from '../../codecs/aac/adts.ts';
import { buildConfig, describeAudio, describeVideo, parameterSetsOf } from '../../codecs/describe.ts';
import { annexbToLengthPrefixed } from '../../codecs/nal/convert.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../media/codec.ts';
import { MPEG_90K, rescale, type Timebase, toSeconds } from '../../media/timebase.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { FileTrackMessage } from '../messages.ts';
import type { FilePacket, FileStream } from './engine/demuxer.ts';
import { CODEC_IDS, NO_TIMESTAMP } from './engine/library.ts';
import { type FileTrack, type MadePacketSink, WITHOUT_PRESENTATION_TIMES } from './file-track.ts';

/** Codecs that players support; the server has no publisher for others. */
const VIDEO = [VideoCodec.H264, VideoCodec.H265, VideoCodec.VP8, VideoCodec.VP9, VideoCodec.AV1] as const;
const AUDIO = [AudioCodec.AAC, AudioCodec.OPUS, AudioCodec.MP3] as const;
/** Largest `duration` that a frame on the wire can hold. */
const MAX_DURATION = 0xff_ff_ff_ff;
/** First bytes of an avcC or hvcC, and of an av1C. */
const RECORD = 1;
const AV1_RECORD = 0x81;

interface Passage {
  readonly message: FileTrackMessage;
  /** The bytes of a packet as the server has them; a copy. Throws ProtocolError. */
  readonly layout: (data: Uint8Array) => Uint8Array;
}

const copy = (data: Uint8Array): Uint8Array => new Uint8Array(data);

/** Packets of `stream` as the server has them. */
export class PassedTrack implements FileTrack {
  readonly message: FileTrackMessage;
  readonly #id: number;
  readonly #layout: Passage['layout'];
  readonly #from: Timebase;
  readonly #to: Timebase;
  /** Ticks of the server at which the file begins. */
  readonly #start: number;
  readonly #sink: MadePacketSink;
  /** Duration of packets without one; 0 if unknown. */
  readonly #usual: number;
  readonly #delay: number;
  #last = Number.NEGATIVE_INFINITY;
  #duration = 0;

  private constructor(
    id: number,
    { message, layout }: Passage,
    options: { stream: FileStream; startSeconds: number; sink: MadePacketSink },
  ) {
    const { stream, startSeconds, sink } = options;
    this.message = message;
    this.#id = id;
    this.#layout = layout;
    this.#from = stream.timebase;
    this.#to = message.timebase;
    this.#start = Math.round((startSeconds * this.#to.den) / this.#to.num);
    this.#sink = sink;
    const { framerate, delay } = stream;
    this.#usual = framerate > 0 ? Math.round(this.#to.den / this.#to.num / framerate) : 0;
    this.#delay = this.#usual * delay;
  }

  /** Null if the track has to be encoded: another codec, or an unsupported form of this codec. */
  static open(
    id: number,
    options: { stream: FileStream; container: string; startSeconds: number; sink: MadePacketSink },
  ): PassedTrack | null {
    const { stream, container } = options;
    try {
      const passage = stream.type === 'video' ? videoPassage(id, stream, container) : audioPassage(id, stream);
      return passage === null ? null : new PassedTrack(id, passage, options);
    } catch (error) {
      if (error instanceof ProtocolError) return null;
      throw error;
    }
  }

  async push(packet: FilePacket): Promise<void> {
    const { data, isKeyframe } = packet;
    if (data === null || data.length === 0) return;
    const duration = rescale(Number(packet.duration), this.#from, this.#to);
    const dts = Math.max(this.#decodingTime(packet), this.#last);
    const pts = packet.pts === NO_TIMESTAMP ? dts : this.#ticks(packet.pts);
    // Goes back in time, or is encoder priming before the start.
    const isPriming = this.message.type === 'audio' && dts + duration <= 0;
    if (!Number.isSafeInteger(dts) || !Number.isSafeInteger(pts) || pts < this.#last || isPriming) return;
    const bytes = this.#laidOut(data);
    if (bytes === null) return;
    this.#last = dts;
    this.#duration = Math.min(duration > 0 ? duration : this.#usual, MAX_DURATION);
    const seconds = toSeconds(dts, this.#to);
    this.#sink({ trackId: this.#id, seconds, pts, dts, duration: this.#duration, keyframe: isKeyframe, data: bytes });
  }

  async finish(): Promise<void> {}

  restart(): void {
    this.#last = Number.NEGATIVE_INFINITY;
  }

  close(): void {}

  #decodingTime({ pts, dts }: FilePacket): number {
    if (dts !== NO_TIMESTAMP) return this.#ticks(dts);
    if (Number.isFinite(this.#last)) return this.#last + this.#duration;
    // The first frames have no earlier decoding time: it precedes their presentation by the reordering delay.
    return pts === NO_TIMESTAMP ? 0 : this.#ticks(pts) - this.#delay;
  }

  /** Null for damaged data. */
  #laidOut(data: Uint8Array): Uint8Array | null {
    try {
      return this.#layout(data);
    } catch (error) {
      if (error instanceof ProtocolError) return null;
      throw error;
    }
  }

  #ticks(time: bigint): number {
    return rescale(Number(time), this.#from, this.#to) - this.#start;
  }
}

/** Times of the server's tracks are counted in whole parts of a second. */
function timebaseOf({ timebase }: FileStream): Timebase {
  return timebase.num === 1 ? timebase : MPEG_90K;
}

function base(id: number, stream: FileStream) {
  const { bitrate, language } = stream;
  return { id, timebase: timebaseOf(stream), bitrateConf: bitrate, ...(language !== '' && language !== 'und' && { language }) };
}

function videoPassage(id: number, stream: FileStream, container: string): Passage | null {
  const codec = VIDEO.find((known) => (CODEC_IDS[known] as number) === stream.codecId);
  if (codec === undefined) return null;
  const { extradata, first, width, height, framerate } = stream;
  const common = { ...base(id, stream), type: 'video', codec, width, height, framerateConf: framerate } as const;
  if (codec === VideoCodec.VP8) return { message: { ...common, format: BitstreamFormat.RAW, config: null }, layout: copy };
  if (codec === VideoCodec.VP9) {
    // Depending on its writer the file's codec data is a vpcC or not.
    const sets = first === null ? null : parameterSetsOf(codec, first);
    const config = sets === null ? null : base64(buildConfig(codec, sets));
    return { message: { ...common, format: BitstreamFormat.RAW, config }, layout: copy };
  }
  if (extradata === null) return null;
  if (codec === VideoCodec.AV1) {
    if (extradata[0] !== AV1_RECORD) return null;
    describeVideo(codec, extradata);
    return { message: { ...common, format: BitstreamFormat.OBU, config: base64(extradata) }, layout: copy };
  }
  const annexb = extradata[0] !== RECORD;
  const config = annexb
    ? buildConfig(codec, parameterSetsOf(codec, annexbToLengthPrefixed(extradata)) ?? { vps: [], sps: [], pps: [] })
    : extradata;
  const { hasReordering } = describeVideo(codec, config);
  if (hasReordering && WITHOUT_PRESENTATION_TIMES.includes(container)) return null;
  return {
    message: { ...common, format: BitstreamFormat.LENGTH_PREFIXED, config: base64(config) },
    layout: annexb ? annexbToLengthPrefixed : copy,
  };
}

function audioPassage(id: number, stream: FileStream): Passage | null {
  const codec = AUDIO.find((known) => (CODEC_IDS[known] as number) === stream.codecId);
  if (codec === undefined) return null;
  const { extradata, first, sampleRate, channels } = stream;
  const common = { ...base(id, stream), type: 'audio', codec } as const;
  if (codec === AudioCodec.MP3) {
    return { message: { ...common, format: BitstreamFormat.RAW, config: null, sampleRate, channels }, layout: copy };
  }
  const adts = extradata === null && codec === AudioCodec.AAC && first !== null ? parseAdtsHeader(first) : null;
  const config = adts === null ? extradata : configOfAdts(adts);
  if (config === null) return null;
  const { sampleRate: rate, channels: count } = describeAudio(codec, config);
  // Only the frames tell the number of channels.
  if (count === 0) return null;
  const format = codec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW;
  return {
    message: { ...common, format, config: base64(config), sampleRate: rate, channels: count },
    layout: adts === null ? copy : withoutAdtsHeader,
  };
}

function withoutAdtsHeader(data: Uint8Array): Uint8Array {
  const { headerLength, frameLength } = parseAdtsHeader(data);
  return data.slice(headerLength, frameLength);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
