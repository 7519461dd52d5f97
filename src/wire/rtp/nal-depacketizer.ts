/** H.264 (RFC 6184) and H.265 (RFC 7798) out of RTP: single units, aggregates and fragments → frames. */
import { VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { AccessUnitBuilder } from './access-unit-builder.ts';
import type { Depacketizer, DepacketizerSink } from './depacketizer.ts';
import type { RtpPacket } from './rtp-packet.ts';

/** Where the codecs differ. */
interface NalLayout {
  /** Bytes of a NAL unit header. */
  readonly headerLength: number;
  readonly typeOf: (firstByte: number) => number;
  readonly aggregate: number;
  readonly fragment: number;
  /** Unsupported types of the payload format: interleaving, PACI. */
  readonly refused: ReadonlySet<number>;
  /** Type of access unit delimiters, which are left out of units with lengths. */
  readonly delimiter: number;
  /** The header of the NAL unit to which a fragment belongs. */
  readonly rebuildHeader: (payload: Uint8Array, builder: AccessUnitBuilder) => void;
}

const H264_LAYOUT: NalLayout = {
  headerLength: 1,
  typeOf: (byte) => byte & 0x1f,
  aggregate: 24,
  fragment: 28,
  refused: new Set([0, 25, 26, 27, 29, 30, 31]),
  delimiter: 9,
  rebuildHeader: (payload, builder) => builder.appendByte(((payload[0] ?? 0) & 0xe0) | ((payload[1] ?? 0) & 0x1f)),
};

const H265_LAYOUT: NalLayout = {
  headerLength: 2,
  typeOf: (byte) => (byte >> 1) & 0x3f,
  aggregate: 48,
  fragment: 49,
  refused: new Set([50]),
  delimiter: 35,
  rebuildHeader: (payload, builder) => {
    builder.appendByte(((payload[0] ?? 0) & 0x81) | (((payload[2] ?? 0) & 0x3f) << 1));
    builder.appendByte(payload[1] ?? 0);
  },
};

const FRAGMENT_START = 0x80;
const FRAGMENT_END = 0x40;

/** A frame ends with the marker bit, or when the timestamp changes. Frames with a missing packet are left out. */
export class NalDepacketizer implements Depacketizer {
  /** Frames left out because packets of them were lost. */
  damaged = 0;
  readonly #layout: NalLayout;
  readonly #frame = new AccessUnitBuilder();
  #timestamp = -1;
  #broken = false;

  constructor(codec: typeof VideoCodec.H264 | typeof VideoCodec.H265) {
    this.#layout = codec === VideoCodec.H264 ? H264_LAYOUT : H265_LAYOUT;
  }

  push(packet: RtpPacket, lost: boolean, sink: DepacketizerSink): void {
    if (packet.timestamp !== this.#timestamp) {
      // The lost packets may include the end of the last frame, if it had no marker.
      if (lost) this.#broken ||= !this.#frame.empty;
      this.#finish(sink);
      this.#timestamp = packet.timestamp;
    } else if (lost) {
      this.#broken = true;
    }
    try {
      this.#add(packet.payload);
    } catch (error) {
      this.#broken = true;
      throw error;
    } finally {
      if (packet.marker) this.#finish(sink);
    }
  }

  #add(payload: Uint8Array): void {
    const { headerLength, typeOf, aggregate, fragment, refused, delimiter } = this.#layout;
    if (payload.length <= headerLength) throw new ProtocolError('RTP_NAL', `payload of ${payload.length} bytes`, 0);
    const type = typeOf(payload[0] ?? 0);
    if (refused.has(type)) throw new ProtocolError('RTP_NAL', `payload of type ${type} is not supported`, 0);
    if (type === fragment) {
      this.#addFragment(payload, headerLength);
      return;
    }
    if (this.#frame.inside) throw new ProtocolError('RTP_NAL', 'a fragmented NAL unit does not end', 0);
    if (type === aggregate) this.#addAggregate(payload, headerLength);
    else if (type !== delimiter) this.#frame.add(payload);
  }

  #addAggregate(payload: Uint8Array, headerLength: number): void {
    let at = headerLength;
    while (at + 2 <= payload.length) {
      const end = at + 2 + (((payload[at] ?? 0) << 8) | (payload[at + 1] ?? 0));
      if (end > payload.length) throw new ProtocolError('RTP_NAL', 'aggregated NAL unit leaves the packet', at);
      if (this.#layout.typeOf(payload[at + 2] ?? 0) !== this.#layout.delimiter) this.#frame.add(payload.subarray(at + 2, end));
      at = end;
    }
  }

  #addFragment(payload: Uint8Array, headerLength: number): void {
    const header = payload[headerLength] ?? 0;
    if ((header & FRAGMENT_START) !== 0) {
      if (this.#frame.inside) throw new ProtocolError('RTP_NAL', 'a fragmented NAL unit does not end', 0);
      this.#frame.begin();
      this.#layout.rebuildHeader(payload, this.#frame);
    } else if (!this.#frame.inside) {
      this.#broken = true;
      return;
    }
    this.#frame.append(payload.subarray(headerLength + 1));
    if ((header & FRAGMENT_END) !== 0) this.#frame.end();
  }

  #finish(sink: DepacketizerSink): void {
    const whole = !this.#broken && !this.#frame.inside;
    if (!whole) this.damaged += 1;
    else if (!this.#frame.empty) sink({ timestamp: this.#timestamp, data: this.#frame.take() });
    this.#frame.clear();
    this.#broken = false;
  }
}
