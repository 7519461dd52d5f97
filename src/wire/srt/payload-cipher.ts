/** AES in counter mode over payloads, draft-sharabayko-srt-01 §6.2.2. */
import { type Cipheriv, createCipheriv } from 'node:crypto';
import type { KeyLength } from './key-material.ts';
import { writeU32 } from './words.ts';

const BLOCK = 16;
/** Number of blocks in the largest payload of a datagram. */
const MAX_BLOCKS = 92;

/**
 * One stream key with its salt. Counter blocks are the salt's first 112 bits with the sequence number folded into
 * bits 80 to 111, then a 16-bit block number. They go through one lasting AES-ECB context, which is counter mode
 * without the cost of a new cipher for each packet.
 */
export class PayloadCipher {
  readonly #cipher: Cipheriv;
  readonly #blocks = Buffer.alloc(MAX_BLOCKS * BLOCK);
  readonly #saltWord: number;

  constructor(key: Uint8Array, salt: Uint8Array) {
    this.#cipher = createCipheriv(`aes-${(key.length as KeyLength) * 8}-ecb`, key, null);
    this.#cipher.setAutoPadding(false);
    for (let index = 0; index < MAX_BLOCKS; index += 1) {
      this.#blocks.set(salt.subarray(0, 14), index * BLOCK);
      this.#blocks.writeUInt16BE(index, index * BLOCK + 14);
    }
    this.#saltWord = this.#blocks.readUInt32BE(10);
  }

  /** Encrypts or decrypts `length` bytes of `source` from `start` into `target` at `at`; both may be the same buffer. */
  apply(sequence: number, source: Uint8Array, start: number, length: number, target: Uint8Array, at: number): void {
    const blocks = Math.ceil(length / BLOCK);
    const word = this.#saltWord ^ sequence;
    for (let index = 0; index < blocks; index += 1) writeU32(this.#blocks, index * BLOCK + 10, word);
    const stream = this.#cipher.update(this.#blocks.subarray(0, blocks * BLOCK));
    for (let index = 0; index < length; index += 1) target[at + index] = (source[start + index] ?? 0) ^ (stream[index] ?? 0);
  }
}
