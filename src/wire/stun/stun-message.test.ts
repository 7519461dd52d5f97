import fc from 'fast-check';
import { expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { addressBytes } from '../../util/address-bytes.ts';
import {
  errorCode,
  isStunAuthentic,
  parseStun,
  readXorMappedAddress,
  StunAttribute,
  StunType,
  serializeStun,
  xorMappedAddress,
} from './stun-message.ts';

/** The samples of RFC 5769 sections 2.1 to 2.3. */
const PASSWORD = 'VOkJxbRl1RmTxUk/WvJxBt';
const REQUEST = Buffer.from(
  '000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf',
  'hex',
);
const RESPONSE_V6 = Buffer.from(
  '010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c',
  'hex',
);

test('the request of RFC 5769 is read and proves itself', () => {
  const message = parseStun(REQUEST);
  expect(message.type).toBe(StunType.BINDING_REQUEST);
  expect(message.attributes.get(StunAttribute.USERNAME)?.toString()).toBe('evtj:h6vY');
  expect(message.attributes.get(StunAttribute.PRIORITY)?.readUInt32BE()).toBe(0x6e00_01ff);
  expect(isStunAuthentic(message, PASSWORD)).toBe(true);
  expect(isStunAuthentic(message, `${PASSWORD}x`)).toBe(false);
});

test('the IPv6 response of RFC 5769 is read, and its address attribute matches the written one', () => {
  const message = parseStun(RESPONSE_V6);
  expect(isStunAuthentic(message, PASSWORD)).toBe(true);
  const address = xorMappedAddress('2001:db8:1234:5678:11:2233:4455:6677', 32_853, message.transaction);
  expect(message.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS)).toEqual(address);
});

test('a written address is read back', () => {
  const transaction = Buffer.alloc(12, 7);
  for (const host of ['192.0.2.1', '2001:db8:1:2:3:4:5:6']) {
    expect(readXorMappedAddress(xorMappedAddress(host, 65_000, transaction), transaction)).toEqual({ host, port: 65_000 });
  }
  expect(() => readXorMappedAddress(Buffer.of(0, 3, 0, 0), transaction)).toThrow('family 3');
  expect(() => readXorMappedAddress(Buffer.of(0, 2, 0, 0, 1), transaction)).toThrow('5 bytes');
});

test('arbitrary messages are read back, and are authentic for their password only', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 12, maxLength: 12 }),
      fc.uint8Array({ maxLength: 40 }),
      fc.string(),
      (transaction, value, password) => {
        const bytes = serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes: [[0x0006, value]], password });
        const message = parseStun(bytes);
        expect(message.type).toBe(StunType.BINDING_SUCCESS);
        expect(new Uint8Array(message.transaction)).toEqual(transaction);
        expect(new Uint8Array(message.attributes.get(0x0006) ?? [])).toEqual(value);
        expect(isStunAuthentic(message, password)).toBe(true);
        expect(isStunAuthentic(message, `${password}.`)).toBe(false);
      },
    ),
  );
});

test('attributes after MESSAGE-INTEGRITY are ignored', () => {
  const bytes = Buffer.from(REQUEST);
  // Turns FINGERPRINT, which follows MESSAGE-INTEGRITY, into USE-CANDIDATE.
  bytes.writeUInt16BE(StunAttribute.USE_CANDIDATE, bytes.length - 8);
  expect(parseStun(bytes).attributes.has(StunAttribute.USE_CANDIDATE)).toBe(false);
});

test('an error has its class and number apart', () => {
  expect(errorCode(487, 'Role').subarray(0, 4)).toEqual(Buffer.of(0, 0, 4, 87));
});

test.each([
  ['127.0.0.1', '7f000001'],
  ['::', '0'.repeat(32)],
  ['::1', `${'0'.repeat(31)}1`],
  ['fe80::1%eth0', `fe80${'0'.repeat(27)}1`],
  ['::ffff:10.0.0.1', '00000000000000000000ffff0a000001'],
  ['2001:db8::', '20010db8000000000000000000000000'],
])('%s in bytes', (host, hex) => {
  expect(addressBytes(host).toString('hex')).toBe(hex);
});

test('hostile datagrams are refused, never worse', () => {
  survivesHostileBytes(
    (data) => {
      const message = parseStun(Buffer.from(data));
      isStunAuthentic(message, PASSWORD);
    },
    [REQUEST, RESPONSE_V6],
  );
});
