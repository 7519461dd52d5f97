/** The digest ("complex") variant of the RTMP handshake: HMAC-SHA256 over the 1536-byte blocks. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

/** Length of C1, S1, C2 and S2. */
export const HANDSHAKE_BLOCK_LENGTH = 1536;
/** Length of an HMAC-SHA256 digest. */
const DIGEST_LENGTH = 32;

const KEY_TAIL = Buffer.from('f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae', 'hex');
const CLIENT_KEY_TEXT = Buffer.from('Genuine Adobe Flash Player 001', 'latin1');
const SERVER_KEY_TEXT = Buffer.from('Genuine Adobe Flash Media Server 001', 'latin1');

/**
 * Keys of one role: the short key signs the first block, the full key the answer to the peer. `KeyObject`s cost a quarter of raw bytes.
 */
export interface DigestKeys {
  readonly first: KeyObject;
  readonly answer: KeyObject;
}
/** A client's key. */
export const CLIENT_KEYS: DigestKeys = keysOf(CLIENT_KEY_TEXT);
/** A server's key. */
export const SERVER_KEYS: DigestKeys = keysOf(SERVER_KEY_TEXT);

/*
 * Two layouts of a block, each half of it 764 bytes behind time(4) version(4):
 *   digest first: offset bytes at 8,   digest at 12 + sum % 728
 *   key first:    offset bytes at 772, digest at 776 + sum % 728
 */
const OFFSET_FIELDS = [8, 772] as const;
const OFFSET_MODULUS = 728;

/** 0: digest first, 1: key first. */
export type DigestLayout = 0 | 1;

/** Where the digest of `block` lies. */
function digestOffset(block: Buffer, layout: DigestLayout): number {
  const at = OFFSET_FIELDS[layout];
  const sum = block.readUInt8(at) + block.readUInt8(at + 1) + block.readUInt8(at + 2) + block.readUInt8(at + 3);
  return (sum % OFFSET_MODULUS) + at + 4;
}

/** The digest and its layout when `block` was signed with `key`, else null. */
export function findDigest(block: Buffer, key: KeyObject): { layout: DigestLayout; digest: Buffer } | null {
  for (const layout of [0, 1] as const) {
    const offset = digestOffset(block, layout);
    const digest = block.subarray(offset, offset + DIGEST_LENGTH);
    if (digest.equals(digestOf(block, offset, key))) return { layout, digest };
  }
  return null;
}

/** Writes the digest of a first block into it and returns it. */
export function signFirstBlock(block: Buffer, layout: DigestLayout, key: KeyObject): Buffer {
  const offset = digestOffset(block, layout);
  const digest = digestOf(block, offset, key);
  digest.copy(block, offset);
  return digest;
}

/** Writes the proof of having read the peer's digest into the last bytes of an answer block. */
export function signAnswerBlock(block: Buffer, peerDigest: Buffer, key: KeyObject): void {
  const end = HANDSHAKE_BLOCK_LENGTH - DIGEST_LENGTH;
  answerDigest(block, peerDigest, key).copy(block, end);
}

/** True when an answer block proves that its sender read `ownDigest`. */
export function verifyAnswerBlock(block: Buffer, ownDigest: Buffer, key: KeyObject): boolean {
  return block.subarray(HANDSHAKE_BLOCK_LENGTH - DIGEST_LENGTH).equals(answerDigest(block, ownDigest, key));
}

function keysOf(text: Buffer): DigestKeys {
  return { first: createSecretKey(text), answer: createSecretKey(Buffer.concat([text, KEY_TAIL])) };
}

function answerDigest(block: Buffer, digest: Buffer, key: KeyObject): Buffer {
  const signingKey = createHmac('sha256', key).update(digest).digest();
  return createHmac('sha256', createSecretKey(signingKey))
    .update(block.subarray(0, HANDSHAKE_BLOCK_LENGTH - DIGEST_LENGTH))
    .digest();
}

function digestOf(block: Buffer, offset: number, key: KeyObject): Buffer {
  return createHmac('sha256', key)
    .update(block.subarray(0, offset))
    .update(block.subarray(offset + DIGEST_LENGTH))
    .digest();
}
