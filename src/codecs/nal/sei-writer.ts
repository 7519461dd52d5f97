/** Writes supplemental enhancement information (ISO/IEC 14496-10 §7.3.2.3, 23008-2 §7.3.5). */
import { VideoCodec } from '../../media/codec.ts';
import { H264NalType, h264NalType } from '../h264/nal-type.ts';
import { H265NalType, h265NalType } from '../h265/nal-type.ts';
import { LengthPrefixedCursor } from './nal-cursor.ts';
import { escapeRbsp } from './rbsp.ts';

/** Payload type of messages that begin with their writer's UUID. */
export const SEI_USER_DATA_UNREGISTERED = 5;
/** rbsp_trailing_bits. */
const STOP = 0x80;
const LENGTH_SIZE = 4;

/** Whether SEI can be inserted into video of this codec. */
export function carriesSei(codec: VideoCodec): boolean {
  return codec === VideoCodec.H264 || codec === VideoCodec.H265;
}

/** A whole NAL unit with one message. */
export function buildSeiUnit(codec: VideoCodec, type: number, payload: Uint8Array): Uint8Array {
  const header = codec === VideoCodec.H264 ? [H264NalType.SEI] : [H265NalType.SEI_PREFIX << 1, 1];
  const message = [...counted(type), ...counted(payload.length)];
  return new Uint8Array(
    Buffer.concat([Uint8Array.from(header), escapeRbsp(Buffer.concat([Uint8Array.from(message), payload, Uint8Array.of(STOP)]))]),
  );
}

/** A copy of `frame`, NAL units behind 4-byte lengths, with `units` before its first slice. Throws `ProtocolError` for a broken frame. */
export function insertBeforeSlices(codec: VideoCodec, frame: Uint8Array, units: readonly Uint8Array[]): Uint8Array {
  const nals = new LengthPrefixedCursor(frame);
  let at = frame.length;
  while (nals.next()) {
    if (!isSlice(codec, frame[nals.start] ?? 0)) continue;
    at = nals.start - LENGTH_SIZE;
    break;
  }
  const pieces = units.flatMap((unit) => {
    const length = Buffer.alloc(LENGTH_SIZE);
    length.writeUInt32BE(unit.length);
    return [length, unit];
  });
  return new Uint8Array(Buffer.concat([frame.subarray(0, at), ...pieces, frame.subarray(at)]));
}

/** The lowest numbers are coded slices. */
function isSlice(codec: VideoCodec, firstByte: number): boolean {
  if (codec === VideoCodec.H265) return h265NalType(firstByte) < H265NalType.VPS;
  const type = h264NalType(firstByte);
  return type >= 1 && type <= H264NalType.IDR;
}

/** A number as a sum of bytes: another byte follows every 255. */
function counted(value: number): number[] {
  return [...new Array<number>(Math.floor(value / 255)).fill(255), value % 255];
}
