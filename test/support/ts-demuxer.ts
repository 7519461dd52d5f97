/** A small transport stream reader for tests, written independently of the muxer that it judges. */

export interface TsPes {
  /** 90 kHz. */
  readonly pts: number;
  readonly dts: number;
  readonly streamId: number;
  /** Length in the header; 0 for an open length. */
  readonly declaredLength: number;
  readonly data: Uint8Array;
}

export interface TsStream {
  readonly pid: number;
  readonly streamType: number;
  readonly descriptors: Uint8Array;
  readonly pes: TsPes[];
}

export interface TsContent {
  readonly streams: readonly TsStream[];
  readonly pcrPid: number;
  readonly programDescriptors: Uint8Array;
  readonly pmtVersions: readonly number[];
  /** 90 kHz. */
  readonly pcrs: readonly number[];
  /** Flags byte of every adaptation field with flags, by PID. */
  readonly adaptationFlags: readonly { readonly pid: number; readonly flags: number }[];
  /** Descriptions of all faults. */
  readonly faults: readonly string[];
}

const PACKET = 188;

/** Reads a whole transport stream with one program. */
export function demuxTs(ts: Uint8Array): TsContent {
  const state = new Demuxer();
  if (ts.length % PACKET !== 0) state.faults.push(`${ts.length} bytes are no whole number of packets`);
  for (let at = 0; at + PACKET <= ts.length; at += PACKET) state.packet(ts.subarray(at, at + PACKET));
  state.flush();
  return state;
}

class Demuxer implements TsContent {
  readonly streams: TsStream[] = [];
  readonly pmtVersions: number[] = [];
  readonly pcrs: number[] = [];
  readonly adaptationFlags: { pid: number; flags: number }[] = [];
  readonly faults: string[] = [];
  pcrPid = -1;
  programDescriptors: Uint8Array = new Uint8Array(0);
  #pmtPid = -1;
  /** Collected payloads of the map table. */
  #pmtPieces: Uint8Array[] = [];
  readonly #counters = new Map<number, number>();
  readonly #units = new Map<number, Uint8Array[]>();

  packet(bytes: Uint8Array): void {
    if (bytes[0] !== 0x47) this.faults.push('sync byte');
    const pid = ((bytes[1]! & 0x1f) << 8) | bytes[2]!;
    const control = (bytes[3]! >> 4) & 3;
    const counter = bytes[3]! & 0xf;
    const last = this.#counters.get(pid);
    if ((control & 1) === 1) {
      if (last !== undefined && counter !== ((last + 1) & 0xf)) this.faults.push(`continuity of PID ${pid}: ${last} → ${counter}`);
      this.#counters.set(pid, counter);
    }
    let at = 4;
    if ((control & 2) === 2) at += this.#adaptation(pid, bytes.subarray(4));
    if ((control & 1) === 0) return;
    const payload = bytes.subarray(at);
    const start = (bytes[1]! & 0x40) !== 0;
    if (pid === 0) this.#pat(payload);
    else if (pid === this.#pmtPid) this.#pmt(payload, start);
    else this.#elementary(pid, start, payload);
  }

  flush(): void {
    for (const pid of this.#units.keys()) this.#finish(pid);
  }

  #adaptation(pid: number, bytes: Uint8Array): number {
    const length = bytes[0]!;
    if (length > 183) this.faults.push(`adaptation field of ${length} bytes`);
    if (length > 0) {
      this.adaptationFlags.push({ pid, flags: bytes[1]! });
      if ((bytes[1]! & 0x10) !== 0) {
        if (pid !== this.pcrPid) this.faults.push(`clock on PID ${pid}`);
        this.pcrs.push((bytes[2]! * 2 ** 24 + bytes[3]! * 2 ** 16 + bytes[4]! * 256 + bytes[5]!) * 2 + (bytes[6]! >> 7));
      }
    }
    return length + 1;
  }

  #pat(payload: Uint8Array): void {
    const section = this.#section(payload);
    this.#pmtPid = ((section[10]! & 0x1f) << 8) | section[11]!;
  }

  #pmt(piece: Uint8Array, start: boolean): void {
    if (start) {
      if (this.#pmtPieces.length > 0) this.faults.push('map table cut off');
      this.#pmtPieces = [];
    } else if (this.#pmtPieces.length === 0) this.faults.push('map table without beginning');
    this.#pmtPieces.push(piece);
    const payload = new Uint8Array(Buffer.concat(this.#pmtPieces));
    if (payload.length < this.#lengthOf(payload)) return;
    this.#pmtPieces = [];
    const section = this.#section(payload);
    this.pmtVersions.push((section[5]! >> 1) & 0x1f);
    this.pcrPid = ((section[8]! & 0x1f) << 8) | section[9]!;
    const programLength = ((section[10]! & 0xf) << 8) | section[11]!;
    this.programDescriptors = section.subarray(12, 12 + programLength);
    let at = 12 + programLength;
    while (at < section.length - 4) {
      const pid = ((section[at + 1]! & 0x1f) << 8) | section[at + 2]!;
      const length = ((section[at + 3]! & 0xf) << 8) | section[at + 4]!;
      const known = this.streams.find((stream) => stream.pid === pid && stream.streamType === section[at]);
      if (!known) this.streams.push({ pid, streamType: section[at]!, descriptors: section.subarray(at + 5, at + 5 + length), pes: [] });
      at += 5 + length;
    }
  }

  /** Length of pointer field and section. */
  #lengthOf(payload: Uint8Array): number {
    const from = 1 + payload[0]!;
    return from + 3 + (((payload[from + 1]! & 0xf) << 8) | payload[from + 2]!);
  }

  #section(payload: Uint8Array): Uint8Array {
    const section = payload.subarray(1 + payload[0]!, this.#lengthOf(payload));
    if (crcBitByBit(section) !== 0) this.faults.push(`CRC of table ${section[0]}`);
    return section;
  }

  #elementary(pid: number, start: boolean, payload: Uint8Array): void {
    if (start) {
      this.#finish(pid);
      this.#units.set(pid, [payload]);
      return;
    }
    const parts = this.#units.get(pid);
    if (parts) parts.push(payload);
    else this.faults.push(`PID ${pid} begins inside a unit`);
  }

  #finish(pid: number): void {
    const parts = this.#units.get(pid);
    this.#units.delete(pid);
    if (!parts) return;
    const bytes = new Uint8Array(Buffer.concat(parts));
    const stream = this.streams.findLast((candidate) => candidate.pid === pid);
    if (!stream || bytes[0] !== 0 || bytes[1] !== 0 || bytes[2] !== 1) {
      this.faults.push(`PES of PID ${pid}`);
      return;
    }
    const declaredLength = (bytes[4]! << 8) | bytes[5]!;
    if (declaredLength > 0 && declaredLength !== bytes.length - 6)
      this.faults.push(`PES of ${bytes.length - 6} bytes says ${declaredLength}`);
    const both = (bytes[7]! & 0xc0) === 0xc0;
    const pts = timestamp(bytes, 9);
    const dts = both ? timestamp(bytes, 14) : pts;
    stream.pes.push({ pts, dts, streamId: bytes[3]!, declaredLength, data: bytes.subarray(9 + bytes[8]!) });
  }
}

function timestamp(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! >> 1) & 7;
  const middle = ((bytes[at + 1]! << 8) | bytes[at + 2]!) >> 1;
  const low = ((bytes[at + 3]! << 8) | bytes[at + 4]!) >> 1;
  return high * 2 ** 30 + middle * 2 ** 15 + low;
}

function crcBitByBit(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) {
    for (let bit = 7; bit >= 0; bit--) {
      const carry = (crc >>> 31) ^ ((byte >> bit) & 1);
      crc = (crc << 1) ^ (carry === 1 ? 0x04c11db7 : 0);
    }
  }
  return crc >>> 0;
}
