/**
 * Proof that the peer of a DTLS 1.2 handshake has the key of its certificate and saw the same messages (RFC 5246 sections 7.4.3,
 * 7.4.8 and 7.4.9), for a library that checks none of it.
 */
import { createHash, createHmac, timingSafeEqual, verify, X509Certificate } from 'node:crypto';
import { messageOf } from '../../../../util/message-of.ts';

const HandshakeType = { CERTIFICATE: 11, SERVER_KEY_EXCHANGE: 12, CERTIFICATE_VERIFY: 15, CLIENT_KEY_EXCHANGE: 16, FINISHED: 20 } as const;
const HASHES: Readonly<Record<number, string>> = { 4: 'sha256', 5: 'sha384', 6: 'sha512' };
/** RSA with PKCS #1, and ECDSA: the second byte of an algorithm. */
const SIGNATURES: readonly number[] = [1, 3];
const VERIFY_LENGTH = 12;

/** A message as both ends have it in their transcript. */
export interface HandshakeMessage {
  readonly msg_type: number;
  readonly fragment: Buffer;
  serialize(): Buffer;
}

/** The parts of a handshake that are kept to verify it in the end. */
export interface HandshakeTranscript {
  /** Our part. */
  readonly role: 'client' | 'server';
  /** All messages of both sides in order, except HelloVerifyRequest and the messages before it. */
  readonly messages: readonly HandshakeMessage[];
  /** The server's last message, for a client: it is not among the others. */
  readonly serverFinished: Buffer | null;
  readonly masterSecret: Buffer;
  readonly clientRandom: Buffer;
  readonly serverRandom: Buffer;
  /** The peer's share in the key exchange, as the master secret was made of it. */
  readonly peerKey: Buffer;
}

/** The certificate that the peer has proved to own, DER. Throws an Error with a sentence when it has not. */
export function provenCertificate(handshake: HandshakeTranscript): Buffer {
  try {
    return handshake.role === 'server' ? ofClient(handshake) : ofServer(handshake);
  } catch (error) {
    throw new Error(`the peer is not who it says: ${messageOf(error)}`, { cause: error });
  }
}

function ofClient({ messages, masterSecret, peerKey }: HandshakeTranscript): Buffer {
  // Ours is the first of them.
  const [, theirs] = messages.filter(({ msg_type }) => msg_type === HandshakeType.CERTIFICATE);
  if (theirs === undefined) throw new Error('it showed no certificate');
  const certificate = certificateOf(theirs);
  const key = find(messages, HandshakeType.CLIENT_KEY_EXCHANGE).fragment;
  demand(key.subarray(1).equals(peerKey), 'its key is not the one it signed');
  const { fragment } = find(messages, HandshakeType.CERTIFICATE_VERIFY);
  const length = fragment.readUInt16BE(2);
  const signature = fragment.subarray(4, 4 + length);
  checkSignature(certificate, fragment.readUInt16BE(0), { signed: before(messages, HandshakeType.CERTIFICATE_VERIFY), signature });
  const finished = find(messages, HandshakeType.FINISHED).fragment;
  checkFinished(finished, verifyData(masterSecret, 'client finished', before(messages, HandshakeType.FINISHED)));
  return certificate;
}

function ofServer({ messages, serverFinished, masterSecret, clientRandom, serverRandom, peerKey }: HandshakeTranscript): Buffer {
  const certificate = certificateOf(find(messages, HandshakeType.CERTIFICATE));
  // Curve type, curve, length and point, then algorithm and signature.
  const { fragment } = find(messages, HandshakeType.SERVER_KEY_EXCHANGE);
  const end = 4 + fragment.readUInt8(3);
  demand(fragment.subarray(4, end).equals(peerKey), 'its key is not the one it signed');
  const signed = Buffer.concat([clientRandom, serverRandom, fragment.subarray(0, end)]);
  const signature = fragment.subarray(end + 4, end + 4 + fragment.readUInt16BE(end + 2));
  checkSignature(certificate, fragment.readUInt16BE(end), { signed, signature });
  const transcript = Buffer.concat(messages.map((message) => message.serialize()));
  checkFinished(serverFinished ?? Buffer.alloc(0), verifyData(masterSecret, 'server finished', transcript));
  return certificate;
}

/** The first of a Certificate message, DER. */
function certificateOf({ fragment }: HandshakeMessage): Buffer {
  return fragment.subarray(6, 6 + fragment.readUIntBE(3, 3));
}

function before(messages: readonly HandshakeMessage[], type: number): Buffer {
  const at = messages.findIndex(({ msg_type }) => msg_type === type);
  return Buffer.concat(messages.slice(0, at).map((message) => message.serialize()));
}

function find(messages: readonly HandshakeMessage[], type: number): HandshakeMessage {
  const found = messages.find(({ msg_type }) => msg_type === type);
  if (found === undefined) throw new Error(`a message of type ${type} is missing`);
  return found;
}

function checkSignature(certificate: Buffer, algorithm: number, { signed, signature }: { signed: Buffer; signature: Buffer }): void {
  const hash = HASHES[algorithm >> 8];
  if (hash === undefined || !SIGNATURES.includes(algorithm & 0xff)) throw new Error(`signature algorithm ${algorithm} is not known`);
  demand(verify(hash, signed, new X509Certificate(certificate).publicKey, signature), 'it does not have the key of its certificate');
}

function checkFinished(finished: Buffer, expected: Buffer): void {
  demand(finished.length === expected.length && timingSafeEqual(finished, expected), 'it saw other messages than were sent');
}

/** P_SHA256 (RFC 5246 section 5): the suites of the library have no other hash. */
function verifyData(secret: Buffer, label: string, transcript: Buffer): Buffer {
  const seed = Buffer.concat([Buffer.from(label), createHash('sha256').update(transcript).digest()]);
  const first = createHmac('sha256', secret).update(seed).digest();
  return createHmac('sha256', secret).update(first).update(seed).digest().subarray(0, VERIFY_LENGTH);
}

function demand(truth: boolean, otherwise: string): void {
  if (!truth) throw new Error(otherwise);
}
