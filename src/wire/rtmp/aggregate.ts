/** Aggregate messages: several audio, video and data messages in one (RTMP 1.0 §7.1.6). */
import { ProtocolError } from '../../util/protocol-error.ts';
import type { RtmpMessage } from './message.ts';

/*
 * type(1) length(3) timestamp(3) timestamp high byte(1) stream(3) payload(length) back pointer(4)
 */
const HEADER_LENGTH = 11;
const BACK_POINTER_LENGTH = 4;

/** Limit of frames in one aggregate, equal to seconds of media. */
export const MAX_AGGREGATE_MESSAGES = 1024;

/**
 * Passes the messages inside `message` to `onMessage`, one by one in order; payloads are views of its payload. Their times are shifted so
 * that the first has the time of the aggregate. Throws `ProtocolError` for a truncated message and for too many messages, after passing on
 * the earlier messages.
 */
export function readAggregate(message: RtmpMessage, onMessage: (inner: RtmpMessage) => void): void {
  const bytes = Buffer.from(message.payload.buffer, message.payload.byteOffset, message.payload.byteLength);
  let shift: number | null = null;
  let count = 0;
  let at = 0;
  while (at < bytes.length) {
    if (count === MAX_AGGREGATE_MESSAGES) {
      throw new ProtocolError('RTMP_AGGREGATE', `more than ${MAX_AGGREGATE_MESSAGES} messages in one`, at);
    }
    count += 1;
    if (bytes.length - at < HEADER_LENGTH) throw new ProtocolError('RTMP_AGGREGATE', 'message header cut off', at);
    const length = bytes.readUIntBE(at + 1, 3);
    const timestamp = (bytes.readUIntBE(at + 4, 3) | (bytes.readUInt8(at + 7) << 24)) >>> 0;
    const start = at + HEADER_LENGTH;
    if (length > bytes.length - start) {
      throw new ProtocolError('RTMP_AGGREGATE', `inner message announces ${length} bytes, ${bytes.length - start} left`, at);
    }
    shift ??= message.timestamp - timestamp;
    onMessage({
      chunkStreamId: message.chunkStreamId,
      typeId: bytes.readUInt8(at),
      streamId: message.streamId,
      timestamp: (timestamp + shift) >>> 0,
      payload: bytes.subarray(start, start + length),
    });
    at = start + length + BACK_POINTER_LENGTH;
  }
}
