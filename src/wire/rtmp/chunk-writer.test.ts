import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ChunkWriter } from './chunk-writer.ts';

const AUDIO = { chunkStreamId: 4, typeId: 8, streamId: 1 };
const TWO = Buffer.from('aabb', 'hex');

describe('ChunkWriter', () => {
  test.each([
    { name: 'a full header first', after: [], next: { ...AUDIO, timestamp: 16, payload: TWO }, wire: '0400001000000208 01000000 aabb' },
    {
      name: 'no stream id when it is the same',
      after: [{ ...AUDIO, timestamp: 16, payload: TWO }],
      next: { ...AUDIO, timestamp: 20, payload: Buffer.from('cc', 'hex') },
      wire: '4400000400000108 cc',
    },
    {
      name: 'only the delta when length and type are the same',
      after: [{ ...AUDIO, timestamp: 16, payload: TWO }],
      next: { ...AUDIO, timestamp: 32, payload: TWO },
      wire: '84000010 aabb',
    },
    {
      name: 'nothing when the delta is the same too',
      after: [16, 20, 24].map((timestamp) => ({ ...AUDIO, timestamp, payload: TWO })),
      next: { ...AUDIO, timestamp: 28, payload: TWO },
      wire: 'c4 aabb',
    },
    {
      name: 'a full header when time goes back',
      after: [{ ...AUDIO, timestamp: 16, payload: TWO }],
      next: { ...AUDIO, timestamp: 15, payload: TWO },
      wire: '0400000f00000208 01000000 aabb',
    },
    {
      name: 'a full header for another message stream',
      after: [{ ...AUDIO, timestamp: 16, payload: TWO }],
      next: { ...AUDIO, streamId: 2, timestamp: 16, payload: TWO },
      wire: '0400001000000208 02000000 aabb',
    },
    {
      name: 'an extended timestamp',
      after: [],
      next: { ...AUDIO, timestamp: 0xff_ffff, payload: TWO },
      wire: '04ffffff00000208 01000000 00ffffff aabb',
    },
  ])('writes $name', ({ after, next, wire }) => {
    const writer = new ChunkWriter();
    for (const message of after) writer.write(message);
    expect(writer.write(next).toString('hex')).toBe(wire.replaceAll(' ', ''));
  });

  test('gathers the same bytes that it writes, for a payload in any pieces', () => {
    const message = fc.record({
      chunkStreamId: fc.constantFrom(4, 64, 400),
      timestamp: fc.oneof(fc.nat(1000), fc.integer({ min: 0xff_fff0, max: 0x100_0010 })),
      parts: fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 60 }), (messages, chunkSize) => {
        const [one, other] = [new ChunkWriter(), new ChunkWriter()];
        one.setChunkSize(chunkSize);
        other.setChunkSize(chunkSize);
        for (const { parts, ...head } of messages) {
          const pieces: Uint8Array[] = [];
          const bytes = other.gather({ ...head, typeId: 8, streamId: 1 }, parts, pieces);
          const whole = one.write({ ...head, typeId: 8, streamId: 1, payload: Buffer.concat(parts) });
          expect(Buffer.concat(pieces).toString('hex')).toBe(whole.toString('hex'));
          expect(bytes).toBe(whole.length);
        }
      }),
    );
  });

  test('refuses an invalid chunk size or chunk stream id', () => {
    const writer = new ChunkWriter();
    expect(() => writer.setChunkSize(0)).toThrow(TypeError);
    expect(() => writer.setChunkSize(0x100_0000)).toThrow(TypeError);
    expect(() => writer.write({ ...AUDIO, chunkStreamId: 1, timestamp: 0, payload: TWO })).toThrow(TypeError);
    expect(() => writer.write({ ...AUDIO, chunkStreamId: 65_600, timestamp: 0, payload: TWO })).toThrow(TypeError);
  });
});
