/** The common part of the enhanced audio and video tag headers: ModEx and multitrack (Enhanced RTMP v2). */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Layouts of the tracks in a multitrack tag (AvMultitrackType). */
const MultitrackType = { ONE_TRACK: 0, MANY_TRACKS: 1, MANY_TRACKS_MANY_CODECS: 2 } as const;

const FOURCC_LENGTH = 4;
const TRACK_SIZE_LENGTH = 3;
const MAX_SHORT_MOD_EX = 256;
const TIMESTAMP_OFFSET_NANO = 0;

/** Packet type numbers that differ between audio and video. */
export interface ExPacketTypes {
  readonly multitrack: number;
  readonly modEx: number;
}

/** One track's part of an enhanced tag. */
export interface ExTrackBody {
  readonly trackId: number;
  readonly fourCc: string;
  /** View of the tag. */
  readonly body: Buffer;
}

/** The common fields of an enhanced audio or video tag. */
export interface ExTag {
  readonly packetType: number;
  /** Nanoseconds to add to the timestamp, below one millisecond. */
  readonly nanoOffset: number;
  readonly tracks: readonly ExTrackBody[];
}

/** Follows the ModEx chain, which begins behind the first byte. Throws `ProtocolError`. */
export function parseModEx(tag: Buffer, types: ExPacketTypes): { packetType: number; nanoOffset: number; offset: number } {
  let packetType = (tag[0] ?? 0) & 0x0f;
  let nanoOffset = 0;
  let offset = 1;
  while (packetType === types.modEx) {
    requireBytes(tag, offset, 1);
    let size = tag.readUInt8(offset) + 1;
    offset += 1;
    if (size === MAX_SHORT_MOD_EX) {
      requireBytes(tag, offset, 2);
      size = tag.readUInt16BE(offset) + 1;
      offset += 2;
    }
    requireBytes(tag, offset, size + 1);
    const next = tag.readUInt8(offset + size);
    if (next >> 4 === TIMESTAMP_OFFSET_NANO && size >= 3) nanoOffset = tag.readUIntBE(offset, 3);
    packetType = next & 0x0f;
    offset += size + 1;
  }
  return { packetType, nanoOffset, offset };
}

/** Splits the data after the ModEx chain into tracks. Throws `ProtocolError`. */
export function parseExTracks(tag: Buffer, head: { packetType: number; nanoOffset: number; offset: number }, types: ExPacketTypes): ExTag {
  const { packetType, nanoOffset, offset } = head;
  if (packetType !== types.multitrack) {
    return { packetType, nanoOffset, tracks: [{ trackId: 0, fourCc: fourCcAt(tag, offset), body: tag.subarray(offset + FOURCC_LENGTH) }] };
  }
  requireBytes(tag, offset, 1);
  const kind = tag.readUInt8(offset) >> 4;
  const innerType = tag.readUInt8(offset) & 0x0f;
  if (innerType === types.multitrack || innerType === types.modEx) {
    throw new ProtocolError('FLV_MULTITRACK', `packet type ${innerType} inside a multitrack tag`, offset);
  }
  return { packetType: innerType, nanoOffset, tracks: parseTrackList(tag, offset + 1, kind) };
}

function parseTrackList(tag: Buffer, start: number, kind: number): ExTrackBody[] {
  if (kind > MultitrackType.MANY_TRACKS_MANY_CODECS) throw new ProtocolError('FLV_MULTITRACK', `unknown multitrack type ${kind}`, start);
  let offset = start;
  let fourCc = '';
  if (kind !== MultitrackType.MANY_TRACKS_MANY_CODECS) {
    fourCc = fourCcAt(tag, offset);
    offset += FOURCC_LENGTH;
  }
  if (kind === MultitrackType.ONE_TRACK) {
    requireBytes(tag, offset, 1);
    return [{ trackId: tag.readUInt8(offset), fourCc, body: tag.subarray(offset + 1) }];
  }
  const tracks: ExTrackBody[] = [];
  while (offset < tag.length) {
    if (kind === MultitrackType.MANY_TRACKS_MANY_CODECS) {
      fourCc = fourCcAt(tag, offset);
      offset += FOURCC_LENGTH;
    }
    requireBytes(tag, offset, 1 + TRACK_SIZE_LENGTH);
    const trackId = tag.readUInt8(offset);
    const size = tag.readUIntBE(offset + 1, TRACK_SIZE_LENGTH);
    offset += 1 + TRACK_SIZE_LENGTH;
    requireBytes(tag, offset, size);
    tracks.push({ trackId, fourCc, body: tag.subarray(offset, offset + size) });
    offset += size;
  }
  return tracks;
}

function fourCcAt(tag: Buffer, offset: number): string {
  requireBytes(tag, offset, FOURCC_LENGTH);
  return tag.toString('latin1', offset, offset + FOURCC_LENGTH);
}

/** `payload` with the methods of a Buffer, not copied. */
export function asBuffer(payload: Uint8Array): Buffer {
  return Buffer.isBuffer(payload) ? payload : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
}

/** Throws `ProtocolError` unless `tag` has `length` bytes at `offset`. */
export function requireBytes(tag: Buffer, offset: number, length: number): void {
  if (tag.length - offset < length) {
    throw new ProtocolError('FLV_TRUNCATED', `${length} bytes needed, ${Math.max(0, tag.length - offset)} left`, offset);
  }
}
