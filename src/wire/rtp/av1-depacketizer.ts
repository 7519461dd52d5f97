/**
 * AV1 out of RTP (RTP Payload Format For AV1, §4): fragments of OBUs → temporal units whose OBUs tell their sizes.
 *
 *  Z first element is a continuation | Y last element continues | W 2 number of elements | N new sequence | 3 bits | elements
 */
import { ProtocolError } from '../../util/protocol-error.ts';
import type { Depacketizer, DepacketizerSink } from './depacketizer.ts';
import type { RtpPacket } from './rtp-packet.ts';

const CONTINUES = 0x80;
const GOES_ON = 0x40;
const MAX_UNIT = 8_388_608;
/** Limit of elements in a temporal unit: each is kept until the unit is complete, and the smallest has no bytes. */
const MAX_ELEMENTS = 16_384;
const MAX_LEB128_BYTES = 8;
const TEMPORAL_DELIMITER = 2;
const TILE_LIST = 8;

/** A temporal unit ends with the marker bit. Units with a missing packet are left out. */
export class Av1Depacketizer implements Depacketizer {
  /** Temporal units left out because packets of them were lost. */
  damaged = 0;
  #parts: Uint8Array[] = [];
  /** Fragments of the OBU that is not whole yet; null between OBUs. */
  #fragments: Uint8Array[] | null = null;
  #bytes = 0;
  #elements = 0;
  #timestamp = -1;
  #broken = false;

  push(packet: RtpPacket, lost: boolean, sink: DepacketizerSink): void {
    if (packet.timestamp !== this.#timestamp) {
      // The end of the last temporal unit may be among the lost packets.
      if (lost) this.#broken ||= this.#bytes > 0;
      this.#finish(sink);
      this.#timestamp = packet.timestamp;
    }
    if (lost) this.#broken = true;
    const { payload } = packet;
    // The beginning of the temporal unit is present, so losses before it do not matter.
    if (lost && this.#bytes === 0 && ((payload[0] ?? 0) & CONTINUES) === 0) this.#broken = false;
    try {
      this.#add(payload);
    } catch (error) {
      this.#broken = true;
      throw error;
    } finally {
      if (packet.marker) this.#finish(sink);
    }
  }

  #add(payload: Uint8Array): void {
    if (payload.length < 2) throw new ProtocolError('RTP_AV1', `payload of ${payload.length} bytes`, 0);
    const head = payload[0] ?? 0;
    const count = (head >> 4) & 3;
    let continues = (head & CONTINUES) !== 0;
    for (let at = 1, element = 1; at < payload.length; element += 1) {
      let end = payload.length;
      if (count === 0 || element < count) {
        const { size, next } = readSize(payload, at);
        at = next;
        end = at + size;
        if (end > payload.length) throw new ProtocolError('RTP_AV1', `OBU element of ${size} bytes, ${payload.length - at} left`, at);
      }
      const goesOn = end === payload.length && (head & GOES_ON) !== 0;
      this.#addElement(payload.subarray(at, end), continues, goesOn);
      continues = false;
      at = end;
    }
  }

  #addElement(element: Uint8Array, continues: boolean, goesOn: boolean): void {
    this.#bytes += element.length;
    this.#elements += 1;
    if (this.#bytes > MAX_UNIT || this.#elements > MAX_ELEMENTS) {
      this.#parts = [];
      this.#fragments = null;
      throw new ProtocolError('RTP_AV1', `temporal unit of more than ${MAX_UNIT} bytes or ${MAX_ELEMENTS} elements`);
    }
    if (continues !== (this.#fragments !== null)) this.#broken = true;
    if (this.#broken) return;
    this.#fragments ??= [];
    this.#fragments.push(element);
    if (goesOn) return;
    const fragments = this.#fragments;
    this.#fragments = null;
    this.#addUnit(fragments.length === 1 ? element : Buffer.concat(fragments));
  }

  /** Adds an OBU with its size; temporal delimiters and tile lists are left out. */
  #addUnit(obu: Uint8Array): void {
    const [header = 0] = obu;
    const headerLength = (header & 0x04) === 0 ? 1 : 2;
    if (obu.length < headerLength) return;
    const type = (header >> 3) & 0xf;
    if (type === TEMPORAL_DELIMITER || type === TILE_LIST) return;
    if ((header & 0x02) !== 0) {
      this.#parts.push(obu);
      return;
    }
    const size = obu.length - headerLength;
    this.#parts.push(Uint8Array.of(header | 0x02, ...obu.subarray(1, headerLength), ...leb128(size)), obu.subarray(headerLength));
  }

  #finish(sink: DepacketizerSink): void {
    const whole = !this.#broken && this.#fragments === null;
    if (!whole) this.damaged += 1;
    else if (this.#parts.length > 0) sink({ timestamp: this.#timestamp, data: Buffer.concat(this.#parts) });
    this.#parts = [];
    this.#fragments = null;
    this.#bytes = 0;
    this.#elements = 0;
    this.#broken = false;
  }
}

function readSize(data: Uint8Array, start: number): { readonly size: number; readonly next: number } {
  let size = 0;
  for (let n = 0; n < MAX_LEB128_BYTES; n += 1) {
    const byte = data[start + n];
    if (byte === undefined) throw new ProtocolError('RTP_AV1', 'size of an OBU element ends early', start);
    size += (byte & 0x7f) * 2 ** (7 * n);
    if ((byte & 0x80) === 0) return { size, next: start + n + 1 };
  }
  throw new ProtocolError('RTP_AV1', `size of an OBU element longer than ${MAX_LEB128_BYTES} bytes`, start);
}

function leb128(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    const last = rest < 128;
    bytes.push((rest & 0x7f) | (last ? 0 : 0x80));
    if (last) return bytes;
  }
}
