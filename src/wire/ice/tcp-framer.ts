/** Datagrams on a TCP stream: two bytes of length before each (RFC 4571). */

const PREFIX = 2;
/** Longer than any datagram we want; a peer that announces more is not doing ICE. */
const MAX_FRAME = 2048;

/** One for each connection: keeps an incomplete datagram. Unusable after returning null. */
export class TcpFramer {
  #held: Buffer = Buffer.alloc(0);

  /** Adds received bytes and returns the datagrams they complete, null when the peer breaks the framing. */
  push(chunk: Buffer): readonly Buffer[] | null {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const frames: Buffer[] = [];
    let at = 0;
    while (at + PREFIX <= bytes.length) {
      const length = bytes.readUInt16BE(at);
      if (length > MAX_FRAME) return null;
      if (at + PREFIX + length > bytes.length) break;
      if (length > 0) frames.push(bytes.subarray(at + PREFIX, at + PREFIX + length));
      at += PREFIX + length;
    }
    this.#held = Buffer.from(bytes.subarray(at));
    return frames;
  }
}

/** One datagram as a frame. */
export function frameDatagram(datagram: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX + datagram.length);
  frame.writeUInt16BE(datagram.length);
  frame.set(datagram, PREFIX);
  return frame;
}

/** The datagrams of whole frames, as `frameDatagram` writes them. */
export function* unframeDatagrams(frames: Buffer): Generator<Buffer> {
  for (let at = 0; at + PREFIX <= frames.length; ) {
    const end = at + PREFIX + frames.readUInt16BE(at);
    yield frames.subarray(at + PREFIX, end);
    at = end;
  }
}
