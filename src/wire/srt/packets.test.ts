import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SRT_ABILITIES, SRT_ADDRESS, SRT_CONTROL, SRT_REPORT, srtConclusion } from '../../../test/fakes/srt-packets.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { parseAccessControl } from './access-control.ts';
import { readConclusion } from './conclusion.ts';
import { parseControlPacket, serializeAck, serializeNak } from './control-packet.ts';
import {
  ExtensionType,
  type Handshake,
  HandshakeType,
  parseCapabilities,
  parseHandshake,
  parseTextExtension,
  rejectionOf,
  serializeCapabilities,
  serializeHandshake,
  serializeTextExtension,
} from './handshake.ts';
import {
  dataSequenceOf,
  destinationOf,
  isControlPacket,
  isRetransmitted,
  keyFlagOf,
  markRetransmitted,
  writeDataHeader,
} from './header.ts';
import { parseKeyMaterial, serializeKeyMaterial } from './key-material.ts';
import { RejectionCode } from './rejection.ts';
import { addSequence, SEQUENCE_MASK, sequenceOffset } from './sequence.ts';

const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'));
const sequences = fc.integer({ min: 0, max: SEQUENCE_MASK });

describe('sequence numbers', () => {
  test('the offset between two numbers is the shorter one, also across the wrap', () => {
    fc.assert(
      fc.property(sequences, fc.integer({ min: -(2 ** 29), max: 2 ** 29 }), (from, step) => {
        expect(sequenceOffset(from, addSequence(from, step))).toBe(step);
      }),
    );
    expect(addSequence(SEQUENCE_MASK, 1)).toBe(0);
    expect(sequenceOffset(SEQUENCE_MASK, 1)).toBe(2);
  });
});

describe('data headers', () => {
  test('fields are at the offsets of the draft', () => {
    const header = new Uint8Array(16);
    writeDataHeader(header, 0, { sequence: 0x12_34_56_78, message: 5, keyFlag: 2, timestamp: 2 ** 32 + 7, destination: 9 });
    expect(Buffer.from(header).toString('hex')).toBe('12345678f00000050000000700000009');
    expect([isControlPacket(header), dataSequenceOf(header), keyFlagOf(header), destinationOf(header)]).toEqual([
      false,
      0x12_34_56_78,
      2,
      9,
    ]);
    expect(isRetransmitted(header)).toBe(false);
    markRetransmitted(header, 0);
    expect(isRetransmitted(header)).toBe(true);
    expect(header[4]).toBe(0xf4);
  });
});

describe('control packets', () => {
  test.each(Object.entries(SRT_CONTROL))('a %s is read back', (_name, { bytes, packet }) => {
    expect(isControlPacket(bytes)).toBe(true);
    expect(destinationOf(bytes)).toBe(SRT_ADDRESS.destination);
    expect(parseControlPacket(bytes)).toEqual(packet);
  });

  test('a small acknowledgement has no rates', () => {
    const small = serializeAck(3, 78, SRT_REPORT, SRT_ADDRESS).subarray(0, 32);
    expect(parseControlPacket(small)).toMatchObject({ report: { rtt: 20_000, receiveRate: 0, linkCapacity: 0, receiveByteRate: 0 } });
  });

  test('a loss report holds as many ranges as fit', () => {
    const ranges = Array.from({ length: 1000 }, (_unused, index) => ({ first: index * 4, last: index * 4 + 1 }));
    const packet = parseControlPacket(serializeNak(ranges, 1456, SRT_ADDRESS));
    expect(packet).toEqual({ type: 'nak', ranges: ranges.slice(0, 182) });
  });

  test.each([
    ['range without an end', '8003 0000 00000000 00000000 00000000 80000001'],
    ['range that ends before it begins', '8003 0000 00000000 00000000 00000000 80000005 00000004'],
    ['NAK without a lost packet', '8003 0000 00000000 00000000 00000000'],
    ['acknowledgement of 3 bytes', '8002 0000 00000000 00000000 00000000 000000'],
    ['drop request of 4 bytes', '8007 0000 00000000 00000000 00000000 00000000'],
    ['control packet of 4 bytes', '8002 0000'],
  ])('a %s is refused', (_name, text) => {
    expect(() => parseControlPacket(hex(text))).toThrow(ProtocolError);
  });

  test('hostile bytes are refused or read, never worse', () => {
    survivesHostileBytes(
      parseControlPacket,
      Object.values(SRT_CONTROL).map(({ bytes }) => bytes),
    );
  });
});

/** The conclusion of a real caller: libsrt 1.5.1 (`srt-live-transmit`), stream id `default/app/stream`, latency 120. */
const CAPTURED = hex(`
  80000000 00000000 000020b8 00000000
  00000005 00000005 1a1598d5 000005dc 00002000 ffffffff 28645c59 3989d4e6 0100007f 00000000 00000000 00000000
  00010003 00010501 000000bf 00780078
  00050005 61666564 2f746c75 2f707061 65727473 00006d61`);

describe('handshakes', () => {
  const bytesOf = (handshake: Handshake): Uint8Array => serializeHandshake(handshake, { ...SRT_ADDRESS, peer: '127.0.0.1' });

  test('a handshake is read back', () => {
    expect(parseHandshake(bytesOf(srtConclusion()))).toEqual(srtConclusion());
  });

  test('that of a real caller is understood', () => {
    const handshake = parseHandshake(CAPTURED);
    expect(handshake).toMatchObject({ version: 5, initialSequence: 0x1a_15_98_d5, mtu: 1500, flowWindow: 8192, extensionField: 5 });
    expect(readConclusion(handshake)).toEqual({
      capabilities: { version: 0x01_05_01, flags: 0xbf, receiverDelay: 120, senderDelay: 120 },
      streamId: 'default/app/stream',
      keyMaterial: null,
    });
  });

  test.each([
    ['version 4', srtConclusion({ version: 4 }), RejectionCode.VERSION],
    ['no abilities', srtConclusion({ extensions: [] }), RejectionCode.VERSION],
    [
      'SRT 1.2',
      srtConclusion({
        extensions: [
          { ...SRT_ABILITIES, content: serializeCapabilities({ ...parseCapabilities(SRT_ABILITIES.content), version: 0x01_02_00 }) },
        ],
      }),
      RejectionCode.VERSION,
    ],
    [
      'file mode',
      srtConclusion({
        extensions: [{ ...SRT_ABILITIES, content: serializeCapabilities({ ...parseCapabilities(SRT_ABILITIES.content), flags: 0x60 }) }],
      }),
      RejectionCode.MESSAGE_API,
    ],
    [
      'congestion control for files',
      srtConclusion({ extensions: [SRT_ABILITIES, { type: ExtensionType.CONGESTION, content: serializeTextExtension('file') }] }),
      RejectionCode.CONGESTION,
    ],
    [
      'a packet filter',
      srtConclusion({ extensions: [SRT_ABILITIES, { type: ExtensionType.FILTER, content: serializeTextExtension('fec,cols:10') }] }),
      RejectionCode.FILTER,
    ],
    [
      'a group',
      srtConclusion({ extensions: [SRT_ABILITIES, { type: ExtensionType.GROUP, content: new Uint8Array(8) }] }),
      RejectionCode.GROUP,
    ],
  ])('a caller with %s is refused with the code for it', (_name, handshake, code) => {
    expect(readConclusion(handshake)).toBe(code);
  });

  test('text extensions keep every text without a zero byte', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), (text) => {
        fc.pre(!text.includes('\0'));
        expect(parseTextExtension(serializeTextExtension(text))).toBe(text);
      }),
    );
    expect(() => parseTextExtension(serializeTextExtension('x'.repeat(513)))).toThrow(/516 bytes, 512 are the most/);
    expect(() => parseTextExtension(hex('000000ff'))).toThrow(/not UTF-8/);
  });

  test('a refusal is distinguished from a handshake', () => {
    expect(rejectionOf(srtConclusion())).toBeNull();
    expect(rejectionOf(srtConclusion({ type: HandshakeType.INDUCTION }))).toBeNull();
    expect(rejectionOf(srtConclusion({ type: 1010 }))).toBe(RejectionCode.BAD_SECRET);
    expect(rejectionOf(srtConclusion({ type: 2404 }))).toBe(RejectionCode.NOT_FOUND);
  });

  test('hostile bytes are refused or read, never worse', () => {
    const read = (data: Uint8Array): unknown => readConclusion(parseHandshake(data));
    survivesHostileBytes(read, [CAPTURED, bytesOf(srtConclusion())]);
  });
});

describe('key material', () => {
  const material = { keyLength: 16, keys: 1, salt: new Uint8Array(16).fill(7), wrapped: new Uint8Array(24).fill(9) } as const;

  test('is read back', () => {
    expect(parseKeyMaterial(serializeKeyMaterial(material))).toEqual(material);
  });

  test.each([
    [0, 0x22, /version and type 34/],
    [3, 0, /without a key/],
    [8, 1, /cipher 1/],
    [9, 1, /authentication 1/],
    [14, 2, /salt of 8 bytes/],
    [15, 5, /key of 20 bytes/],
    [15, 8, /16 bytes behind the message/],
  ])('byte %i with value %i is refused by name', (at, value, message) => {
    const bytes = serializeKeyMaterial(material);
    bytes[at] = value;
    expect(() => parseKeyMaterial(bytes)).toThrow(message);
  });

  test('hostile bytes are refused or read, never worse', () => {
    survivesHostileBytes(parseKeyMaterial, [serializeKeyMaterial(material)]);
  });
});

describe('access control of stream ids', () => {
  test.each([
    ['#!::u=admin,r=live/one,m=publish', { user: 'admin', resource: 'live/one', host: null, mode: 'publish' }],
    ['#!::u=srt://host/app/stream?a=b,h=x', { user: 'srt://host/app/stream?a=b', resource: null, host: 'x', mode: null }],
    ['#!::r=live/one,s=a=b,h=x', { user: null, resource: 'live/one', host: 'x', mode: null, session: 'a=b' }],
    ['#!::', { user: null, resource: null, host: null, mode: null }],
    ['#!::=x,u', { user: null, resource: null, host: null, mode: null }],
  ])('%s', (text, expected) => {
    expect(parseAccessControl(text)).toEqual(expected);
  });

  test('a plain address is null', () => {
    expect(parseAccessControl('default/app/stream')).toBeNull();
    expect(parseAccessControl('')).toBeNull();
  });
});
