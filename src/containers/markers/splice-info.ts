/**
 * splice_info_section of ANSI/SCTE 35 §9.6, as far as breaks are concerned.
 *
 *  fc | 0 0 sap 2 length 12 | version 0 | encrypted 1 algorithm 6 adjustment 33 | cw_index 8 | tier 12 command length 12 |
 *  command type 8 | command | descriptors length 16 | descriptors | (alignment) | CRC-32
 */
import { ByteWriter } from '../../util/byte-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { crc32Mpeg } from '../mpegts/crc32.ts';
import { wrap33 } from '../mpegts/timestamp.ts';

/** `table_id` of these sections. */
const SPLICE_TABLE_ID = 0xfc;
/** Longer sections are not carried: in playlists each byte becomes two characters of every answer. */
export const MAX_SPLICE_SECTION = 512;

const SECTION_HEADER = 3;
const ADJUSTMENT_AT = 4;
const COMMAND_TYPE_AT = 13;
const COMMAND_AT = 14;
const CRC_LENGTH = 4;
const COMMAND_INSERT = 0x05;
const COMMAND_TIME_SIGNAL = 0x06;
const DESCRIPTOR_SEGMENTATION = 0x02;
const CUEI = 0x43_55_45_49;
const UNKNOWN_COMMAND_LENGTH = 0xfff;
const LOW_32 = 2 ** 32;
/** `segmentation_type_id`s that begin an insertion, and those that end it (table 23). */
const STARTS = new Set([0x22, 0x30, 0x32, 0x34, 0x36, 0x38, 0x3a, 0x44, 0x46]);
const ENDS = new Set([0x23, 0x31, 0x33, 0x35, 0x37, 0x39, 0x3b, 0x45, 0x47]);

/** The meaning of a section for the segmenters. */
export interface Splice {
  /** `splice_event_id`, or the id of the segmentation. */
  readonly id: number;
  /** `out`: leaves the network. `in`: returns to it. `other`: another event at the time. */
  readonly type: 'out' | 'in' | 'other';
  /** 90 kHz, 33 bits, adjustment included; null: at once. */
  readonly time: number | null;
  /** Length of the break, 90 kHz; null if unknown. */
  readonly duration: number | null;
  /** The break ends on its own after its duration. */
  readonly autoReturn: boolean;
}

/** A splice_insert. */
export interface SpliceInsert {
  readonly id: number;
  readonly type: 'out' | 'in';
  /** 90 kHz; wrapped to 33 bits. */
  readonly time: number;
  /** 90 kHz; null: until further notice. */
  readonly duration: number | null;
  readonly autoReturn: boolean;
}

/** A whole section, CRC included. */
export function buildSpliceInsert(insert: SpliceInsert): Uint8Array {
  const command = new ByteWriter(32).u32(insert.id).u8(0x7f);
  // A program splice with a time; the four reserved bits are 1.
  command.u8((insert.type === 'out' ? 0x80 : 0) | 0x40 | (insert.duration === null ? 0 : 0x20) | 0x0f);
  put33(command, 0xfe, insert.time);
  if (insert.duration !== null) put33(command, insert.autoReturn ? 0xfe : 0x7e, insert.duration);
  // unique_program_id, avail_num and avails_expected: unused.
  command.u16(0).u8(0).u8(0);
  const length = COMMAND_AT - SECTION_HEADER + command.length + 2 + CRC_LENGTH;
  const section = new ByteWriter(SECTION_HEADER + length).u8(SPLICE_TABLE_ID).u16(0x30_00 | length);
  section.u8(0).u8(0).u32(0).u8(0xff);
  section
    .u8(0xff)
    .u8(0xf0 | (command.length >> 8))
    .u8(command.length)
    .u8(COMMAND_INSERT);
  section.bytes(command.view()).u16(0);
  return section.u32(crc32Mpeg(section.view())).finish();
}

/**
 * Parses a section; null for heartbeats, commands that concern no break, cancelled events and encrypted sections. Throws `ProtocolError`
 * (`SCTE35`) for a section that is truncated, too long or fails its CRC.
 */
export function parseSplice(section: Uint8Array): Splice | null {
  const body = new SectionBytes(section);
  const length = SECTION_HEADER + (body.u16(1) & 0xf_ff);
  if (body.u8(0) !== SPLICE_TABLE_ID) throw new ProtocolError('SCTE35', `table ${body.u8(0)} instead of ${SPLICE_TABLE_ID}`, 0);
  if (length !== section.length) throw new ProtocolError('SCTE35', `${section.length} bytes of a section of ${length}`, 1);
  if (length > MAX_SPLICE_SECTION)
    throw new ProtocolError('SCTE35', `section of ${length} bytes, at most ${MAX_SPLICE_SECTION} are carried`, 1);
  if (crc32Mpeg(section) !== 0) throw new ProtocolError('SCTE35', 'the CRC is wrong', length - CRC_LENGTH);
  if (body.u8(3) !== 0) throw new ProtocolError('SCTE35', `protocol version ${body.u8(3)}`, 3);
  const isEncrypted = (body.u8(ADJUSTMENT_AT) & 0x80) !== 0;
  if (isEncrypted) return null;
  const adjustment = body.u33(ADJUSTMENT_AT);
  const commandLength = body.u16(11) & 0xf_ff;
  switch (body.u8(COMMAND_TYPE_AT)) {
    case COMMAND_INSERT:
      return parseInsert(body, adjustment);
    case COMMAND_TIME_SIGNAL:
      return parseTimeSignal(body, adjustment, commandLength);
    default:
      return null;
  }
}

/** A copy of a section with `time` (90 kHz) as the splice time; a section without a time is returned unchanged. */
export function retimeSplice(section: Uint8Array, time: number): Uint8Array {
  const spliced = parseSplice(section);
  if (spliced === null || spliced.time === null) return section;
  // A copy, unlike `slice`, which returns a view of a buffer of Node.js.
  const copy = new Uint8Array(section);
  const body = new SectionBytes(copy);
  const adjustment = wrap33(body.u33(ADJUSTMENT_AT) + Math.round(time) - spliced.time);
  copy[ADJUSTMENT_AT] = (body.u8(ADJUSTMENT_AT) & 0xfe) | (adjustment >= LOW_32 ? 1 : 0);
  const view = new DataView(copy.buffer);
  view.setUint32(ADJUSTMENT_AT + 1, adjustment % LOW_32);
  const end = copy.length - CRC_LENGTH;
  view.setUint32(end, crc32Mpeg(copy.subarray(0, end)));
  return copy;
}

function parseInsert(body: SectionBytes, adjustment: number): Splice | null {
  let at = COMMAND_AT;
  const id = body.u32(at);
  const isCancelled = (body.u8(at + 4) & 0x80) !== 0;
  if (isCancelled) return null;
  const flags = body.u8(at + 5);
  const isImmediate = (flags & 0x10) !== 0;
  at += 6;
  let time: number | null = null;
  if ((flags & 0x40) !== 0) {
    if (!isImmediate) {
      time = timeAt(body, at);
      at += time === null ? 1 : 5;
    }
  } else {
    // Components are spliced separately; the time of the first one that has a time is used for all.
    const count = body.u8(at);
    at += 1;
    for (let n = 0; n < count; n += 1) {
      at += 1;
      if (isImmediate) continue;
      const own = timeAt(body, at);
      time ??= own;
      at += own === null ? 1 : 5;
    }
  }
  let duration: number | null = null;
  let autoReturn = false;
  if ((flags & 0x20) !== 0) {
    autoReturn = (body.u8(at) & 0x80) !== 0;
    duration = body.u33(at);
  }
  return { id, type: (flags & 0x80) !== 0 ? 'out' : 'in', time: adjusted(time, adjustment), duration, autoReturn };
}

/** The meaning is in the segmentation descriptors; a command without any is ignored. */
function parseTimeSignal(body: SectionBytes, adjustment: number, commandLength: number): Splice | null {
  const time = adjusted(timeAt(body, COMMAND_AT), adjustment);
  const length = commandLength === UNKNOWN_COMMAND_LENGTH ? (timeAt(body, COMMAND_AT) === null ? 1 : 5) : commandLength;
  let at = COMMAND_AT + length;
  const end = at + 2 + body.u16(at);
  at += 2;
  while (at + 2 <= end) {
    const next = at + 2 + body.u8(at + 1);
    if (body.u8(at) === DESCRIPTOR_SEGMENTATION && next <= end) {
      const found = parseSegmentation(body, at + 2, next);
      if (found !== null) return { ...found, time, autoReturn: false };
    }
    at = next;
  }
  return null;
}

/** segmentation_descriptor (§10.3.3) from its identifier on. */
function parseSegmentation(body: SectionBytes, from: number, end: number): Pick<Splice, 'id' | 'type' | 'duration'> | null {
  if (end - from < 9 || body.u32(from) !== CUEI) return null;
  const id = body.u32(from + 4);
  if ((body.u8(from + 8) & 0x80) !== 0) return null;
  const flags = body.u8(from + 9);
  let at = from + 10;
  if ((flags & 0x80) === 0) at += 1 + 6 * body.u8(at);
  let duration: number | null = null;
  if ((flags & 0x40) !== 0) {
    duration = body.u8(at) * LOW_32 + body.u32(at + 1);
    at += 5;
  }
  at += 2 + body.u8(at + 1);
  if (at >= end) return null;
  const type = body.u8(at);
  return { id, duration, type: STARTS.has(type) ? 'out' : ENDS.has(type) ? 'in' : 'other' };
}

/** splice_time(); null without a time. */
function timeAt(body: SectionBytes, at: number): number | null {
  return (body.u8(at) & 0x80) === 0 ? null : body.u33(at);
}

function adjusted(time: number | null, adjustment: number): number | null {
  return time === null ? null : wrap33(time + adjustment);
}

/** Five bytes: the upper bits of `prefix`, then 33 bits of `ticks`. */
function put33(writer: ByteWriter, prefix: number, ticks: number): void {
  const value = wrap33(Math.round(ticks));
  writer.u8((prefix & 0xfe) | (value >= LOW_32 ? 1 : 0)).u32(value % LOW_32);
}

/** Reads of a section; they throw beyond its end, which is before the CRC. */
class SectionBytes {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  u8(at: number): number {
    this.#require(at, 1);
    return this.#view.getUint8(at);
  }

  u16(at: number): number {
    this.#require(at, 2);
    return this.#view.getUint16(at);
  }

  u32(at: number): number {
    this.#require(at, 4);
    return this.#view.getUint32(at);
  }

  /** The lowest bit of the byte at `at` and the four bytes behind it. */
  u33(at: number): number {
    return (this.u8(at) & 1) * LOW_32 + this.u32(at + 1);
  }

  #require(at: number, count: number): void {
    if (at + count > this.#bytes.length - CRC_LENGTH) throw new ProtocolError('SCTE35', 'the section ends too early', at);
  }
}
