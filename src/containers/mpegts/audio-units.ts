/** Audio of a transport stream: frames may cross the borders of PES packets. */
import { ADTS_HEADER_LENGTH, type AdtsFrame, configOfAdts, parseAdtsHeader } from '../../codecs/aac/adts.ts';
import { parseAudioSpecificConfig } from '../../codecs/aac/audio-specific-config.ts';
import { LatmReader, LOAS_HEADER_LENGTH, loasElementLength } from '../../codecs/aac/latm.ts';
import { MPEG_AUDIO_HEADER_LENGTH, parseMpegAudioHeader } from '../../codecs/mp3/frame-header.ts';
import { buildOpusHead, OPUS_SAMPLE_RATE } from '../../codecs/opus/opus-head.ts';
import { opusPacketSamples } from '../../codecs/opus/packet.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { UnitReader, UnitSink } from './elementary-unit.ts';
import type { PesPacket } from './ts-demuxer.ts';

const CLOCK = 90_000;
const NOTHING = new Uint8Array(0);
/** Samples of an AAC frame of the core coder. */
const AAC_FRAME = 1024;
const MAX_FREQUENCY_INDEX = 12;
const ADTS_CRC = 2;

/** Length of a frame, header included, or one of the two values below. */
type FrameLength = number;
const NO_FRAME = -1;
const INCOMPLETE = 0;

/**
 * Finds frames that announce their length. The time of a PES packet belongs to the first frame that begins in it; the times of the others
 * follow from the durations. Frames that cross the border of a packet are joined.
 */
abstract class FramedUnits implements UnitReader {
  abstract readonly config: Uint8Array | null;
  /** Beginning of an incomplete frame. */
  #carry: Uint8Array = NOTHING;
  /** Time of the next frame, 90 kHz; null before the first. */
  #time: number | null = null;

  /** Length of the frame at `at`; `NO_FRAME`; or `INCOMPLETE` while bytes are missing. */
  protected abstract frameLength(data: Uint8Array, at: number): FrameLength;
  /** Passes on the contents of a frame and returns its duration, 90 kHz. */
  protected abstract emit(data: Uint8Array, at: number, length: number, time: number, sink: UnitSink): number;

  read(packet: PesPacket, sink: UnitSink): void {
    if (packet.discontinuity) this.#carry = NOTHING;
    const carried = this.#carry.length;
    const data = carried === 0 ? packet.data : Buffer.concat([this.#carry, packet.data]);
    this.#carry = NOTHING;
    let { pts } = packet;
    let at = 0;
    let skipped = 0;
    while (at < data.length) {
      const length = this.#frameAt(data, at, skipped > 0);
      if (length === INCOMPLETE || (length > 0 && at + length > data.length)) break;
      if (length === NO_FRAME) {
        at += 1;
        skipped += 1;
        continue;
      }
      if (pts !== null && at >= carried) {
        this.#time = pts;
        pts = null;
      }
      if (this.#time !== null) this.#time += this.emit(data, at, length, this.#time, sink);
      at += length;
    }
    this.#carry = data.slice(at);
    if (skipped > 0) throw new ProtocolError('TS_AUDIO', `${skipped} bytes outside of audio frames`);
  }

  /** After a loss of sync, a frame is accepted only before another frame or the end of the data. */
  #frameAt(data: Uint8Array, at: number, searching: boolean): FrameLength {
    const length = this.frameLength(data, at);
    if (!searching || length <= 0 || at + length >= data.length) return length;
    return this.frameLength(data, at + length) === NO_FRAME ? NO_FRAME : length;
  }
}

/** AAC behind ADTS headers → raw AAC. */
export class AdtsUnits extends FramedUnits {
  config: Uint8Array | null = null;
  #header: AdtsFrame | null = null;

  protected override frameLength(data: Uint8Array, at: number): FrameLength {
    if (data.length - at < ADTS_HEADER_LENGTH) return data[at] === 0xff ? INCOMPLETE : NO_FRAME;
    return isAdtsHeader(data, at) ? parseAdtsHeader(data, at).frameLength : NO_FRAME;
  }

  protected override emit(data: Uint8Array, at: number, length: number, time: number, sink: UnitSink): number {
    const header = parseAdtsHeader(data, at);
    if (!sameFormat(this.#header, header)) this.config = configOfAdts(header);
    this.#header = header;
    // Several raw blocks share a header without boundaries: they cannot be separated without decoding.
    if (header.rawDataBlocks > 1) throw new ProtocolError('TS_AUDIO', `${header.rawDataBlocks} AAC blocks in one ADTS frame`, at);
    if (length > header.headerLength) sink({ pts: time, dts: time, data: data.slice(at + header.headerLength, at + length) });
    return (AAC_FRAME * CLOCK) / header.sampleRate;
  }
}

/** AAC in LOAS/LATM → raw AAC. */
export class LatmUnits extends FramedUnits {
  readonly #reader = new LatmReader();
  #described: Uint8Array | null = null;
  #duration = 0;

  get config(): Uint8Array | null {
    return this.#reader.config;
  }

  protected override frameLength(data: Uint8Array, at: number): FrameLength {
    if (data.length - at < LOAS_HEADER_LENGTH) return data[at] === 0x56 ? INCOMPLETE : NO_FRAME;
    const length = loasElementLength(data, at);
    return length < 0 ? NO_FRAME : LOAS_HEADER_LENGTH + length;
  }

  protected override emit(data: Uint8Array, at: number, length: number, time: number, sink: UnitSink): number {
    const frames = this.#reader.read(data.subarray(at + LOAS_HEADER_LENGTH, at + length));
    const { config } = this.#reader;
    if (config !== null && config !== this.#described) {
      this.#described = config;
      const described = parseAudioSpecificConfig(config);
      this.#duration = (described.frameLength * CLOCK) / described.coreSampleRate;
    }
    let lasts = 0;
    for (const frame of frames) {
      if (frame.length > 0) sink({ pts: time + lasts, dts: time + lasts, data: frame });
      lasts += this.#duration;
    }
    return lasts;
  }
}

/** MPEG audio; the configuration is the header of a frame. */
export class MpegAudioUnits extends FramedUnits {
  config: Uint8Array | null = null;
  #format = '';

  protected override frameLength(data: Uint8Array, at: number): FrameLength {
    if (data.length - at < MPEG_AUDIO_HEADER_LENGTH) return data[at] === 0xff ? INCOMPLETE : NO_FRAME;
    return isMpegAudioHeader(data, at) ? parseMpegAudioHeader(data, at).frameLength : NO_FRAME;
  }

  protected override emit(data: Uint8Array, at: number, length: number, time: number, sink: UnitSink): number {
    const header = parseMpegAudioHeader(data, at);
    // Layers I and II are other codecs, which no output supports.
    if (header.layer !== 3) throw new ProtocolError('TS_AUDIO', `MPEG audio layer ${header.layer} is not supported`, at);
    const format = `${header.version} ${header.sampleRate} ${header.channels}`;
    if (format !== this.#format) this.config = data.slice(at, at + MPEG_AUDIO_HEADER_LENGTH);
    this.#format = format;
    sink({ pts: time, dts: time, data: data.slice(at, at + length) });
    return (header.samplesPerFrame * CLOCK) / header.sampleRate;
  }
}

/** Opus behind control headers ("Opus in MPEG-TS" §4): packets end with their PES packet. */
export class OpusUnits implements UnitReader {
  readonly config: Uint8Array;

  constructor(channels: number) {
    this.config = buildOpusHead({ channels });
  }

  read({ pts, data }: PesPacket, sink: UnitSink): void {
    if (pts === null) return;
    let time = pts;
    let at = 0;
    while (at < data.length) {
      const control = readOpusControl(data, at);
      const packet = data.slice(control.start, control.end);
      sink({ pts: time, dts: time, data: packet });
      time += (opusPacketSamples(packet) * CLOCK) / OPUS_SAMPLE_RATE;
      at = control.end;
    }
  }
}

/** prefix 0x3ff: 11 | start_trim 1 | end_trim 1 | extension 1 | reserved 2 | size: bytes up to the first that is not 255 | … */
function readOpusControl(data: Uint8Array, offset: number): { start: number; end: number } {
  const head = ((data[offset] ?? 0) << 8) | (data[offset + 1] ?? 0);
  if (head >> 5 !== 0x3_ff) throw new ProtocolError('TS_AUDIO', 'no Opus control header', offset);
  let at = offset + 2;
  let size = 0;
  let part: number;
  do {
    part = data[at] ?? 0;
    size += part;
    at += 1;
  } while (part === 255);
  if ((head & 0x10) !== 0) at += 2;
  if ((head & 0x08) !== 0) at += 2;
  if ((head & 0x04) !== 0) at += 1 + (data[at] ?? 0);
  if (size === 0 || at + size > data.length) {
    throw new ProtocolError('TS_AUDIO', `Opus packet of ${size} bytes, ${Math.max(0, data.length - at)} left`, offset);
  }
  return { start: at, end: at + size };
}

function sameFormat(a: AdtsFrame | null, b: AdtsFrame): boolean {
  return a !== null && a.objectType === b.objectType && a.sampleRate === b.sampleRate && a.channelConfiguration === b.channelConfiguration;
}

/** Whether the parser would accept a header here; an exception for each byte of garbage would be slow. */
function isAdtsHeader(data: Uint8Array, at: number): boolean {
  if (data[at] !== 0xff || ((data[at + 1] ?? 0) & 0xf6) !== 0xf0) return false;
  const frequencyIndex = ((data[at + 2] ?? 0) >> 2) & 0xf;
  const length = (((data[at + 3] ?? 0) & 3) << 11) | ((data[at + 4] ?? 0) << 3) | ((data[at + 5] ?? 0) >> 5);
  return frequencyIndex <= MAX_FREQUENCY_INDEX && length >= ADTS_HEADER_LENGTH + ADTS_CRC;
}

/** The conditions of the parser: no reserved version, layer or rate, no free format. */
function isMpegAudioHeader(data: Uint8Array, at: number): boolean {
  const second = data[at + 1] ?? 0;
  const third = data[at + 2] ?? 0;
  if (data[at] !== 0xff || (second & 0xe0) !== 0xe0) return false;
  const bitrate = third >> 4;
  return (second & 0x18) !== 0x08 && (second & 0x06) !== 0 && bitrate !== 0 && bitrate !== 15 && (third & 0x0c) !== 0x0c;
}
