/** RTMP messages and their type numbers (RTMP 1.0 §5.4, §6, §7). */

/** Message type ids. */
export const MessageType = {
  SET_CHUNK_SIZE: 1,
  ABORT: 2,
  ACKNOWLEDGEMENT: 3,
  USER_CONTROL: 4,
  WINDOW_ACK_SIZE: 5,
  SET_PEER_BANDWIDTH: 6,
  AUDIO: 8,
  VIDEO: 9,
  DATA_AMF3: 15,
  SHARED_OBJECT_AMF3: 16,
  COMMAND_AMF3: 17,
  DATA_AMF0: 18,
  SHARED_OBJECT_AMF0: 19,
  COMMAND_AMF0: 20,
  AGGREGATE: 22,
} as const;

/** Event types of a user control message. */
export const UserControlEvent = {
  STREAM_BEGIN: 0,
  STREAM_EOF: 1,
  STREAM_DRY: 2,
  SET_BUFFER_LENGTH: 3,
  STREAM_IS_RECORDED: 4,
  PING_REQUEST: 6,
  PING_RESPONSE: 7,
} as const;

/** Limit types of SetPeerBandwidth. */
export const PeerBandwidthLimit = { HARD: 0, SOFT: 1, DYNAMIC: 2 } as const;

/** Chunk stream of protocol control and user control messages. */
export const CONTROL_CHUNK_STREAM = 2;
/** The chunk stream on which this implementation writes commands. */
export const COMMAND_CHUNK_STREAM = 3;
/** The initial chunk size of both directions. */
export const DEFAULT_CHUNK_SIZE = 128;
/** Largest length a message header can carry, so a larger chunk size means nothing more. */
export const MAX_MESSAGE_LENGTH = 0xff_ffff;

/** One message, reassembled or about to be cut into chunks. */
export interface RtmpMessage {
  readonly chunkStreamId: number;
  readonly typeId: number;
  /** Message stream id: 0 for the connection itself. */
  readonly streamId: number;
  /** Milliseconds, unsigned 32 bits; wraps. */
  readonly timestamp: number;
  /** Owned by the receiver of the message. */
  readonly payload: Uint8Array;
}
