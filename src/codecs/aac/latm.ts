/**
 * AAC in LOAS/LATM, ISO/IEC 14496-3 §1.7: an AudioSyncStream of AudioMuxElements with the configuration in-band.
 *
 *  sync 0x2b7: 11 | audioMuxLengthBytes 13 | useSameStreamMux 1 | [StreamMuxConfig] | payload length | payload …
 */
import { BitReader } from '../../util/bit-reader.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

/** Bytes of sync word and length. */
export const LOAS_HEADER_LENGTH = 3;
const SYNC_WORD = 0x2b7;

const OBJECT_ESCAPE = 31;
const OBJECT_SBR = 5;
const OBJECT_PS = 29;
/** Object types with a plain GASpecificConfig: main, LC, SSR, LTP. */
const MAX_PLAIN_OBJECT = 4;
const FREQUENCY_ESCAPE = 15;

/** Bytes of the AudioMuxElement behind a LOAS header at `at`; -1 without a sync word. The header must be complete. */
export function loasElementLength(data: Uint8Array, at: number): number {
  const head = ((data[at] ?? 0) << 16) | ((data[at + 1] ?? 0) << 8) | (data[at + 2] ?? 0);
  return head >> 13 === SYNC_WORD ? head & 0x1f_ff : -1;
}

interface StreamMux {
  readonly config: Uint8Array;
  /** Frames in every element. Data after them is not read. */
  readonly frames: number;
}

/** Reads AudioMuxElements of one stream: the configuration of an element applies to the following ones, too. */
export class LatmReader {
  #mux: StreamMux | null = null;

  /** AudioSpecificConfig; null before the first. A new object after a change. */
  get config(): Uint8Array | null {
    return this.#mux?.config ?? null;
  }

  /**
   * The raw AAC frames of an element, each in its own buffer; none before the first configuration. Throws `LATM` for several programs or
   * layers, and for configurations of other codecs.
   */
  read(element: Uint8Array): Uint8Array[] {
    const reader = new BitReader(element);
    if (!reader.flag()) this.#adopt(readStreamMux(reader));
    if (this.#mux === null) return [];
    const frames: Uint8Array[] = [];
    for (let count = 0; count < this.#mux.frames; count += 1) frames.push(readFrame(reader));
    return frames;
  }

  #adopt(mux: StreamMux): void {
    const same = this.#mux !== null && Buffer.compare(this.#mux.config, mux.config) === 0;
    this.#mux = same && this.#mux !== null ? { ...mux, config: this.#mux.config } : mux;
  }
}

/** PayloadLengthInfo and PayloadMux for frameLengthType 0 (§1.7.3.2). */
function readFrame(reader: BitReader): Uint8Array {
  let length = 0;
  let part: number;
  do {
    part = reader.bits(8);
    length += part;
  } while (part === 255);
  if (length * 8 > reader.bitsLeft)
    throw new ProtocolError('LATM', `frame of ${length} bytes, ${reader.bitsLeft >> 3} left`, reader.byteOffset);
  return copyBits(reader, length * 8);
}

function readStreamMux(reader: BitReader): StreamMux {
  const version = reader.bits(1);
  if (version === 1 && reader.flag()) throw unsupported('audioMuxVersionA 1', reader);
  if (version === 1) readValue(reader); // taraBufferFullness
  if (!reader.flag()) throw unsupported('streams with time framing of their own', reader);
  const frames = reader.bits(6) + 1;
  if (reader.bits(4) !== 0) throw unsupported('several programs', reader);
  if (reader.bits(3) !== 0) throw unsupported('several layers', reader);
  const config = version === 1 ? readSizedConfig(reader) : readConfig(reader);
  const frameLengthType = reader.bits(3);
  if (frameLengthType !== 0) throw unsupported(`frameLengthType ${frameLengthType}`, reader);
  reader.skip(8); // latmBufferFullness
  if (reader.flag()) skipOtherDataLength(reader, version);
  if (reader.flag()) reader.skip(8); // crcCheckSum
  return { config, frames };
}

function skipOtherDataLength(reader: BitReader, version: number): void {
  if (version === 1) {
    readValue(reader);
    return;
  }
  let more: boolean;
  do {
    more = reader.flag();
    reader.skip(8);
  } while (more);
}

/** LatmGetValue. */
function readValue(reader: BitReader): number {
  const bytes = reader.bits(2) + 1;
  return reader.bits(bytes * 8);
}

function readSizedConfig(reader: BitReader): Uint8Array {
  const bits = readValue(reader);
  if (bits > reader.bitsLeft) throw new ProtocolError('LATM', `configuration of ${bits} bits, ${reader.bitsLeft} left`, reader.byteOffset);
  return copyBits(reader, bits);
}

/** An AudioSpecificConfig without its length: only parsing it shows where it ends. */
function readConfig(reader: BitReader): Uint8Array {
  const start = reader.mark();
  const left = reader.bitsLeft;
  let objectType = readObjectType(reader);
  skipFrequency(reader);
  const channels = reader.bits(4);
  if (objectType === OBJECT_SBR || objectType === OBJECT_PS) {
    skipFrequency(reader);
    objectType = readObjectType(reader);
  }
  if (objectType === 0 || objectType > MAX_PLAIN_OBJECT) throw unsupported(`audio object type ${objectType}`, reader);
  if (channels === 0) throw unsupported('a program config element', reader);
  reader.skip(1); // frameLengthFlag
  if (reader.flag()) reader.skip(14); // coreCoderDelay
  reader.skip(1); // extensionFlag: nothing follows for these object types
  return copyBits(start, left - reader.bitsLeft);
}

function readObjectType(reader: BitReader): number {
  const type = reader.bits(5);
  return type === OBJECT_ESCAPE ? 32 + reader.bits(6) : type;
}

function skipFrequency(reader: BitReader): void {
  if (reader.bits(4) === FREQUENCY_ESCAPE) reader.skip(24);
}

/** The next `bits`, moved to a byte boundary and filled with zeros. */
function copyBits(reader: BitReader, bits: number): Uint8Array {
  const whole = bits >> 3;
  const rest = bits & 7;
  const out = new Uint8Array(whole + (rest > 0 ? 1 : 0));
  for (let at = 0; at < whole; at += 1) out[at] = reader.bits(8);
  if (rest > 0) out[whole] = reader.bits(rest) << (8 - rest);
  return out;
}

function unsupported(what: string, reader: BitReader): ProtocolError {
  return new ProtocolError('LATM', `${what} is not supported`, reader.byteOffset);
}
