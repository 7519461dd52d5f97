import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { buildExtensions } from './header-extensions.ts';
import { NalPacketizer } from './nal-packetizer.ts';
import type { Payloads } from './packetizer.ts';
import { OpusPacketizer, Vp8Packetizer } from './plain-packetizer.ts';

function lengthPrefixed(...units: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    units.map((unit) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(unit.length);
      return Buffer.concat([length, unit]);
    }),
  );
}

function split({ bytes, sizes }: Payloads): Buffer[] {
  let at = 0;
  return Array.from(sizes, (size) => {
    at += size;
    return Buffer.from(bytes.slice(at - size, at));
  });
}

/** The receiver's side, written after the RFCs: NAL units out of payloads. */
function depacketize(codec: 'H264' | 'H265', payloads: readonly Buffer[]): Buffer[] {
  const head = codec === 'H264' ? 1 : 2;
  const units: Buffer[] = [];
  let partial: Buffer[] = [];
  for (const payload of payloads) {
    const first = payload[0] ?? 0;
    const type = codec === 'H264' ? first & 0x1f : (first >> 1) & 0x3f;
    if (type === (codec === 'H264' ? 24 : 48)) {
      for (let at = head; at < payload.length; ) {
        const length = payload.readUInt16BE(at);
        units.push(payload.subarray(at + 2, at + 2 + length));
        at += 2 + length;
      }
    } else if (type === (codec === 'H264' ? 28 : 49)) {
      const flags = payload[head] ?? 0;
      if ((flags & 0x80) !== 0) {
        const original =
          codec === 'H264'
            ? Buffer.of((first & 0xe0) | (flags & 0x1f))
            : Buffer.of((first & 0x81) | ((flags & 0x3f) << 1), payload[1] ?? 0);
        partial = [original];
      }
      partial.push(payload.subarray(head + 1));
      if ((flags & 0x40) !== 0) units.push(Buffer.concat(partial));
    } else units.push(payload);
  }
  return units;
}

describe.each(['H264', 'H265'] as const)('%s', (codec) => {
  const header = (type: number): number[] => (codec === 'H264' ? [0x60 | type] : [type << 1, 1]);
  const slice = codec === 'H264' ? 5 : 19;
  const sets = codec === 'H264' ? [7, 8] : [32, 33, 34];

  test('parameter sets share a packet, slices are cut into equal fragments', () => {
    const units = [
      ...sets.map((type) => Buffer.from([...header(type), 1, 2, 3])),
      Buffer.from([...header(slice), ...new Array(2500).fill(7)]),
    ];
    const payloads = split(new NalPacketizer(codec, 1000).packetize(lengthPrefixed(...units)));
    expect(payloads.length).toBe(4);
    expect(new Set(payloads.slice(1, 3).map(({ length }) => length)).size).toBe(1);
    expect(depacketize(codec, payloads)).toEqual(units);
  });

  test('out-of-band parameter sets are sent first, delimiters are left out', () => {
    const delimiter = Buffer.from([...header(codec === 'H264' ? 9 : 35), 1, 2]);
    const unit = Buffer.from([...header(slice), 9]);
    const set = Buffer.from([...header(sets[0] ?? 0), 4]);
    const payloads = split(new NalPacketizer(codec, 1000).packetize(lengthPrefixed(delimiter, unit), lengthPrefixed(set)));
    expect(depacketize(codec, payloads)).toEqual([set, unit]);
  });

  test('arbitrary units are restored from packets within the budget', () => {
    const unit = fc
      .tuple(fc.constantFrom(1, slice, ...sets), fc.uint8Array({ minLength: 1, maxLength: 5000 }))
      .map(([type, body]) => Buffer.from([...header(type), ...body]));
    fc.assert(
      fc.property(fc.array(unit, { minLength: 1, maxLength: 6 }), fc.integer({ min: 50, max: 1400 }), (units, budget) => {
        const payloads = split(new NalPacketizer(codec, budget).packetize(lengthPrefixed(...units)));
        for (const { length } of payloads) expect(length).toBeLessThanOrEqual(budget);
        expect(depacketize(codec, payloads)).toEqual(units);
      }),
      { numRuns: 100 },
    );
  });

  test('hostile access units are refused, never worse', () => {
    const packetizer = new NalPacketizer(codec, 100);
    survivesHostileBytes(
      (data) => packetizer.packetize(data),
      [lengthPrefixed(Buffer.from([...header(slice), 1, 2, 3]), Buffer.from([...header(7), 1]))],
    );
  });
});

test('VP8 frames are split with a descriptor per packet', () => {
  const frame = Buffer.alloc(2000, 3);
  const payloads = split(new Vp8Packetizer(1000).packetize(frame));
  expect(payloads.map((payload) => payload[0])).toEqual([0x10, 0, 0]);
  expect(Buffer.concat(payloads.map((payload) => payload.subarray(1)))).toEqual(frame);
  expect(new Vp8Packetizer(1000).packetize(new Uint8Array()).sizes.length).toBe(0);
});

test('an Opus frame is one packet, unless it exceeds the budget', () => {
  expect(split(new OpusPacketizer(100).packetize(Buffer.of(1, 2)))).toEqual([Buffer.of(1, 2)]);
  expect(new OpusPacketizer(100).packetize(Buffer.alloc(101)).sizes.length).toBe(0);
});

test('header extensions are laid out in words', () => {
  expect(buildExtensions({})).toEqual({ bytes: new Uint8Array(0), sendTimeAt: 0, transportSequenceAt: 0 });
  const block = buildExtensions({ absSendTime: 4, transportCc: 3, playoutDelay: { id: 2, minMs: 100, maxMs: 2000 } });
  expect(Buffer.from(block.bytes).toString('hex')).toBe('bede0003420000003100002200a0c800');
  expect(block).toMatchObject({ sendTimeAt: 5, transportSequenceAt: 9 });
});
