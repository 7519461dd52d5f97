/** SRTP and SRTCP protection of one direction (RFC 3711, RFC 7714), with node's crypto. */
import { createCipheriv, createDecipheriv, timingSafeEqual } from 'node:crypto';
import { ProtocolError } from '../../util/protocol-error.ts';
import { rtpHeaderLength } from './packet-head.ts';
import { MASTER_KEY_LENGTH, SrtpProfile, saltLength } from './profile.ts';
import { SrtpMac } from './srtp-mac.ts';

const HMAC_KEY_LENGTH = 20;
const HMAC_TAG_LENGTH = 10;
const GCM_TAG_LENGTH = 16;
const RTCP_HEADER = 8;
const ENCRYPTED = 0x8000_0000;
const LABELS = { rtp: 0, rtcp: 3 } as const;

/** AES-CM key derivation with a rate of 0 (RFC 3711 section 4.3); a GCM salt counts as two bytes longer (RFC 7714 section 11). */
function derive(masterKey: Uint8Array, masterSalt: Uint8Array, label: number, length: number): Buffer {
  const iv = Buffer.alloc(16);
  iv.set(masterSalt);
  iv[7] = (iv[7] ?? 0) ^ label;
  const key = createCipheriv('aes-128-ctr', masterKey, iv).update(Buffer.alloc(length));
  iv.fill(0);
  return key;
}

/** Keeps only its keys: the caller handles indices and replays. */
export class SrtpCipher {
  readonly #gcm: boolean;
  readonly #key: Buffer;
  readonly #salt: Buffer;
  readonly #mac: SrtpMac;

  /** Throws TypeError if key or salt has the wrong length for the profile. */
  constructor(profile: SrtpProfile, masterKey: Uint8Array, masterSalt: Uint8Array, kind: keyof typeof LABELS) {
    if (masterKey.length !== MASTER_KEY_LENGTH || masterSalt.length !== saltLength(profile)) {
      throw new TypeError(`profile ${profile} takes a key of ${MASTER_KEY_LENGTH} and a salt of ${saltLength(profile)} bytes`);
    }
    const label = LABELS[kind];
    this.#gcm = profile === SrtpProfile.AEAD_AES_128_GCM;
    this.#key = derive(masterKey, masterSalt, label, MASTER_KEY_LENGTH);
    const macKey = derive(masterKey, masterSalt, label + 1, HMAC_KEY_LENGTH);
    this.#mac = new SrtpMac(macKey);
    macKey.fill(0);
    this.#salt = derive(masterKey, masterSalt, label + 2, saltLength(profile));
  }

  /** Erases the keys: it protects no packets any more. Idempotent. */
  close(): void {
    for (const secret of [this.#key, this.#salt]) secret.fill(0);
    this.#mac.close();
  }

  /** Bytes behind the payload of an RTP packet. */
  get tagLength(): number {
    return this.#gcm ? GCM_TAG_LENGTH : HMAC_TAG_LENGTH;
  }

  /** `index`: 48 bits, the roll-over count above the sequence number. */
  protectRtp(packet: Uint8Array, index: number): Buffer {
    const header = rtpHeaderLength(packet);
    if (header === 0) throw new ProtocolError('RTP_HEADER', 'the RTP header is not complete', 0);
    const ssrc = read32(packet, 8);
    const clear = packet.subarray(0, header);
    if (this.#gcm) {
      const cipher = createCipheriv('aes-128-gcm', this.#key, this.#gcmIv(ssrc, index));
      cipher.setAAD(clear);
      return Buffer.concat([clear, cipher.update(packet.subarray(header)), cipher.final(), cipher.getAuthTag()]);
    }
    const body = Buffer.concat([clear, this.#keyStream(ssrc, index, packet.subarray(header))]);
    return Buffer.concat([body, this.#mac.tag(body, rollOver(index))]);
  }

  /** Throws ProtocolError if the packet is malformed or not authentic. */
  unprotectRtp(packet: Uint8Array, index: number): Buffer {
    const header = rtpHeaderLength(packet);
    const end = packet.length - this.tagLength;
    if (header === 0 || end < header) throw new ProtocolError('SRTP_SHORT', 'the SRTP packet is not complete', 0);
    const ssrc = read32(packet, 8);
    const clear = packet.subarray(0, header);
    const sealed = packet.subarray(header, end);
    if (this.#gcm) {
      const plain = this.#open(this.#gcmIv(ssrc, index), clear, sealed, packet.subarray(end));
      return Buffer.concat([clear, plain]);
    }
    if (!timingSafeEqual(this.#mac.tag(packet.subarray(0, end), rollOver(index)), packet.subarray(end))) throw forged();
    return Buffer.concat([clear, this.#keyStream(ssrc, index, sealed)]);
  }

  /** `index`: 31 bits, increased by one with every packet. */
  protectRtcp(packet: Uint8Array, index: number): Buffer {
    if (packet.length < RTCP_HEADER) throw new ProtocolError('RTCP_HEADER', 'the RTCP header is not complete', 0);
    const ssrc = read32(packet, 4);
    const clear = packet.subarray(0, RTCP_HEADER);
    const trailer = Buffer.alloc(4);
    trailer.writeUInt32BE((index | ENCRYPTED) >>> 0);
    if (this.#gcm) {
      const cipher = createCipheriv('aes-128-gcm', this.#key, this.#gcmIv(ssrc, index));
      cipher.setAAD(Buffer.concat([clear, trailer]));
      return Buffer.concat([clear, cipher.update(packet.subarray(RTCP_HEADER)), cipher.final(), cipher.getAuthTag(), trailer]);
    }
    const body = Buffer.concat([clear, this.#keyStream(ssrc, index, packet.subarray(RTCP_HEADER)), trailer]);
    return Buffer.concat([body, this.#mac.tag(body, null)]);
  }

  /** The plain packet and its index. Throws ProtocolError if the packet is malformed, unencrypted, or not authentic. */
  unprotectRtcp(packet: Uint8Array): { packet: Buffer; index: number } {
    const end = packet.length - this.tagLength - 4;
    if (end < RTCP_HEADER) throw new ProtocolError('SRTCP_SHORT', 'the SRTCP packet is not complete', 0);
    const at = this.#gcm ? packet.length - 4 : end;
    const flagged = read32(packet, at);
    // Unencrypted SRTCP is refused: peers never send it.
    if (flagged < ENCRYPTED) throw forged();
    const index = flagged - ENCRYPTED;
    const ssrc = read32(packet, 4);
    const clear = packet.subarray(0, RTCP_HEADER);
    const sealed = packet.subarray(RTCP_HEADER, end);
    if (this.#gcm) {
      const known = Buffer.concat([clear, packet.subarray(at)]);
      const plain = this.#open(this.#gcmIv(ssrc, index), known, sealed, packet.subarray(end, at));
      return { packet: Buffer.concat([clear, plain]), index };
    }
    if (!timingSafeEqual(this.#mac.tag(packet.subarray(0, end + 4), null), packet.subarray(end + 4))) throw forged();
    return { packet: Buffer.concat([clear, this.#keyStream(ssrc, index, sealed)]), index };
  }

  #open(iv: Buffer, known: Uint8Array, sealed: Uint8Array, tag: Uint8Array): Buffer {
    const decipher = createDecipheriv('aes-128-gcm', this.#key, iv, { authTagLength: GCM_TAG_LENGTH });
    decipher.setAAD(known);
    decipher.setAuthTag(tag);
    const plain = decipher.update(sealed);
    try {
      decipher.final();
    } catch {
      throw forged();
    }
    return plain;
  }

  #keyStream(ssrc: number, index: number, data: Uint8Array): Buffer {
    const iv = Buffer.alloc(16);
    iv.writeUInt32BE(ssrc, 4);
    iv.writeUIntBE(index, 8, 6);
    for (let n = 0; n < this.#salt.length; n += 1) iv[n] = (iv[n] ?? 0) ^ (this.#salt[n] ?? 0);
    return createCipheriv('aes-128-ctr', this.#key, iv).update(data);
  }

  /** 16 zero bits, SSRC, 48 bits of index, XOR salt (RFC 7714 sections 8.1 and 9.1). */
  #gcmIv(ssrc: number, index: number): Buffer {
    const iv = Buffer.alloc(12);
    iv.writeUInt32BE(ssrc, 2);
    iv.writeUIntBE(index, 6, 6);
    for (let n = 0; n < this.#salt.length; n += 1) iv[n] = (iv[n] ?? 0) ^ (this.#salt[n] ?? 0);
    return iv;
  }
}

function rollOver(index: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Math.floor(index / 0x1_0000));
  return bytes;
}

function read32(packet: Uint8Array, at: number): number {
  return (((packet[at] ?? 0) << 24) | ((packet[at + 1] ?? 0) << 16) | ((packet[at + 2] ?? 0) << 8) | (packet[at + 3] ?? 0)) >>> 0;
}

function forged(): ProtocolError {
  return new ProtocolError('SRTP_FORGED', 'the packet is not authentic');
}
