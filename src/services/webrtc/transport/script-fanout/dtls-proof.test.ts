import { createHash, createHmac, createPrivateKey, sign, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createCertificate } from '../dtls-certificate.ts';
import { type HandshakeMessage, type HandshakeTranscript, provenCertificate } from './dtls-proof.ts';

const SERVER = createCertificate(Date.now());
const CLIENT = createCertificate(Date.now());
const SECRET = Buffer.alloc(48, 7);
const POINT = Buffer.alloc(65, 4);
const RANDOMS = { clientRandom: Buffer.alloc(32, 1), serverRandom: Buffer.alloc(32, 2) };
const ECDSA_SHA256 = Buffer.of(4, 3);

function message(type: number, fragment: Buffer): HandshakeMessage {
  return { msg_type: type, fragment, serialize: () => Buffer.concat([Buffer.of(type), fragment]) };
}

function certificateMessage(pem: string): HandshakeMessage {
  const der = new X509Certificate(pem).raw;
  const head = Buffer.alloc(6);
  head.writeUIntBE(der.length + 3, 0, 3);
  head.writeUIntBE(der.length, 3, 3);
  return message(11, Buffer.concat([head, der]));
}

function signed(key: string, data: Buffer): Buffer {
  const signature = sign('sha256', data, createPrivateKey(key));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(signature.length);
  return Buffer.concat([ECDSA_SHA256, length, signature]);
}

function bytesOf(messages: readonly HandshakeMessage[]): Buffer {
  return Buffer.concat(messages.map((one) => one.serialize()));
}

/** The pseudo-random function as RFC 5246 section 5 writes it, in its general form. */
function finished(label: string, messages: readonly HandshakeMessage[]): Buffer {
  const hmac = (data: Buffer): Buffer => createHmac('sha256', SECRET).update(data).digest();
  const seed = Buffer.concat([Buffer.from(label), createHash('sha256').update(bytesOf(messages)).digest()]);
  return hmac(Buffer.concat([hmac(seed), seed])).subarray(0, 12);
}

function handshake(role: 'client' | 'server'): HandshakeTranscript & { messages: HandshakeMessage[] } {
  const parameters = Buffer.concat([Buffer.of(3, 0, 23, POINT.length), POINT]);
  const exchange = Buffer.concat([parameters, signed(SERVER.key, Buffer.concat([RANDOMS.clientRandom, RANDOMS.serverRandom, parameters]))]);
  const messages = [
    message(1, Buffer.from('hello')),
    message(2, Buffer.from('hello too')),
    certificateMessage(SERVER.certificate),
    message(12, exchange),
    message(13, Buffer.of(1)),
    message(14, Buffer.alloc(0)),
    certificateMessage(CLIENT.certificate),
    message(16, Buffer.concat([Buffer.of(POINT.length), POINT])),
  ];
  messages.push(message(15, signed(CLIENT.key, bytesOf(messages))));
  messages.push(message(20, finished('client finished', messages)));
  return { role, messages, serverFinished: finished('server finished', messages), masterSecret: SECRET, ...RANDOMS, peerKey: POINT };
}

test('each end gets the proven certificate of the other', () => {
  expect(provenCertificate(handshake('server'))).toEqual(new X509Certificate(CLIENT.certificate).raw);
  expect(provenCertificate(handshake('client'))).toEqual(new X509Certificate(SERVER.certificate).raw);
});

test.each(['client', 'server'] as const)('as %s: a signature with another key, message or secret is refused', (role) => {
  const own = handshake(role);
  const refused = (changes: Partial<HandshakeTranscript>): string => {
    try {
      provenCertificate({ ...own, ...changes });
      return 'taken';
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
  };
  expect(refused({ peerKey: Buffer.alloc(65, 5) })).toBe('the peer is not who it says: its key is not the one it signed');
  expect(refused({ masterSecret: Buffer.alloc(48, 8) })).toBe('the peer is not who it says: it saw other messages than were sent');
  expect(refused({ serverFinished: null })).toBe(
    role === 'server' ? 'taken' : 'the peer is not who it says: it saw other messages than were sent',
  );
  for (let n = 0; n < own.messages.length; n += 1) {
    const { msg_type, fragment } = own.messages[n] as HandshakeMessage;
    const without = own.messages.filter((_message, at) => at !== n);
    expect(refused({ messages: without }), `without ${n}`).toMatch(/^the peer is not who it says: /);
    if (fragment.length === 0) continue;
    for (const at of [0, fragment.length >> 1, fragment.length - 1]) {
      const other = Buffer.from(fragment);
      other[at] = (other[at] ?? 0) ^ 1;
      const messages = own.messages.with(n, message(msg_type, other));
      expect(refused({ messages }), `message ${n}, byte ${at}`).toMatch(/^the peer is not who it says: /);
    }
  }
});
