/**
 * HMAC-SHA1-80 of SRTP (RFC 3711 section 4.2) as the two hashes that it is (RFC 2104): `createHmac` would make an object and a key for each
 * packet, at five times the cost, and its keys cannot be wiped.
 */
import { hash } from 'node:crypto';

const TAG_LENGTH = 10;
const BLOCK = 64;
const DIGEST = 20;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Room for the packets of usual networks with the hashed suffix; for longer packets memory is allocated. */
const ROOM = 2048;

/** Shared by all: an inner pad, a packet and its tail. */
const scratch = Buffer.alloc(BLOCK + ROOM);

/** One for each authentication key. It keeps pads instead of the key. */
export class SrtpMac {
  readonly #inner = Buffer.alloc(BLOCK, INNER_PAD);
  /** The pad, and room for the inner digest. */
  readonly #outer = Buffer.alloc(BLOCK + DIGEST, OUTER_PAD);
  readonly #digest = Buffer.alloc(DIGEST);
  readonly #tag = this.#digest.subarray(0, TAG_LENGTH);

  /** `key`: 64 bytes at most. */
  constructor(key: Uint8Array) {
    key.forEach((byte, at) => {
      this.#inner[at] = byte ^ INNER_PAD;
      this.#outer[at] = byte ^ OUTER_PAD;
    });
  }

  /** The tag of `data` followed by `tail`; valid until the next call. */
  tag(data: Uint8Array, tail: Uint8Array | null): Buffer {
    const end = BLOCK + data.length + (tail?.length ?? 0);
    const whole = end <= scratch.length ? scratch : Buffer.allocUnsafe(end);
    whole.set(this.#inner);
    whole.set(data, BLOCK);
    if (tail !== null) whole.set(tail, BLOCK + data.length);
    // Digests as binary strings: allocating a buffer for a digest costs as much as the digest.
    this.#outer.write(hash('sha1', whole.subarray(0, end), 'binary'), BLOCK, 'latin1');
    whole.fill(0, 0, BLOCK);
    this.#digest.write(hash('sha1', this.#outer, 'binary'), 'latin1');
    return this.#tag;
  }

  /** Erases the key: tags made afterwards are worthless. Idempotent. */
  close(): void {
    this.#inner.fill(0);
    this.#outer.fill(0);
  }
}
