import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { survivesHostileBytes } from '../../test/support/hostile-bytes.ts';
import {
  FRAME_HEADER_SIZE,
  FrameFlag,
  type FrameHeader,
  FrameReader,
  FrameType,
  MAX_FRAME_PAYLOAD,
  serializeFrameHeader,
} from './process-frames.ts';

const PACKET: FrameHeader = { type: FrameType.PACKET, flags: FrameFlag.KEYFRAME, job: 7, id: 3, pts: 900_000, dts: -3000, duration: 3000 };

function frame(header: FrameHeader, payload: Uint8Array): Buffer {
  return Buffer.concat([serializeFrameHeader(header, payload.length), payload]);
}

/** The frames that a reader finds in `chunks`. */
function read(chunks: readonly Buffer[]): { header: FrameHeader; payload: string }[] {
  const frames: { header: FrameHeader; payload: string }[] = [];
  const reader = new FrameReader((header, payload) => frames.push({ header: { ...header }, payload: payload.toString('hex') }));
  for (const chunk of chunks) reader.push(chunk);
  return frames;
}

const headers = fc.record({
  type: fc.constantFrom(...Object.values(FrameType)),
  flags: fc.integer({ min: 0, max: 3 }),
  job: fc.nat(0xffff_ffff),
  id: fc.nat(0xffff_ffff),
  pts: fc.maxSafeInteger(),
  dts: fc.maxSafeInteger(),
  duration: fc.nat(0xffff_ffff),
});

describe('frames', () => {
  it('survive being cut anywhere', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(headers, fc.uint8Array({ maxLength: 300 })), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1 }),
        (frames, sizes) => {
          const all = Buffer.concat(frames.map(([header, payload]) => frame(header, payload)));
          const chunks: Buffer[] = [];
          for (let at = 0, index = 0; at < all.length; index += 1) {
            const size = sizes[index % sizes.length] ?? 1;
            chunks.push(all.subarray(at, at + size));
            at += size;
          }
          expect(read(chunks)).toEqual(frames.map(([header, payload]) => ({ header, payload: Buffer.from(payload).toString('hex') })));
        },
      ),
    );
  });

  it('within one chunk are views, not copies', () => {
    const bytes = frame(PACKET, Uint8Array.of(1, 2, 3));
    let seen: Buffer | null = null;
    new FrameReader((_header, payload) => {
      seen = payload;
    }).push(bytes);
    expect(seen!.buffer).toBe(bytes.buffer);
    expect(seen!.byteOffset).toBe(bytes.byteOffset + FRAME_HEADER_SIZE);
  });

  it.each([
    ['an unknown type', 4, 99, /type 99 \(at byte 4\)/],
    ['unknown flags', 5, 0x80, /flags 128 \(at byte 5\)/],
    ['reserved bytes that are set', 6, 1, /reserved/],
    ['a payload that is too long', 3, 0xff, /payload of \d+ bytes/],
    ['a time that is no whole number', 23, 0x7f, /timestamps/],
  ])('with %s are refused', (_name, at, value, message) => {
    const bytes = frame(PACKET, new Uint8Array(0));
    bytes[at] = value;
    expect(() => read([bytes])).toThrow(message);
  });

  it('refuse an announced length beyond the limit', () => {
    expect(() => read([serializeFrameHeader(PACKET, MAX_FRAME_PAYLOAD + 1)])).toThrow(/payload/);
  });

  it('of hostile bytes end in an error or wait for more', () => {
    const sample = Buffer.concat([frame(PACKET, Uint8Array.of(1, 2, 3)), frame({ ...PACKET, type: FrameType.CLOSE }, new Uint8Array(0))]);
    survivesHostileBytes((data) => read([Buffer.from(data)]), [sample]);
  });
});
