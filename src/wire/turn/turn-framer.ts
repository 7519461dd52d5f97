/** TURN on a TCP connection (RFC 8656 section 12.5): STUN messages, and ChannelData padded to four bytes. */
import { ProtocolError } from '../../util/protocol-error.ts';

const STUN_HEADER = 20;
const CHANNEL_HEADER = 4;
/** A datagram in its indication is always shorter. */
const MAX_FRAME = 4096;
/** RFC 8656 section 12: other numbers are reserved. */
const FIRST_CHANNEL = 0x4000;
const LAST_CHANNEL = 0x4fff;

/** Complete messages; bytes are views into the received buffer. */
export type TurnFrame =
  | { readonly kind: 'message'; readonly bytes: Buffer }
  | { readonly kind: 'channel'; readonly channel: number; readonly datagram: Buffer };

/** One for each connection: keeps an incomplete frame. Unusable after an exception. */
export class TurnFramer {
  #held: Buffer = Buffer.alloc(0);

  /** Adds received bytes and returns the frames they complete. Throws ProtocolError if they are not TURN. */
  push(chunk: Buffer): readonly TurnFrame[] {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const frames: TurnFrame[] = [];
    let at = 0;
    while (at + CHANNEL_HEADER <= bytes.length) {
      const first = bytes.readUInt16BE(at);
      const length = bytes.readUInt16BE(at + 2);
      const isChannel = isChannelNumber(first);
      if (!isChannel && first >= FIRST_CHANNEL) throw new ProtocolError('TURN_FRAME', `0x${first.toString(16)} begins no TURN frame`, at);
      if (length > MAX_FRAME) throw new ProtocolError('TURN_FRAME', `a frame of ${length} bytes is longer than ${MAX_FRAME}`, at + 2);
      const head = isChannel ? CHANNEL_HEADER : STUN_HEADER;
      const end = at + head + length;
      const next = isChannel ? end + paddingOf(length) : end;
      if (next > bytes.length) break;
      if (isChannel) frames.push({ kind: 'channel', channel: first, datagram: bytes.subarray(at + head, end) });
      else frames.push({ kind: 'message', bytes: bytes.subarray(at, end) });
      at = next;
    }
    this.#held = Buffer.from(bytes.subarray(at));
    return frames;
  }
}

/** True for valid channel numbers; the same bits distinguish ChannelData from STUN. */
export function isChannelNumber(number: number): boolean {
  return number >= FIRST_CHANNEL && number <= LAST_CHANNEL;
}

/** One datagram as ChannelData on a TCP stream. */
export function frameChannelData(channel: number, datagram: Uint8Array): Buffer {
  const frame = Buffer.alloc(CHANNEL_HEADER + datagram.length + paddingOf(datagram.length));
  frame.writeUInt16BE(channel, 0);
  frame.writeUInt16BE(datagram.length, 2);
  frame.set(datagram, CHANNEL_HEADER);
  return frame;
}

function paddingOf(length: number): number {
  return (4 - (length % 4)) % 4;
}
