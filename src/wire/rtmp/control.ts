/** Protocol control and user control messages (RTMP 1.0 §5.4, §7.1.7). */
import { ProtocolError } from '../../util/protocol-error.ts';
import { CONTROL_CHUNK_STREAM, MessageType, type RtmpMessage } from './message.ts';

const EVENT_TYPE_LENGTH = 2;

/** A control message whose payload is one 32-bit number: chunk size, abort, acknowledgement, window. */
export function controlMessage(typeId: number, value: number): RtmpMessage {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value >>> 0, 0);
  return control(typeId, payload);
}

/** SetPeerBandwidth; `limit` is one of `PeerBandwidthLimit`. */
export function peerBandwidthMessage(window: number, limit: number): RtmpMessage {
  const payload = Buffer.allocUnsafe(5);
  payload.writeUInt32BE(window, 0);
  payload.writeUInt8(limit, 4);
  return control(MessageType.SET_PEER_BANDWIDTH, payload);
}

/** A user control event with its 32-bit values (stream id, time, buffer length). */
export function userControlMessage(event: number, ...values: readonly number[]): RtmpMessage {
  const payload = Buffer.allocUnsafe(EVENT_TYPE_LENGTH + 4 * values.length);
  payload.writeUInt16BE(event, 0);
  values.forEach((value, i) => {
    payload.writeUInt32BE(value >>> 0, EVENT_TYPE_LENGTH + 4 * i);
  });
  return control(MessageType.USER_CONTROL, payload);
}

/** The number inside a message written by `controlMessage`. Throws `ProtocolError`. */
export function parseControlValue(message: RtmpMessage): number {
  return readUInt32(message, 0);
}

/** Event type and first value of a user control message; the value is 0 when there is none. Throws `ProtocolError`. */
export function parseUserControl(message: RtmpMessage): { event: number; value: number } {
  const { payload } = message;
  if (payload.length < EVENT_TYPE_LENGTH) throw truncated(message);
  const event = viewOf(payload).getUint16(0);
  return { event, value: payload.length < EVENT_TYPE_LENGTH + 4 ? 0 : readUInt32(message, EVENT_TYPE_LENGTH) };
}

function control(typeId: number, payload: Buffer): RtmpMessage {
  return { chunkStreamId: CONTROL_CHUNK_STREAM, typeId, streamId: 0, timestamp: 0, payload };
}

function readUInt32(message: RtmpMessage, offset: number): number {
  if (message.payload.length < offset + 4) throw truncated(message);
  return viewOf(message.payload).getUint32(offset);
}

function viewOf(payload: Uint8Array): DataView {
  return new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
}

function truncated(message: RtmpMessage): ProtocolError {
  return new ProtocolError('RTMP_CONTROL_TRUNCATED', `control message of type ${message.typeId} has only ${message.payload.length} bytes`);
}
