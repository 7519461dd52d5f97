/** H.264 (RFC 6184, packetization mode 1) and H.265 (RFC 7798) access units into RTP payloads. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Packetizer, PayloadBuffer, type Payloads } from './packetizer.ts';

const LENGTH_SIZE = 4;

/** Where the two codecs differ. */
interface NalRules {
  /** Bytes of a NAL unit header. */
  readonly head: number;
  type(first: number): number;
  /** Delimiters and padding carry nothing over RTP. */
  readonly skipped: ReadonlySet<number>;
  /** Parameter sets and the like: small units that may share a packet. */
  readonly gathered: ReadonlySet<number>;
  /** Begins a packet of several units whose headers were `first` and `second`. */
  beginGroup(out: PayloadBuffer): void;
  beginFragment(out: PayloadBuffer, first: number, second: number, start: boolean, end: boolean): void;
  /** Bytes that `beginGroup` and `beginFragment` write. */
  readonly groupHead: number;
  readonly fragmentHead: number;
}

const H264: NalRules = {
  head: 1,
  type: (first) => first & 0x1f,
  skipped: new Set([9, 12]),
  gathered: new Set([6, 7, 8]),
  groupHead: 1,
  beginGroup: (out) => {
    // STAP-A with the highest importance.
    out.u8(0x60 | 24);
  },
  fragmentHead: 2,
  beginFragment: (out, first, _second, start, end) => {
    out.u8((first & 0xe0) | 28);
    out.u8((start ? 0x80 : 0) | (end ? 0x40 : 0) | (first & 0x1f));
  },
};

const H265: NalRules = {
  head: 2,
  type: (first) => (first >> 1) & 0x3f,
  skipped: new Set([35, 38]),
  gathered: new Set([32, 33, 34, 39]),
  groupHead: 2,
  beginGroup: (out) => {
    // AP, layer 0, temporal id 1.
    out.u8(48 << 1);
    out.u8(1);
  },
  fragmentHead: 3,
  beginFragment: (out, first, second, start, end) => {
    out.u8((first & 0x81) | (49 << 1));
    out.u8(second);
    out.u8((start ? 0x80 : 0) | (end ? 0x40 : 0) | ((first >> 1) & 0x3f));
  },
};

/** Takes NAL units behind 4-byte lengths. */
export class NalPacketizer implements Packetizer {
  readonly #rules: NalRules;
  readonly #budget: number;
  readonly #out = new PayloadBuffer();
  #inGroup = false;

  /** `budget`: bytes of the largest payload. */
  constructor(codec: 'H264' | 'H265', budget: number) {
    this.#rules = codec === 'H264' ? H264 : H265;
    this.#budget = budget;
  }

  /** `before`: units to send ahead of the frame, in the same layout (parameter sets of a keyframe that has none). */
  packetize(frame: Uint8Array, before: Uint8Array | null = null): Payloads {
    this.#out.reset();
    this.#inGroup = false;
    if (before !== null) this.#walk(before);
    this.#walk(frame);
    this.#endGroup();
    return this.#out.take();
  }

  #walk(data: Uint8Array): void {
    const { head, type, skipped } = this.#rules;
    for (let at = 0; at < data.length; ) {
      if (at + LENGTH_SIZE > data.length) throw new ProtocolError('NAL_LENGTH', 'a NAL unit length is cut off', at);
      const length = (((data[at] ?? 0) << 24) | ((data[at + 1] ?? 0) << 16) | ((data[at + 2] ?? 0) << 8) | (data[at + 3] ?? 0)) >>> 0;
      const start = at + LENGTH_SIZE;
      const end = start + length;
      if (end > data.length) throw new ProtocolError('NAL_LENGTH', `a NAL unit of ${length} bytes does not fit`, at);
      at = end;
      if (length > head && !skipped.has(type(data[start] ?? 0))) this.#unit(data, start, end);
    }
  }

  #unit(data: Uint8Array, start: number, end: number): void {
    const { gathered, type, groupHead } = this.#rules;
    const length = end - start;
    if (gathered.has(type(data[start] ?? 0)) && groupHead + 2 + length <= this.#budget) {
      if (this.#inGroup && this.#out.current + 2 + length > this.#budget) this.#endGroup();
      if (!this.#inGroup) {
        this.#rules.beginGroup(this.#out);
        this.#inGroup = true;
      }
      this.#out.u16(length);
      this.#out.append(data, start, end);
      return;
    }
    this.#endGroup();
    if (length <= this.#budget) {
      this.#out.append(data, start, end);
      this.#out.finish();
    } else this.#fragments(data, start, end);
  }

  /** Fragments of equal size, so that they leave in one system call. */
  #fragments(data: Uint8Array, start: number, end: number): void {
    const { head, fragmentHead } = this.#rules;
    const first = data[start] ?? 0;
    const second = data[start + 1] ?? 0;
    const body = start + head;
    const count = Math.ceil((end - body) / (this.#budget - fragmentHead));
    const size = Math.ceil((end - body) / count);
    for (let at = body; at < end; at += size) {
      const next = Math.min(at + size, end);
      this.#rules.beginFragment(this.#out, first, second, at === body, next === end);
      this.#out.append(data, at, next);
      this.#out.finish();
    }
  }

  #endGroup(): void {
    if (!this.#inGroup) return;
    this.#inGroup = false;
    this.#out.finish();
  }
}
