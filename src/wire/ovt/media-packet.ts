/** The content of an OVT media packet once its parts are joined: a header of 36 bytes and the data, all big-endian. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { readInt64 } from './packet.ts';

/** Track id 4, pts 8, dts 8, duration 8, media type, flag, format, packet type, data size 4. */
export const MEDIA_HEADER_LENGTH = 36;
/** Where each field of the header begins, bytes. */
export const MEDIA_FIELD = {
  TRACK_ID: 0,
  PTS: 4,
  DTS: 12,
  DURATION: 20,
  MEDIA_TYPE: 28,
  FLAG: 29,
  FORMAT: 30,
  PACKET_TYPE: 31,
  DATA_SIZE: 32,
} as const;

/** One access unit or frame; times in ticks of its track. */
export interface OvtMediaPacket {
  readonly trackId: number;
  readonly pts: number;
  readonly dts: number;
  readonly duration: number;
  /** The numbers of `wire-numbers.ts`. */
  readonly flag: number;
  readonly format: number;
  readonly packetType: number;
  /** A view into the payload. */
  readonly data: Uint8Array;
}

/** Throws `OVT_MEDIA` or `OVT_NUMBER`. */
export function parseMediaPacket(payload: Uint8Array): OvtMediaPacket {
  if (payload.length < MEDIA_HEADER_LENGTH) {
    throw new ProtocolError('OVT_MEDIA', `a media packet of ${payload.length} bytes, at least ${MEDIA_HEADER_LENGTH} expected`, 0);
  }
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  const size = view.getUint32(MEDIA_FIELD.DATA_SIZE);
  const left = payload.length - MEDIA_HEADER_LENGTH;
  if (size !== left) throw new ProtocolError('OVT_MEDIA', `data of ${size} bytes announced, ${left} came`, MEDIA_FIELD.DATA_SIZE);
  return {
    trackId: view.getUint32(MEDIA_FIELD.TRACK_ID),
    pts: readInt64(view, MEDIA_FIELD.PTS),
    dts: readInt64(view, MEDIA_FIELD.DTS),
    duration: readInt64(view, MEDIA_FIELD.DURATION),
    flag: view.getUint8(MEDIA_FIELD.FLAG),
    format: view.getUint8(MEDIA_FIELD.FORMAT),
    packetType: view.getUint8(MEDIA_FIELD.PACKET_TYPE),
    data: payload.subarray(MEDIA_HEADER_LENGTH),
  };
}
