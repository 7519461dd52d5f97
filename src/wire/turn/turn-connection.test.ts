import { createSecretKey, type KeyObject } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { channelNumber, peerAddress, type TurnAttribute, turnKey, turnRequest, UDP_TRANSPORT } from '../../../test/fakes/turn-client.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import {
  isStunAuthentic,
  parseStun,
  readXorMappedAddress,
  StunAttribute,
  type StunMessage,
  StunType,
  successOf,
} from '../stun/stun-message.ts';
import { type TurnAddress, TurnConnection } from './turn-connection.ts';
import { frameChannelData } from './turn-framer.ts';

const ACCOUNT = { realm: 'airensoft', username: 'ome', password: 'airen' };
const KEY = turnKey(ACCOUNT);
const CLIENT = { host: '192.0.2.7', port: 40_000 };
const RELAYED = { host: '1.1.1.1', port: 14_090 };
const PEER = { host: '198.51.100.1', port: 10_000 };
const TRANSACTION = Buffer.alloc(12, 5);

let now = 0;
let sent: Buffer[] = [];
let received: { peer: TurnAddress; bytes: string }[] = [];
/** Ends of the allocation that the owner was told about. */
let ends: number[] = [];
let turn: TurnConnection;

beforeEach(() => {
  now = 1000;
  sent = [];
  received = [];
  ends = [];
  turn = open();
});

function open(): TurnConnection {
  const owner = {
    send: (bytes: Buffer): void => void sent.push(bytes),
    datagram: (peer: TurnAddress, bytes: Buffer): void => void received.push({ peer, bytes: bytes.toString() }),
    allocatedUntil: (end: number): void => void ends.push(end),
    now: () => now,
  };
  return new TurnConnection(owner, ACCOUNT, CLIENT, { ipv4: RELAYED, ipv6: { ...RELAYED, host: '1:0:0:0:0:0:0:1' } });
}

/** The last message from the relay. */
function said(): StunMessage {
  return parseStun(sent.pop() ?? Buffer.alloc(0));
}

/** Sends a request as a client that knows `key`, and returns the answer. */
function ask(type: number, attributes: readonly TurnAttribute[] = [], key: KeyObject | null = KEY, nonce = nonceNow()): StunMessage {
  turn.push(turnRequest(type, TRANSACTION, attributes, key === null ? null : { account: ACCOUNT, nonce: Buffer.from(nonce), key }));
  return said();
}

function nonceNow(): string {
  turn.push(turnRequest(StunType.ALLOCATE_REQUEST, TRANSACTION, [], null));
  return said().attributes.get(StunAttribute.NONCE)?.toString() ?? '';
}

function codeOf({ attributes }: StunMessage): number {
  const value = attributes.get(StunAttribute.ERROR_CODE) ?? Buffer.alloc(4);
  return (value[2] ?? 0) * 100 + (value[3] ?? 0);
}

function peer(of = PEER): TurnAttribute {
  return peerAddress(of, TRANSACTION);
}

function lifetime(seconds: number): TurnAttribute {
  const value = Buffer.alloc(4);
  value.writeUInt32BE(seconds);
  return [StunAttribute.LIFETIME, value];
}

function allocate(): StunMessage {
  return ask(StunType.ALLOCATE_REQUEST, [UDP_TRANSPORT]);
}

function indicate(bytes: string, to = PEER): void {
  turn.push(turnRequest(StunType.SEND_INDICATION, TRANSACTION, [peer(to), [StunAttribute.DATA, Buffer.from(bytes)]], null));
}

test('an unauthenticated client is challenged, with realm and nonce', () => {
  const answer = ask(StunType.ALLOCATE_REQUEST, [UDP_TRANSPORT], null);
  expect(codeOf(answer)).toBe(401);
  expect(answer.attributes.get(StunAttribute.REALM)?.toString()).toBe('airensoft');
  expect(answer.attributes.get(StunAttribute.NONCE)?.toString()).toMatch(/^[0-9a-f]{32}$/);
  expect(turn.isAllocated).toBe(false);
});

test('a wrong password is refused, and so is the nonce of another connection', () => {
  expect(codeOf(ask(StunType.ALLOCATE_REQUEST, [], createSecretKey(Buffer.alloc(16))))).toBe(401);
  expect(codeOf(ask(StunType.ALLOCATE_REQUEST, [], KEY, 'f'.repeat(32)))).toBe(438);
});

test('an allocation returns its address, its lifetime and the address of the client', () => {
  const answer = allocate();
  expect(answer.type).toBe(successOf(StunType.ALLOCATE_REQUEST));
  expect(isStunAuthentic(answer, KEY)).toBe(true);
  const address = (name: number): TurnAddress => readXorMappedAddress(answer.attributes.get(name) ?? Buffer.alloc(0), TRANSACTION);
  expect(address(StunAttribute.XOR_RELAYED_ADDRESS)).toEqual(RELAYED);
  expect(address(StunAttribute.XOR_MAPPED_ADDRESS)).toEqual(CLIENT);
  expect(answer.attributes.get(StunAttribute.LIFETIME)?.readUInt32BE()).toBe(3600);
  expect(codeOf(allocate())).toBe(437);
});

test('only datagrams can be relayed', () => {
  expect(codeOf(ask(StunType.ALLOCATE_REQUEST, [[StunAttribute.REQUESTED_TRANSPORT, Buffer.of(6, 0, 0, 0)]]))).toBe(442);
  expect(codeOf(ask(StunType.ALLOCATE_REQUEST))).toBe(442);
});

test('requests without an allocation are refused', () => {
  for (const type of [StunType.REFRESH_REQUEST, StunType.CREATE_PERMISSION_REQUEST, StunType.CHANNEL_BIND_REQUEST]) {
    expect(codeOf(ask(type, [peer(), channelNumber(0x4000)]))).toBe(437);
  }
});

test('datagrams pass in indications after a permission', () => {
  allocate();
  indicate('early');
  turn.deliver(PEER, Buffer.from('early too'));
  expect(received).toEqual([]);
  expect(sent).toEqual([]);
  expect(turn.dropped).toBe(2);

  expect(ask(StunType.CREATE_PERMISSION_REQUEST, [peer()]).type).toBe(successOf(StunType.CREATE_PERMISSION_REQUEST));
  indicate('check');
  expect(received).toEqual([{ peer: PEER, bytes: 'check' }]);
  turn.deliver(PEER, Buffer.from('answer'));
  const back = said();
  expect(back.type).toBe(StunType.DATA_INDICATION);
  expect(back.attributes.get(StunAttribute.DATA)?.toString()).toBe('answer');
  expect(readXorMappedAddress(back.attributes.get(StunAttribute.XOR_PEER_ADDRESS) ?? Buffer.alloc(0), back.transaction)).toEqual(PEER);
});

test('a channel carries datagrams both ways, padded', () => {
  allocate();
  expect(ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x4001)]).type).toBe(successOf(StunType.CHANNEL_BIND_REQUEST));
  turn.push(frameChannelData(0x4001, Buffer.from('media')));
  expect(received).toEqual([{ peer: PEER, bytes: 'media' }]);
  turn.deliver(PEER, Buffer.from('frame'));
  expect(sent.pop()?.toString('hex')).toBe(`40010005${Buffer.from('frame').toString('hex')}000000`);
});

test('a channel stays with its peer', () => {
  allocate();
  ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x4001)]);
  expect(ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x4001)]).type).toBe(successOf(StunType.CHANNEL_BIND_REQUEST));
  expect(codeOf(ask(StunType.CHANNEL_BIND_REQUEST, [peer({ ...PEER, port: 1 }), channelNumber(0x4001)]))).toBe(400);
  expect(codeOf(ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x4002)]))).toBe(400);
  expect(codeOf(ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x3fff)]))).toBe(400);
});

test('one request permits several peers, all or none', () => {
  allocate();
  const hosts = (from: number, to: number): TurnAttribute[] =>
    Array.from({ length: to - from }, (_, n) => peer({ host: `10.0.0.${from + n}`, port: 1 }));
  expect(ask(StunType.CREATE_PERMISSION_REQUEST, hosts(0, 30)).type).toBe(successOf(StunType.CREATE_PERMISSION_REQUEST));
  for (const n of [0, 15, 29]) indicate('check', { host: `10.0.0.${n}`, port: 5 });
  expect(received.map(({ peer }) => peer.host)).toEqual(['10.0.0.0', '10.0.0.15', '10.0.0.29']);
  expect(ask(StunType.CREATE_PERMISSION_REQUEST, hosts(30, 60)).type).toBe(successOf(StunType.CREATE_PERMISSION_REQUEST));
  expect(codeOf(ask(StunType.CREATE_PERMISSION_REQUEST, hosts(60, 65)))).toBe(508);
  indicate('check', { host: '10.0.0.60', port: 5 });
  expect(received).toHaveLength(3);
  expect(codeOf(ask(StunType.CREATE_PERMISSION_REQUEST, []))).toBe(400);
  expect(() => ask(StunType.CREATE_PERMISSION_REQUEST, hosts(0, 40))).toThrow('more than 32 attributes');
});

test('an IPv6 allocation reaches IPv6 peers only', () => {
  const family = (number: number): TurnAttribute => [StunAttribute.REQUESTED_ADDRESS_FAMILY, Buffer.of(number, 0, 0, 0)];
  const request = (number: number): StunMessage => ask(StunType.ALLOCATE_REQUEST, [UDP_TRANSPORT, family(number)]);
  expect(codeOf(request(3))).toBe(440);
  const answer = request(2);
  const relayed = answer.attributes.get(StunAttribute.XOR_RELAYED_ADDRESS) ?? Buffer.alloc(0);
  expect(readXorMappedAddress(relayed, TRANSACTION)).toEqual({ host: '1:0:0:0:0:0:0:1', port: 14_090 });
  expect(turn.relayed.host).toBe('1:0:0:0:0:0:0:1');
  const six = { host: '2001:db8:0:0:0:0:0:1', port: 10_000 };
  expect(codeOf(ask(StunType.CREATE_PERMISSION_REQUEST, [peer(six), peer()]))).toBe(443);
  expect(codeOf(ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x4001)]))).toBe(443);
  expect(ask(StunType.CHANNEL_BIND_REQUEST, [peer(six), channelNumber(0x4001)]).type).toBe(successOf(StunType.CHANNEL_BIND_REQUEST));
  turn.push(frameChannelData(0x4001, Buffer.from('media')));
  expect(received).toEqual([{ peer: six, bytes: 'media' }]);
  turn.deliver(six, Buffer.from('frame'));
  expect(sent.pop()?.subarray(4, 9).toString()).toBe('frame');
});

test('peers are bounded', () => {
  allocate();
  const permit = (n: number): StunMessage => ask(StunType.CREATE_PERMISSION_REQUEST, [peer({ host: `10.0.0.${n}`, port: 1 })]);
  for (let n = 0; n < 64; n += 1) expect(permit(n).type).toBe(successOf(StunType.CREATE_PERMISSION_REQUEST));
  expect(codeOf(permit(64))).toBe(508);
});

test('an allocation ends with its lifetime unless it is refreshed', () => {
  allocate();
  now += 3_599_000;
  expect(
    ask(StunType.REFRESH_REQUEST, [lifetime(700)])
      .attributes.get(StunAttribute.LIFETIME)
      ?.readUInt32BE(),
  ).toBe(700);
  now += 699_000;
  expect(turn.isAllocated).toBe(true);
  now += 2000;
  expect(turn.isAllocated).toBe(false);
  allocate();
  expect(
    ask(StunType.REFRESH_REQUEST, [lifetime(0)])
      .attributes.get(StunAttribute.LIFETIME)
      ?.readUInt32BE(),
  ).toBe(0);
  expect(turn.isAllocated).toBe(false);
  expect(ends).toEqual([3_601_000, 4_300_000, 7_901_000, 4_301_000]);
});

test('a binding request is answered with the address of the client', () => {
  turn.push(turnRequest(StunType.BINDING_REQUEST, TRANSACTION, [], null));
  const answer = said();
  expect(readXorMappedAddress(answer.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS) ?? Buffer.alloc(0), TRANSACTION)).toEqual(CLIENT);
});

test('frames arrive whole however they are cut', () => {
  allocate();
  ask(StunType.CHANNEL_BIND_REQUEST, [peer(), channelNumber(0x4001)]);
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{0,9}$/), { maxLength: 5 }), fc.array(fc.nat(80)), (texts, cuts) => {
      received = [];
      const bytes = Buffer.concat(texts.map((text) => frameChannelData(0x4001, Buffer.from(text))));
      let from = 0;
      for (const cut of [...cuts.filter((at) => at < bytes.length).sort((a, b) => a - b), bytes.length]) {
        turn.push(bytes.subarray(from, cut));
        from = cut;
      }
      expect(received.map((one) => one.bytes)).toEqual(texts);
    }),
  );
});

test('data that is no TURN frame is refused with its reason', () => {
  expect(() => turn.push(Buffer.from('GET / HTTP/1.1\r\n'))).toThrow(ProtocolError);
  expect(() => open().push(Buffer.of(0x80, 0, 0, 0))).toThrow('0x8000 begins no TURN frame');
  expect(() => open().push(Buffer.of(0x40, 0, 0xff, 0xff))).toThrow('longer than 4096');
});

test('hostile bytes are refused, never worse', () => {
  const attributes = [UDP_TRANSPORT, lifetime(5)];
  const allocation = turnRequest(StunType.ALLOCATE_REQUEST, TRANSACTION, attributes, {
    account: ACCOUNT,
    nonce: Buffer.alloc(32),
    key: KEY,
  });
  survivesHostileBytes((data) => open().push(Buffer.from(data)), [allocation, frameChannelData(0x4001, Buffer.from('media'))]);
});
