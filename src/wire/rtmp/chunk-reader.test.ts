import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codeOf } from '../../../test/support/error-code.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { ChunkReader, type ChunkReaderLimits, DEFAULT_CHUNK_READER_LIMITS } from './chunk-reader.ts';
import { ChunkWriter } from './chunk-writer.ts';
import type { RtmpMessage } from './message.ts';

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
}

function reading(limits: Partial<ChunkReaderLimits> = {}) {
  const messages: RtmpMessage[] = [];
  const reader = new ChunkReader({
    onMessage: (message) => messages.push(message),
    limits: { ...DEFAULT_CHUNK_READER_LIMITS, ...limits },
  });
  return { reader, messages };
}

/** Each message as `<chunk stream> <type> <message stream> <timestamp> <payload>`, the last two in hex as on the wire. */
function brief(messages: readonly RtmpMessage[]): string[] {
  return messages.map(
    (m) => `${m.chunkStreamId} ${m.typeId} ${m.streamId} ${m.timestamp.toString(16)} ${Buffer.from(m.payload).toString('hex')}`,
  );
}

const HEADER_FORMS: { name: string; wire: string; messages: string[] }[] = [
  { name: 'type 0', wire: '03 000010 000002 14 01000000 aabb', messages: ['3 20 1 10 aabb'] },
  { name: 'two-byte chunk stream id', wire: '00 06 000000 000001 08 00000000 cc', messages: ['70 8 0 0 cc'] },
  { name: 'three-byte chunk stream id', wire: '01 0201 000000 000001 08 00000000 cc', messages: ['322 8 0 0 cc'] },
  { name: 'a message without payload', wire: '04 000005 000000 08 01000000', messages: ['4 8 1 5 '] },
  {
    name: 'type 1: new length and type, same stream',
    wire: '04 000010 000001 08 01000000 aa  44 000005 000002 09 bbcc',
    messages: ['4 8 1 10 aa', '4 9 1 15 bbcc'],
  },
  {
    name: 'type 2: new delta only',
    wire: '04 000010 000001 08 01000000 aa  84 000007 bb',
    messages: ['4 8 1 10 aa', '4 8 1 17 bb'],
  },
  {
    name: 'type 3 after type 2 repeats the delta',
    wire: '04 000010 000001 08 01000000 aa  84 000007 bb  c4 cc  c4 dd',
    messages: ['4 8 1 10 aa', '4 8 1 17 bb', '4 8 1 1e cc', '4 8 1 25 dd'],
  },
  {
    name: 'type 3 after type 0 adds its timestamp once more',
    wire: '04 000010 000001 08 01000000 aa  c4 bb',
    messages: ['4 8 1 10 aa', '4 8 1 20 bb'],
  },
  { name: 'type 1 as the first header', wire: '42 000001 000001 08 aa', messages: ['2 8 0 1 aa'] },
  { name: 'extended timestamp', wire: '04 ffffff 000001 08 01000000 01000000 aa', messages: ['4 8 1 1000000 aa'] },
  {
    name: 'extended delta, past the wrap',
    wire: '04 ffffff 000001 08 01000000 ffffff00 aa  84 ffffff 01000000 bb  c4 01000000 cc',
    messages: ['4 8 1 ffffff00 aa', '4 8 1 ffff00 bb', '4 8 1 1ffff00 cc'],
  },
  {
    name: 'small delta past the wrap',
    wire: '04 ffffff 000001 08 01000000 fffffff0 aa  84 000020 bb',
    messages: ['4 8 1 fffffff0 aa', '4 8 1 10 bb'],
  },
  {
    name: 'a new header that cuts off an unfinished message',
    wire: `04 000000 0000ff 09 01000000 ${'11'.repeat(128)} 04 000001 000001 08 01000000 aa`,
    messages: ['4 8 1 1 aa'],
  },
];

describe('header forms', () => {
  test.each(HEADER_FORMS)('reads $name', ({ wire, messages }) => {
    const reading1 = reading();
    reading1.reader.push(hex(wire));
    expect(brief(reading1.messages)).toEqual(messages);
    expect(reading1.reader.pendingBytes).toBe(0);
  });

  test.each(HEADER_FORMS)('reads $name cut into single bytes', ({ wire, messages }) => {
    const { reader, messages: got } = reading();
    for (const byte of hex(wire)) reader.push(Buffer.from([byte]));
    expect(brief(got)).toEqual(messages);
  });

  test.each(HEADER_FORMS)('$name, ended at every byte, gives a prefix of the messages', ({ wire, messages }) => {
    const bytes = hex(wire);
    for (let end = 0; end < bytes.length; end += 1) {
      const { reader, messages: got } = reading();
      reader.push(bytes.subarray(0, end));
      expect(brief(got)).toEqual(messages.slice(0, got.length));
    }
  });
});

describe('messages of several chunks', () => {
  const payload = Buffer.from(Array.from({ length: 300 }, (_, i) => i & 0xff));
  const part = (from: number, to: number) => payload.subarray(from, to).toString('hex');

  test('joins type 3 continuations, interleaved with another chunk stream', () => {
    const { reader, messages } = reading();
    const audio = '05 000009 000002 08 01000000 eeff';
    reader.push(hex(`04 000001 00012c 09 01000000 ${part(0, 128)} ${audio} c4 ${part(128, 256)} c4 ${part(256, 300)}`));
    expect(brief(messages)).toEqual(['5 8 1 9 eeff', `4 9 1 1 ${payload.toString('hex')}`]);
  });

  test('applies a new chunk size between the chunks of a message', () => {
    const { reader, messages } = reading();
    reader.push(hex(`04 000001 00012c 09 01000000 ${part(0, 128)}`));
    reader.setChunkSize(100);
    reader.push(hex(`c4 ${part(128, 228)} c4 ${part(228, 300)}`));
    expect(Buffer.from(messages[0]!.payload)).toEqual(payload);
  });

  const extended = `04 ffffff 00012c 09 01000000 01020304 ${part(0, 128)}`;
  test.each([
    { name: 'repeats the extended timestamp', repeat: '01020304' },
    { name: 'leaves the extended timestamp out', repeat: '' },
  ])('reads an encoder that $name in continuations', ({ repeat }) => {
    const wire = hex(`${extended} c4 ${repeat} ${part(128, 256)} c4 ${repeat} ${part(256, 300)} 05 000009 000002 08 01000000 eeff`);
    for (const step of [1, 7, wire.length]) {
      const { reader, messages } = reading();
      for (let at = 0; at < wire.length; at += step) reader.push(wire.subarray(at, at + step));
      expect(brief(messages)).toEqual([`4 9 1 1020304 ${payload.toString('hex')}`, '5 8 1 9 eeff']);
    }
  });

  test('a last chunk shorter than the missing extended timestamp is still recognised', () => {
    const { reader, messages } = reading();
    const body = payload.subarray(0, 130);
    reader.push(
      hex(`04 ffffff 000082 09 01000000 01020304 ${body.subarray(0, 128).toString('hex')} c4 ${body.subarray(128).toString('hex')}`),
    );
    reader.push(hex('05 000009 000002 08 01000000 eeff'));
    expect(brief(messages).map((m) => m.split(' ')[4])).toEqual([body.toString('hex'), 'eeff']);
  });

  test('forgets an aborted message', () => {
    const { reader, messages } = reading();
    reader.push(hex(`04 000001 00012c 09 01000000 ${part(0, 128)}`));
    expect(reader.pendingBytes).toBe(300);
    reader.abort(4);
    reader.abort(9);
    expect(reader.pendingBytes).toBe(0);
    expect(reader.discarded).toBe(1);
    reader.push(hex('04 000002 000001 08 01000000 aa'));
    expect(brief(messages)).toEqual(['4 8 1 2 aa']);
  });

  test('passes on messages with separate memory', () => {
    const { reader, messages } = reading();
    const wire = hex('04 000010 000002 08 01000000 aabb 04 000010 000003 08 01000000 ccddee');
    reader.push(wire);
    wire.fill(0);
    expect(messages.map(({ payload }) => Buffer.from(payload).toString('hex'))).toEqual(['aabb', 'ccddee']);
    messages[0]!.payload.fill(0xff);
    expect(Buffer.from(messages[1]!.payload).toString('hex')).toBe('ccddee');
  });
});

describe('limits', () => {
  test.each([
    { name: 'a 16 MiB command', limits: {}, wire: '03 000000 ffffff 14 00000000', code: 'RTMP_MESSAGE_SIZE' },
    { name: 'media above its limit', limits: { mediaBytes: 9 }, wire: '04 000000 00000a 09 00000000', code: 'RTMP_MESSAGE_SIZE' },
    { name: 'type 2 on an unknown chunk stream', limits: {}, wire: '84 000000', code: 'RTMP_CHUNK_HEADER' },
    { name: 'type 3 on an unknown chunk stream', limits: {}, wire: 'c4', code: 'RTMP_CHUNK_HEADER' },
    {
      name: 'too many chunk streams',
      limits: { chunkStreams: 1 },
      wire: '04 000000 000001 08 00000000 aa 05 000000 000001 08 00000000 aa',
      code: 'RTMP_CHUNK_STREAMS',
    },
    {
      name: 'unfinished messages beyond the budget',
      limits: { pendingBytes: 300 },
      wire: `04 000000 0000ff 09 00000000 ${'00'.repeat(128)} 05 000000 0000ff 09 00000000`,
      code: 'RTMP_PENDING_BYTES',
    },
  ])('refuses $name', ({ limits, wire, code }) => {
    expect(codeOf(() => reading(limits).reader.push(hex(wire)))).toBe(code);
  });

  test.each([0, -1, 0x8000_0000, 0xffff_ffff])('refuses chunk size %d', (size) => {
    expect(codeOf(() => reading().reader.setChunkSize(size))).toBe('RTMP_CHUNK_SIZE');
  });

  test('limits a chunk size of 2 GiB to the longest message', () => {
    const { reader } = reading();
    reader.setChunkSize(0x7fff_ffff);
    expect(reader.chunkSize).toBe(0xff_ffff);
  });

  test('new limits hold for the next message', () => {
    const { reader, messages } = reading({ mediaBytes: 1 });
    reader.setLimits(DEFAULT_CHUNK_READER_LIMITS);
    reader.push(hex('04 000000 000002 09 00000000 aabb'));
    expect(messages).toHaveLength(1);
  });
});

describe('memory grows with the received bytes', () => {
  const MIB = 1024 * 1024;
  /** A type 0 header of a message of `length` bytes on a chunk stream. */
  const header = (length: number, chunkStream = 4) =>
    hex(`${chunkStream.toString(16).padStart(2, '0')} 000000 ${length.toString(16).padStart(6, '0')} 09 01000000`);

  test('a header that announces 16 MB reserves 64 KiB, and grows with its bytes', () => {
    const { reader, messages } = reading();
    reader.setChunkSize(0xff_ffff);
    reader.push(header(0xff_ffff));
    expect(reader.heldBytes).toBe(65_536);
    const piece = Buffer.alloc(100_000, 1);
    for (let sent = 100_000; sent <= 16_000_000; sent += 100_000) {
      reader.push(piece);
      expect(reader.heldBytes).toBeLessThanOrEqual(Math.max(65_536, 2 * sent));
    }
    reader.push(Buffer.alloc(0xff_ffff - 16_000_000, 2));
    expect(reader.heldBytes).toBe(0);
    const payload = Buffer.from(messages[0]!.payload);
    expect(payload.length).toBe(0xff_ffff);
    expect(payload.indexOf(2)).toBe(16_000_000);
    expect(payload.subarray(0, 16_000_000).every((byte) => byte === 1)).toBe(true);
  });

  test('many headers share a bounded amount of memory', () => {
    const { reader } = reading({ pendingBytes: 64 * MIB });
    reader.setChunkSize(1);
    for (let id = 2; id < 62; id += 1) reader.push(Buffer.concat([header(MIB, id), Buffer.of(0)]));
    expect(reader.pendingBytes).toBe(60 * MIB);
    expect(reader.heldBytes).toBeLessThanOrEqual(4 * 65_536 + 60 * 4096);
  });

  test('a publisher that has sent a large keyframe gets memory for the next at once', () => {
    const { reader, messages } = reading();
    reader.setChunkSize(MIB);
    reader.push(Buffer.concat([header(300_000), Buffer.alloc(300_000)]));
    reader.push(Buffer.concat([header(400_000), Buffer.alloc(1)]));
    expect(reader.heldBytes).toBe(400_000);
    reader.push(Buffer.alloc(399_999));
    expect(messages.map(({ payload }) => payload.length)).toEqual([300_000, 400_000]);
  });

  test('a publisher that then leaves messages unfinished loses that memory, and each discard is reported', () => {
    let told = 0;
    const reader = new ChunkReader({
      onMessage: () => undefined,
      onDiscard: () => {
        told += 1;
        if (told === 3) throw new ProtocolError('ENOUGH', 'too many');
      },
    });
    reader.setChunkSize(MIB);
    reader.push(Buffer.concat([header(300_000), Buffer.alloc(300_000)]));
    const unfinished = Buffer.concat([header(MIB), Buffer.alloc(1)]);
    reader.setChunkSize(1);
    reader.push(unfinished);
    expect(reader.heldBytes).toBe(600_000);
    reader.push(unfinished);
    expect(reader.heldBytes).toBe(65_536);
    reader.abort(4);
    expect(reader.heldBytes).toBe(0);
    expect(told).toBe(2);
    expect(codeOf(() => reader.push(Buffer.concat([unfinished, unfinished, unfinished])))).toBe('ENOUGH');
    expect(told).toBe(3);
  });
});

const messageArbitrary = fc.record({
  chunkStreamId: fc.oneof(fc.integer({ min: 2, max: 6 }), fc.constantFrom(63, 64, 319, 320, 65_599)),
  typeId: fc.constantFrom(8, 9, 18, 20),
  streamId: fc.constantFrom(0, 1, 0xffff_ffff),
  timestamp: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constantFrom(0xff_fffe, 0xff_ffff, 0x0100_0000, 0xffff_ffff)),
  payload: fc.uint8Array({ maxLength: 700 }),
});

describe('properties', () => {
  test('arbitrary messages of the writer are read back, cut at any byte', () => {
    const scenario = fc.record({
      steps: fc.array(fc.record({ message: messageArbitrary, chunkSize: fc.option(fc.integer({ min: 1, max: 1000 }), { nil: null }) }), {
        maxLength: 12,
      }),
      cuts: fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 }),
    });
    fc.assert(
      fc.property(scenario, ({ steps, cuts }) => {
        const writer = new ChunkWriter();
        const { reader, messages } = reading();
        for (const { message, chunkSize } of steps) {
          if (chunkSize !== null) {
            writer.setChunkSize(chunkSize);
            reader.setChunkSize(chunkSize);
          }
          const wire = writer.write(message);
          for (let at = 0, i = 0; at < wire.length; i += 1) {
            const length = cuts[i % cuts.length]!;
            reader.push(wire.subarray(at, at + length));
            at += length;
          }
        }
        expect(brief(messages)).toEqual(brief(steps.map((step) => step.message)));
      }),
      { numRuns: 300 },
    );
  });

  test('chunks of two chunk streams may interleave in any order', () => {
    const scenario = fc.record({
      payloads: fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 600 }), fc.uint8Array({ minLength: 1, maxLength: 600 })),
      timestamp: fc.constantFrom(7, 0xff_ffff),
      order: fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
      chunkSize: fc.integer({ min: 50, max: 300 }),
    });
    fc.assert(
      fc.property(scenario, ({ payloads, timestamp, order, chunkSize }) => {
        const queues = payloads.map((payload, i) =>
          chunksOf({ chunkStreamId: 4 + i, typeId: 9, streamId: 1, timestamp, payload }, chunkSize),
        );
        const { reader, messages } = reading();
        reader.setChunkSize(chunkSize);
        for (const second of order) reader.push(queues[second ? 1 : 0]!.shift() ?? Buffer.alloc(0));
        for (const chunk of queues.flat()) reader.push(chunk);
        const got = [...messages].sort((a, b) => a.chunkStreamId - b.chunkStreamId);
        expect(got.map((m) => Buffer.from(m.payload))).toEqual(payloads.map((payload) => Buffer.from(payload)));
      }),
    );
  });

  test('random bytes give messages or a ProtocolError, and never hold more than the budget', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 20 }), (pieces) => {
        const { reader } = reading({ mediaBytes: 5000, controlBytes: 1000, pendingBytes: 8000, chunkStreams: 8 });
        try {
          for (const piece of pieces) reader.push(Buffer.from(piece));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
        expect(reader.pendingBytes).toBeLessThanOrEqual(8000);
        expect(reader.heldBytes).toBeLessThanOrEqual(8000);
      }),
      { numRuns: 500 },
    );
  });
});

/** Cuts the writer's output for a first message back into its chunks. */
function chunksOf(message: RtmpMessage, chunkSize: number): Buffer[] {
  const writer = new ChunkWriter();
  writer.setChunkSize(chunkSize);
  const wire = writer.write(message);
  const extra = message.timestamp >= 0xff_ffff ? 4 : 0;
  const chunks: Buffer[] = [];
  let at = 0;
  for (let left = message.payload.length, header = 12 + extra; left > 0; left -= chunkSize, header = 1 + extra) {
    const length = header + Math.min(left, chunkSize);
    chunks.push(wire.subarray(at, at + length));
    at += length;
  }
  return chunks;
}
