import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../../../test/support/error-code.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { serializeRequest } from './message.ts';
import { MAX_PAYLOAD, OvtPayloadType, PACKET_HEADER_LENGTH, PacketWriter, parsePacketHeader, readInt64, writeInt64 } from './packet.ts';
import { OvtReader } from './reader.ts';

const LIMITS = { message: 200_000, media: 200_000 };
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

/** The packets that a reader finds in `pieces`. */
function read(pieces: readonly Uint8Array[], limits = LIMITS): { type: number; payload: Buffer }[] {
  const reader = new OvtReader(limits);
  const payloads: { type: number; payload: Buffer }[] = [];
  for (const piece of pieces) reader.push(piece, (type, payload) => payloads.push({ type, payload: Buffer.from(payload) }));
  return payloads;
}

function packets(payload: Uint8Array, type: OvtPayloadType = OvtPayloadType.MEDIA, sequence = 0): Buffer {
  const writer = new PacketWriter(type, 7);
  writer.begin(payload.length, sequence, 1);
  writer.put(payload);
  return writer.finish();
}

describe('packets', () => {
  test('a request is laid out to the byte', () => {
    const bytes = serializeRequest({ id: 1, command: 'play', target: 'ovt://h/a/s' }, 1_700_000_000_123);
    const json = '{"id":1,"application":"play","target":"ovt://h/a/s"}';
    // Version 1 with marker, request, sequence 0, time, session 0, 52 bytes.
    expect(bytes.toString('hex')).toBe(
      hex('60 0a 0000 0000018bcfe5687b 00000000 0034').toString('hex') + Buffer.from(json).toString('hex'),
    );
  });

  test('a long payload is split, and only its last packet has the marker', () => {
    const payload = Buffer.alloc(MAX_PAYLOAD + 5, 0xab);
    const bytes = packets(payload, OvtPayloadType.MEDIA, 0xffff);
    expect(bytes.length).toBe(payload.length + 2 * PACKET_HEADER_LENGTH);
    expect(bytes.subarray(0, PACKET_HEADER_LENGTH)).toEqual(hex('40 1e ffff 0000000000000001 00000007 7fee'));
    expect(bytes.subarray(32_768, 32_768 + PACKET_HEADER_LENGTH)).toEqual(hex('60 1e 0000 0000000000000001 00000007 0005'));
    expect(read([bytes])[0]?.payload.equals(payload)).toBe(true);
  });

  test.each([
    ['OVT_VERSION', '20 0a 0000 0000000000000000 00000000 0001'],
    ['OVT_VERSION', 'a0 0a 0000 0000000000000000 00000000 0001'],
    ['OVT_TYPE', '60 0b 0000 0000000000000000 00000000 0001'],
    ['OVT_LENGTH', '60 0a 0000 0000000000000000 00000000 7fef'],
  ])('%s: %s', (code, bytes) => {
    expect(codeOf(() => parsePacketHeader(hex(bytes), 0))).toBe(code);
  });

  test.each([0, 1, -1, 4_294_967_295, 4_294_967_296, -4_294_967_297, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])(
    'the number %i is written as the platform writes it and read back',
    (value) => {
      const bytes = Buffer.alloc(8);
      const expected = Buffer.alloc(8);
      writeInt64(bytes, value, 0);
      expected.writeBigInt64BE(BigInt(value));
      expect(bytes).toEqual(expected);
      expect(readInt64(new DataView(bytes.buffer, bytes.byteOffset, 8), 0)).toBe(value);
    },
  );

  test('a time of more bits than a double has is refused', () => {
    const bytes = hex('7fffffffffffffff');
    expect(codeOf(() => readInt64(new DataView(bytes.buffer, bytes.byteOffset, 8), 0))).toBe('OVT_NUMBER');
  });

  test('a payload shorter than its announced length throws', () => {
    const writer = new PacketWriter(OvtPayloadType.MEDIA, 0);
    writer.begin(10, 0, 0);
    writer.put(Buffer.alloc(9));
    expect(() => writer.finish()).toThrow('not as long');
  });
});

describe('the reader', () => {
  test('finds the same payloads however the bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ size: fc.integer({ min: 1, max: 70_000 }), media: fc.boolean() }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 20 }),
        (items, cuts) => {
          const sent = items.map(({ size, media }, index) => ({
            type: media ? OvtPayloadType.MEDIA : OvtPayloadType.RESPONSE,
            payload: Buffer.alloc(size, index + 1),
          }));
          const bytes = Buffer.concat(sent.map(({ type, payload }) => packets(payload, type)));
          const pieces: Buffer[] = [];
          for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
            const length = cuts[turn % cuts.length]!;
            pieces.push(bytes.subarray(at, at + length));
            at += length;
          }
          const received = read(pieces);
          expect(received.map(({ type }) => type)).toEqual(sent.map(({ type }) => type));
          expect(received.every(({ payload }, index) => payload.equals(sent[index]!.payload))).toBe(true);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('reads single bytes', () => {
    const bytes = Buffer.concat([packets(Buffer.from('one')), packets(Buffer.from('two'), OvtPayloadType.REQUEST)]);
    expect(read([...bytes].map((byte) => Uint8Array.of(byte))).map(({ payload }) => payload.toString())).toEqual(['one', 'two']);
  });

  test('joins a payload of thousands of small parts', () => {
    const part = hex('40 1e 0000 0000000000000000 00000000 0001 aa');
    const last = hex('60 1e 0000 0000000000000000 00000000 0001 bb');
    const [payload] = read([Buffer.concat([...Array.from({ length: 5000 }, () => part), last])]);
    expect(payload?.payload.equals(Buffer.concat([Buffer.alloc(5000, 0xaa), Buffer.of(0xbb)]))).toBe(true);
  });

  test('a message may be between the parts of a media packet', () => {
    const media = packets(Buffer.alloc(MAX_PAYLOAD + 1, 1));
    const message = packets(Buffer.from('{}'), OvtPayloadType.RESPONSE);
    const payloads = read([media.subarray(0, 32_768), message, media.subarray(32_768)]);
    expect(payloads.map(({ payload }) => payload.length)).toEqual([2, MAX_PAYLOAD + 1]);
  });

  test('an empty packet with the marker is an empty payload', () => {
    expect(read([hex('60 0a 0000 0000000000000000 00000000 0000')])).toEqual([{ type: 10, payload: Buffer.alloc(0) }]);
  });

  test('refuses an oversized payload before it is complete', () => {
    const media = packets(Buffer.alloc(MAX_PAYLOAD + 1));
    expect(codeOf(() => read([media], { message: 1000, media: MAX_PAYLOAD }))).toBe('OVT_SIZE');
    expect(codeOf(() => read([media.subarray(0, PACKET_HEADER_LENGTH)], { message: 1000, media: 0 }))).toBe('OVT_SIZE');
    expect(codeOf(() => read([packets(Buffer.alloc(1001), OvtPayloadType.REQUEST)], { message: 1000, media: 0 }))).toBe('OVT_SIZE');
  });

  test('survives hostile bytes', () => {
    survivesHostileBytes((data) => read([data]), [packets(Buffer.from('hello')), packets(Buffer.from('{}'), OvtPayloadType.RESPONSE)]);
  });
});
