import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AV1 } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { ObuCursor, ObuType } from '../../codecs/av1/obu.ts';
import { Av1Packetizer } from './av1-packetizer.ts';
import type { Payloads } from './packetizer.ts';

function split({ bytes, sizes }: Payloads): Buffer[] {
  let at = 0;
  return Array.from(sizes, (size) => {
    at += size;
    return Buffer.from(bytes.slice(at - size, at));
  });
}

function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >> 7)];
}

/** A unit with its size, as in a stream, and in its form for RTP. */
function unit(type: number, body: Uint8Array, extended = false): { stream: Buffer; wire: Buffer } {
  const head = (type << 3) | (extended ? 4 : 0);
  const extension = extended ? [0x20] : [];
  return {
    stream: Buffer.from([head | 2, ...extension, ...leb(body.length), ...body]),
    wire: Buffer.from([head, ...extension, ...body]),
  };
}

/** The receiver's side, written after the specification: units out of payloads. */
function depacketize(payloads: readonly Buffer[]): Buffer[] {
  const units: Buffer[] = [];
  let partial: Buffer[] = [];
  payloads.forEach((payload, n) => {
    const flags = payload[0] ?? 0;
    const count = (flags >> 4) & 3;
    expect((flags & 0x80) !== 0).toBe(partial.length > 0);
    if ((flags & 0x08) !== 0) expect(n).toBe(0);
    const elements: Buffer[] = [];
    for (let at = 1; at < payload.length; ) {
      let length = payload.length - at;
      if (count === 0 || elements.length + 1 < count) {
        length = 0;
        for (let shift = 0; ; shift += 7) {
          const byte = payload[at] ?? 0;
          at += 1;
          length |= (byte & 0x7f) << shift;
          if (byte < 0x80) break;
        }
      }
      elements.push(payload.subarray(at, at + length));
      at += length;
    }
    if (count > 0) expect(elements.length).toBe(count);
    elements.forEach((element, index) => {
      partial.push(element);
      if (index + 1 < elements.length || (flags & 0x40) === 0) {
        units.push(Buffer.concat(partial));
        partial = [];
      }
    });
  });
  expect(partial).toEqual([]);
  return units;
}

describe('AV1', () => {
  test('packets are of equal size, regardless of unit boundaries, and delimiters are left out', () => {
    const delimiter = unit(ObuType.TEMPORAL_DELIMITER, Buffer.alloc(0));
    const header = unit(ObuType.SEQUENCE_HEADER, Buffer.alloc(10, 1));
    const metadata = unit(ObuType.METADATA, Buffer.alloc(200, 2), true);
    const frame = unit(ObuType.FRAME, Buffer.alloc(2500, 3));
    const stream = Buffer.concat([delimiter, header, metadata, frame].map(({ stream: bytes }) => bytes));
    const payloads = split(new Av1Packetizer(1000).packetize(stream, true));
    expect(payloads.map((payload) => payload[0])).toEqual([0x48, 0xc0, 0x80]);
    expect(new Set(payloads.slice(0, 2).map(({ length }) => length)).size).toBe(1);
    expect((payloads[0]?.length ?? 0) - (payloads[2]?.length ?? 0)).toBeLessThan(20);
    expect(depacketize(payloads)).toEqual([header.wire, metadata.wire, frame.wire]);
  });

  test('an out-of-band sequence header is sent first', () => {
    const header = unit(ObuType.SEQUENCE_HEADER, Buffer.alloc(10, 1));
    const frame = unit(ObuType.FRAME, Buffer.alloc(20, 3));
    const payloads = split(new Av1Packetizer(1000).packetize(frame.stream, true, header.stream));
    expect(payloads.map((payload) => payload[0])).toEqual([0x08]);
    expect(depacketize(payloads)).toEqual([header.wire, frame.wire]);
    const [later] = split(new Av1Packetizer(1000).packetize(frame.stream));
    expect(later?.[0]).toBe(0);
  });

  test('a real stream is restored', () => {
    const sent: Buffer[] = [];
    const cursor = new ObuCursor(AV1.stream444);
    while (cursor.next()) {
      if (cursor.type === ObuType.TEMPORAL_DELIMITER) continue;
      sent.push(Buffer.from([(AV1.stream444[cursor.start] ?? 0) & ~2, ...AV1.stream444.subarray(cursor.payload, cursor.end)]));
    }
    expect(depacketize(split(new Av1Packetizer(20).packetize(AV1.stream444)))).toEqual(sent);
    expect(sent.length).toBeGreaterThan(3);
  });

  test('arbitrary units are restored from packets within the budget', () => {
    const units = fc.array(
      fc
        .tuple(
          fc.constantFrom(ObuType.SEQUENCE_HEADER, ObuType.FRAME_HEADER, ObuType.TILE_GROUP, ObuType.METADATA, ObuType.FRAME),
          fc.oneof(
            fc.uint8Array({ maxLength: 5000 }),
            fc.nat(20_000).map((size) => new Uint8Array(size).fill(7)),
          ),
          fc.boolean(),
        )
        .map(([type, body, extended]) => unit(type, body, extended)),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(units, fc.integer({ min: 50, max: 1400 }), (list, budget) => {
        const payloads = split(new Av1Packetizer(budget).packetize(Buffer.concat(list.map(({ stream }) => stream)), true));
        for (const { length } of payloads) expect(length).toBeLessThanOrEqual(budget);
        // Texts are compared at once, buffers byte by byte.
        expect(depacketize(payloads).map((bytes) => bytes.toString('latin1'))).toEqual(list.map(({ wire }) => wire.toString('latin1')));
      }),
      { numRuns: 100 },
    );
  });

  test('hostile temporal units are refused, never worse', () => {
    const packetizer = new Av1Packetizer(30);
    survivesHostileBytes((data) => packetizer.packetize(data, true), [AV1.stream444, AV1.head10bit]);
  });
});
