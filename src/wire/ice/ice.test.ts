import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isStunAuthentic, parseStun, StunAttribute, StunType, serializeStun, xorMappedAddress } from '../stun/stun-message.ts';
import { formatCandidate, readCandidates } from './ice-candidate.ts';
import { createCredentials } from './ice-credentials.ts';
import { checkRequest } from './ice-lite.ts';
import { frameDatagram, TcpFramer } from './tcp-framer.ts';

const credentials = createCredentials();
const session = { credentials };
const from = { host: '192.0.2.7', port: 4711 };
const find = (ufrag: string) => (ufrag === credentials.ufrag ? session : undefined);

function request(options: { username?: string; password?: string; attributes?: [number, Buffer][] } = {}): Buffer {
  const username = Buffer.from(options.username ?? `${credentials.ufrag}:peer`);
  return serializeStun({
    type: StunType.BINDING_REQUEST,
    transaction: randomBytes(12),
    attributes: [[StunAttribute.USERNAME, username], ...(options.attributes ?? [])],
    password: options.password ?? credentials.password,
  });
}

test('a check is answered with its source address, signed', () => {
  const checked = checkRequest(request(), from, find);
  expect(checked).toMatchObject({ session, nominated: false });
  const response = parseStun(checked?.response ?? Buffer.alloc(0));
  expect(response.type).toBe(StunType.BINDING_SUCCESS);
  expect(isStunAuthentic(response, credentials.password)).toBe(true);
  expect(response.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS)).toEqual(xorMappedAddress(from.host, from.port, response.transaction));
});

test('a nomination is seen', () => {
  const nominating = request({ attributes: [[StunAttribute.USE_CANDIDATE, Buffer.alloc(0)]] });
  expect(checkRequest(nominating, from, find)?.nominated).toBe(true);
});

test('an unknown user name and a wrong password get no answer', () => {
  expect(checkRequest(request({ username: 'nobody:peer' }), from, find)).toBeNull();
  expect(checkRequest(request({ password: 'wrong' }), from, find)).toBeNull();
});

test('a controlled peer gets a role conflict', () => {
  const checked = checkRequest(request({ attributes: [[StunAttribute.ICE_CONTROLLED, Buffer.alloc(8)]] }), from, find);
  expect(checked?.session).toBeNull();
  expect(parseStun(checked?.response ?? Buffer.alloc(0)).type).toBe(StunType.BINDING_ERROR);
});

test("candidates have the form of OvenMediaEngine's", () => {
  expect(formatCandidate({ protocol: 'UDP', address: '10.0.0.1', port: 10_000 })).toMatch(
    /^candidate:\d{10} 1 UDP 50 10\.0\.0\.1 10000 typ host$/,
  );
  expect(formatCandidate({ protocol: 'TCP', address: '::1', port: 9 })).toMatch(
    /^candidate:\d{10} 1 TCP 40 ::1 9 typ host tcptype passive$/,
  );
});

test('at most 24 candidates of a peer are read from arbitrary text, in linear time', () => {
  const lines =
    'a=candidate:1 1 UDP 2122 192.0.2.1 5000 typ host generation 0\r\nx\r\na=candidate:2 1 tcp 1 4f-5.local 9 typ host tcptype active';
  expect(readCandidates(lines)).toEqual([
    { protocol: 'udp', address: '192.0.2.1', port: 5000, type: 'host' },
    { protocol: 'tcp', address: '4f-5.local', port: 9, type: 'host' },
  ]);
  expect(readCandidates('candidate:1 2 udp 1 192.0.2.1 5 typ host\ncandidate:1 1 udp 1 "\u001b[2J" 5 typ host')).toEqual([]);
  expect(readCandidates(`${lines}\n`.repeat(100))).toHaveLength(24);
  // A search in quadratic time would take minutes.
  expect(readCandidates('candidate:'.repeat(200_000))).toEqual([]);
  fc.assert(fc.property(fc.string(), (text) => readCandidates(text).length <= 24));
});

test('frames are restored from a stream cut at any bytes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 10 }),
      fc.integer({ min: 1, max: 50 }),
      (datagrams, step) => {
        const stream = Buffer.concat(datagrams.map((datagram) => frameDatagram(datagram)));
        const framer = new TcpFramer();
        const out: Buffer[] = [];
        for (let at = 0; at < stream.length; at += step) out.push(...(framer.push(stream.subarray(at, at + step)) ?? []));
        expect(out.map((frame) => new Uint8Array(frame))).toEqual(datagrams);
      },
    ),
  );
  expect(new TcpFramer().push(Buffer.of(0xff, 0xff))).toBeNull();
});
