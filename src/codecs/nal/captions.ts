/** Detects closed captions in H.264 and H.265 (ATSC A/53 part 4 §6.2.3, CTA-608-E, CTA-708-E): the services, not their text. */
import { VideoCodec } from '../../media/codec.ts';
import { H264NalType, h264NalType } from '../h264/nal-type.ts';
import { H265NalType, h265NalType } from '../h265/nal-type.ts';
import { LengthPrefixedCursor } from './nal-cursor.ts';
import { unescapeRbsp } from './rbsp.ts';
import { findSei } from './sei.ts';

const SEI_T35 = 4;
/** Country USA, provider ATSC, "GA94", cc_data. */
const ATSC_CAPTIONS = Uint8Array.of(0xb5, 0x00, 0x31, 0x47, 0x41, 0x39, 0x34, 0x03);
const PROCESS_CC = 0x40;
/** cc_valid and cc_type of a triplet. */
const VALID = 4;
const PACKET_DATA = 2;
const PACKET_START = 3;
/** Maximum of bytes of a channel packet, header included. */
const MAX_PACKET = 128;
const EXTENDED_SERVICE = 7;

/** The caption services detected so far. Each video track has its own reader. */
export class CaptionReader {
  /** Channels in the words of INSTREAM-ID (rfc8216bis §4.4.6.1): `CC1` to `CC4`, `SERVICE1` to `SERVICE63`. */
  readonly channels = new Set<string>();
  readonly #packet = new Uint8Array(MAX_PACKET);
  #packetLength = 0;
  #packetSize = 0;

  /** Reads a frame, NAL units behind 4-byte lengths, up to its first slice. Throws `ProtocolError` for a broken frame. */
  read(codec: VideoCodec, frame: Uint8Array): void {
    const nals = new LengthPrefixedCursor(frame);
    while (nals.next()) {
      const first = frame[nals.start] ?? 0;
      const isH264 = codec === VideoCodec.H264;
      const type = isH264 ? h264NalType(first) : h265NalType(first);
      if (isH264 ? type >= H264NalType.SLICE && type <= H264NalType.IDR : type <= H265NalType.SLICE_LAST) return;
      if (type === (isH264 ? H264NalType.SEI : H265NalType.SEI_PREFIX)) this.#readSei(unescapeRbsp(nals.unit(), isH264 ? 1 : 2));
    }
  }

  #readSei(rbsp: Uint8Array): void {
    let rest = rbsp;
    for (let payload = findSei(rest, SEI_T35); payload !== null; payload = findSei(rest, SEI_T35)) {
      rest = rest.subarray(payload.byteOffset - rest.byteOffset + payload.length);
      if (ATSC_CAPTIONS.every((byte, index) => payload[index] === byte)) this.#readData(payload.subarray(ATSC_CAPTIONS.length));
    }
  }

  /** cc_data(): flags with the number of triplets, a reserved byte, and the triplets. */
  #readData(data: Uint8Array): void {
    const flags = data[0] ?? 0;
    if ((flags & PROCESS_CC) === 0) return;
    const count = Math.min(flags & 0x1f, Math.floor((data.length - 2) / 3));
    for (let index = 0; index < count; index += 1) {
      const [head = 0, first = 0, second = 0] = data.subarray(2 + index * 3, 5 + index * 3);
      const type = head & 3;
      if (type >= PACKET_DATA) this.#readService(type === PACKET_START, (head & VALID) !== 0, first, second);
      else if ((head & VALID) !== 0) this.#readField(type, first & 0x7f, second & 0x7f);
    }
  }

  /** Line 21: only control codes say which of the two channels of a field they belong to. */
  #readField(field: number, first: number, second: number): void {
    if (first < 0x10 || first > 0x1f || second < 0x20) return;
    this.channels.add(`CC${field * 2 + ((first & 8) === 0 ? 1 : 2)}`);
  }

  #readService(isStart: boolean, isValid: boolean, first: number, second: number): void {
    if (!isValid) {
      this.#endPacket();
      return;
    }
    if (isStart) {
      this.#endPacket();
      const code = first & 0x3f;
      this.#packetSize = code === 0 ? MAX_PACKET - 1 : code * 2 - 1;
      this.#packetLength = 0;
      this.#add(second);
    } else if (this.#packetSize > 0) {
      this.#add(first);
      this.#add(second);
    }
    if (this.#packetSize > 0 && this.#packetLength >= this.#packetSize) this.#endPacket();
  }

  #add(byte: number): void {
    if (this.#packetLength < this.#packetSize) this.#packet[this.#packetLength++] = byte;
  }

  /** Service blocks: number and size in one byte, then that many bytes; empty blocks are padding. */
  #endPacket(): void {
    const end = this.#packetLength;
    this.#packetSize = 0;
    this.#packetLength = 0;
    for (let at = 0; at < end; ) {
      const header = this.#packet[at] ?? 0;
      const size = header & 0x1f;
      let service = header >> 5;
      at += 1;
      if (service === EXTENDED_SERVICE && size > 0) {
        service = (this.#packet[at] ?? 0) & 0x3f;
        at += 1;
      }
      if (service > 0 && size > 0 && at + size <= end) this.channels.add(`SERVICE${service}`);
      else if (service === 0) return;
      at += size;
    }
  }
}
