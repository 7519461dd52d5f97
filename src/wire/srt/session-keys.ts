/** The stream keys of one connection: made, received, used and refreshed, draft-sharabayko-srt-01 §6. */
import { randomBytes } from 'node:crypto';
import { KeyFlag } from './header.ts';
import { type KeyLength, type KeyMaterial, parseKeyMaterial, serializeKeyMaterial } from './key-material.ts';
import { deriveWrappingKey, unwrapKeys, wrapKeys } from './key-wrap.ts';
import { PayloadCipher } from './payload-cipher.ts';
import { ReceivingKeys, type StreamKey } from './receiving-keys.ts';

const SALT_LENGTH = 16;

/** When keys are replaced, in packets sent. */
export interface KeyRefresh {
  /** A key serves this many packets. */
  readonly every: number;
  /** Its successor is announced this many packets before. */
  readonly announceBefore: number;
}

/** A new key for every 2^24 packets, announced 2^12 before, as the draft advises. */
export const DEFAULT_KEY_REFRESH: KeyRefresh = { every: 2 ** 24, announceBefore: 2 ** 12 };

interface KeyPair {
  even: StreamKey | null;
  odd: StreamKey | null;
}

/** The keys that both directions share at first; each sender replaces its own later. */
export class SessionKeys {
  /** Number of changes to another key for sending. */
  changes = 0;
  readonly #passphrase: string;
  readonly #refresh: KeyRefresh;
  readonly #receiving = new ReceivingKeys();
  readonly #sending: KeyPair = { even: null, odd: null };
  #salt: Uint8Array = new Uint8Array(0);
  #wrappingKey: Uint8Array = new Uint8Array(0);
  #keyLength: KeyLength = 16;
  #current: 'even' | 'odd' = 'even';
  #packets = 0;
  #announcement: Uint8Array | null = null;
  #confirmed = false;

  private constructor(passphrase: string, refresh: KeyRefresh) {
    this.#passphrase = passphrase;
    this.#refresh = refresh;
  }

  /** Keys of the caller: new and random. */
  static generate(passphrase: string, keyLength: KeyLength, refresh: KeyRefresh = DEFAULT_KEY_REFRESH): SessionKeys {
    const keys = new SessionKeys(passphrase, refresh);
    keys.#keyLength = keyLength;
    keys.#salt = randomBytes(SALT_LENGTH);
    keys.#wrappingKey = deriveWrappingKey(passphrase, keys.#salt, keyLength);
    const key = keys.#makeKey();
    keys.#sending.even = key;
    keys.#receiving.set(KeyFlag.EVEN, key);
    return keys;
  }

  /** Keys of the listener, from the caller's key material; null if the passphrase differs. Throws `ProtocolError`. */
  static receive(passphrase: string, content: Uint8Array, refresh: KeyRefresh = DEFAULT_KEY_REFRESH): SessionKeys | null {
    const keys = new SessionKeys(passphrase, refresh);
    const taken = keys.#take(content);
    if (taken === null) return null;
    keys.#sending.even = taken.even;
    keys.#sending.odd = taken.odd;
    keys.#current = keys.#sending.even === null ? 'odd' : 'even';
    return keys;
  }

  /** Bytes of each key. */
  get keyLength(): KeyLength {
    return this.#keyLength;
  }

  /** The key material of all keys for sending, for a handshake. */
  message(): Uint8Array {
    const { even, odd } = this.#sending;
    const parts = [even, odd].flatMap((key) => (key === null ? [] : [key.bytes]));
    const keys = (even === null ? 0 : KeyFlag.EVEN) | (odd === null ? 0 : KeyFlag.ODD);
    const wrapped = wrapKeys(this.#wrappingKey, Buffer.concat(parts));
    return serializeKeyMaterial({ keyLength: this.#keyLength, keys, salt: this.#salt, wrapped });
  }

  /** Adopts the peer's sending keys; false if its passphrase differs. Throws `ProtocolError`. */
  accept(content: Uint8Array): boolean {
    return this.#take(content) !== null;
  }

  /** The keys of the material; null if it was wrapped with another passphrase. */
  #take(content: Uint8Array): KeyPair | null {
    const material = parseKeyMaterial(content);
    const wrappingKey = this.#wrappingKeyFor(material);
    const bytes = unwrapKeys(wrappingKey, material.wrapped);
    if (bytes === null) return null;
    if (this.#salt.length === 0) {
      this.#salt = material.salt.slice();
      this.#wrappingKey = wrappingKey;
      this.#keyLength = material.keyLength;
    }
    const taken: KeyPair = { even: null, odd: null };
    let at = 0;
    for (const [flag, slot] of [[KeyFlag.EVEN, 'even'] as const, [KeyFlag.ODD, 'odd'] as const]) {
      if ((material.keys & flag) === 0) continue;
      const key = bytes.subarray(at, at + material.keyLength);
      at += material.keyLength;
      taken[slot] = { bytes: key, cipher: new PayloadCipher(key, material.salt) };
      this.#receiving.set(flag, taken[slot]);
    }
    return taken;
  }

  /** Decrypts a payload in place; false while its key has not arrived. */
  decrypt(keyFlag: number, sequence: number, datagram: Uint8Array, start: number): boolean {
    const key = this.#receiving.of(keyFlag, sequence);
    if (key === null) return false;
    key.cipher.apply(sequence, datagram, start, datagram.length - start, datagram, start);
    return true;
  }

  /** The key that the next `encrypt` uses. */
  get keyFlag(): KeyFlag {
    return this.#current === 'even' ? KeyFlag.EVEN : KeyFlag.ODD;
  }

  /** The encrypted payload, in a new buffer. Counts packets and changes to the next key when due. */
  encrypt(sequence: number, payload: Uint8Array): Uint8Array {
    const key = this.#sending[this.#current];
    if (key === null) throw new Error('no key to send with');
    const encrypted = Buffer.allocUnsafe(payload.length);
    key.cipher.apply(sequence, payload, 0, payload.length, encrypted, 0);
    this.#packets += 1;
    this.#refreshKeys();
    return encrypted;
  }

  /** Key material to send again and again until the peer confirms it; null when there is none. */
  get announcement(): Uint8Array | null {
    return this.#confirmed ? null : this.#announcement;
  }

  /** The peer's answer to an announcement: the same bytes confirm it. Other answers are ignored, so the announcement is repeated. */
  confirm(content: Uint8Array): void {
    if (this.#announcement !== null && Buffer.compare(this.#announcement, content) === 0) this.#confirmed = true;
  }

  #refreshKeys(): void {
    const { every, announceBefore } = this.#refresh;
    const next = this.#current === 'even' ? 'odd' : 'even';
    if (this.#announcement === null && this.#packets >= every - announceBefore) {
      this.#sending[next] = this.#makeKey();
      this.#announcement = this.message();
      this.#confirmed = false;
    }
    // A peer that has not confirmed the new key could not decrypt packets sent with it.
    if (this.#announcement !== null && this.#confirmed && this.#packets >= every) {
      this.#sending[this.#current] = null;
      this.#current = next;
      this.#packets = 0;
      this.#announcement = null;
      this.changes += 1;
    }
  }

  #makeKey(): StreamKey {
    const bytes = randomBytes(this.#keyLength);
    return { bytes, cipher: new PayloadCipher(bytes, this.#salt) };
  }

  /** Deriving is expensive, and refreshes keep the salt. */
  #wrappingKeyFor({ salt, keyLength }: KeyMaterial): Uint8Array {
    const known = keyLength === this.#keyLength && Buffer.compare(salt, this.#salt) === 0;
    return known ? this.#wrappingKey : deriveWrappingKey(this.#passphrase, salt, keyLength);
  }
}
