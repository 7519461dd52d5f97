/** Receiving media: header extensions, order and repetition, and feedback. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { findExtension, readExtension16 } from './extension-reader.ts';
import { buildExtensions } from './header-extensions.ts';
import { readNacks } from './nacks.ts';
import { buildFir, buildNack, buildPli, buildRemb } from './receiver-feedback.ts';
import { buildReceiverReport, parseRtcp } from './rtcp-packet.ts';
import { parseRtpPacket, type RtpPacket, sequenceDistance } from './rtp-packet.ts';
import { RtpReceiveBuffer } from './rtp-receive-buffer.ts';
import { TransportFeedback } from './transport-feedback.ts';
import { readViewerFeedback } from './viewer-feedback.ts';

/** A packet with an extension block and two payload bytes. */
function withExtensions(block: Uint8Array): Buffer {
  const head = Buffer.from([block.length === 0 ? 0x80 : 0x90, 96, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);
  return Buffer.concat([head, block, Buffer.from([1, 2])]);
}

describe('header extensions', () => {
  test('extensions of a sender are found', () => {
    const { bytes } = buildExtensions({ absSendTime: 4, transportCc: 3, playoutDelay: { id: 2, minMs: 0, maxMs: 100 } });
    const packet = withExtensions(bytes);
    expect(findExtension(packet, 3)).toEqual(Buffer.of(0, 0));
    expect(readExtension16(packet, 3)).toBe(0);
    expect(readExtension16(packet, 9)).toBe(-1);
    expect(findExtension(packet, 4)).toHaveLength(3);
    expect(findExtension(packet, 9)).toBeNull();
    expect(findExtension(withExtensions(new Uint8Array(0)), 3)).toBeNull();
  });

  test.each([
    ['the one-byte form, behind padding', 'bede0002 00 31 aabb 0 0 0 0', 3, 'aabb'],
    ['behind another element', 'bede0002 20 7f 12 616263 0 0', 1, '616263'],
    ['the two-byte form', '10000002 05 03 aabbcc 00 00 00', 5, 'aabbcc'],
    ['an empty value of the two-byte form', '10000001 05 00 00 00', 5, ''],
    ['id 15 ends the one-byte form', 'bede0002 f0 aa 30 bb 00 00 00 00', 3, null],
    ['a value that leaves the block', 'bede0001 3f aa bb cc', 3, null],
    ['another profile', '12340001 30 aa 00 00', 3, null],
  ])('%s', (_name, hex, id, value) => {
    const block = Buffer.from(hex.replaceAll(/ 0(?= |$)/g, '00').replaceAll(' ', ''), 'hex');
    const found = findExtension(withExtensions(block), id);
    expect(found === null ? null : Buffer.from(found).toString('hex')).toBe(value);
  });

  test('hostile packets are searched without harm', () => {
    const sample = withExtensions(buildExtensions({ absSendTime: 4, transportCc: 3 }).bytes);
    survivesHostileBytes(
      (data) => {
        parseRtpPacket(data);
        for (const id of [1, 3, 14, 255]) expect(findExtension(data, id)?.length ?? 0).toBeLessThanOrEqual(data.length);
      },
      [sample],
    );
  });
});

function packetAt(index: number): RtpPacket {
  return { marker: false, payloadType: 96, sequence: index & 0xff_ff, timestamp: index, ssrc: 1, payload: Buffer.of(1) };
}

/** A buffer and its output. */
function receiver(repeats: boolean) {
  const buffer = new RtpReceiveBuffer({ repeats });
  const out: { readonly at: number; readonly lost: boolean }[] = [];
  const sink = (packet: RtpPacket, lost: boolean): number => out.push({ at: packet.timestamp, lost });
  return {
    buffer,
    out,
    push: (index: number, now: number) => buffer.push(packetAt(index), now, sink),
    check: (now: number) => buffer.check(now, sink),
  };
}

describe('the receive buffer', () => {
  test('packets in order pass at once, around the wrap', () => {
    const { out, push, buffer } = receiver(true);
    for (let index = 65_530; index < 65_545; index += 1) push(index, index);
    expect(out.map(({ at }) => at)).toEqual(Array.from({ length: 15 }, (_, n) => 65_530 + n));
    expect(out.every(({ lost }) => !lost)).toBe(true);
    expect(buffer.highest).toBe(65_544);
  });

  test('a packet overtaken by the first one is late, and no restart', () => {
    const { out, push, buffer } = receiver(true);
    push(0, 0);
    push(65_535, 1);
    push(1, 2);
    expect(out.map(({ at }) => at)).toEqual([0, 1]);
    expect(buffer.counters).toMatchObject({ late: 1, lost: 0 });
  });

  test('a gap is requested after a moment, again after a round trip, and filled', () => {
    const { out, push, check, buffer } = receiver(true);
    push(10, 0);
    push(13, 0);
    expect(check(5)).toEqual([]);
    expect(check(12)).toEqual([11, 12]);
    expect(check(50)).toEqual([]);
    expect(check(150)).toEqual([11, 12]);
    push(12, 160);
    expect(out.map(({ at }) => at)).toEqual([10]);
    push(11, 161);
    expect(out.map(({ at }) => at)).toEqual([10, 11, 12, 13]);
    expect(buffer.counters).toMatchObject({ recovered: 2, lost: 0, requested: 4 });
    expect(check(1000)).toEqual([]);
  });

  test('requests follow the measured round trip', () => {
    const { push, check } = receiver(true);
    push(0, 0);
    for (let n = 0; n < 60; n += 1) {
      const at = n * 100;
      push(n * 2 + 2, at);
      expect(check(at + 10)).toEqual([n * 2 + 1]);
      push(n * 2 + 1, at + 20);
    }
    push(400, 10_000);
    expect(check(10_010).length).toBeGreaterThan(100);
    expect(check(10_030).length).toBeGreaterThan(100);
  });

  test('a missing packet is skipped after a while, and the next packet is marked', () => {
    const { out, push, check, buffer } = receiver(true);
    push(1, 0);
    push(3, 0);
    check(10);
    expect(check(5000)).toEqual([]);
    expect(out).toEqual([
      { at: 1, lost: false },
      { at: 3, lost: true },
    ]);
    push(2, 5001);
    expect(buffer.counters).toMatchObject({ lost: 1, late: 1 });
  });

  test('without retransmissions nothing is requested and the wait is short', () => {
    const { out, push, check } = receiver(false);
    push(1, 0);
    push(3, 0);
    expect(check(50)).toEqual([]);
    expect(out).toHaveLength(1);
    expect(check(61)).toEqual([]);
    expect(out).toHaveLength(2);
  });

  test('a jump is a new beginning', () => {
    const { out, push, buffer } = receiver(true);
    push(1, 0);
    push(3, 1);
    push(20_000, 2);
    push(20_001, 3);
    expect(out).toEqual([
      { at: 1, lost: false },
      { at: 20_000, lost: true },
      { at: 20_001, lost: false },
    ]);
    expect(buffer.missing).toBe(0);
  });

  test('retransmissions fill gaps and are otherwise ignored', () => {
    const { out, push, buffer } = receiver(true);
    const repeat = (index: number): void => buffer.repeat(packetAt(index), 5, (packet, lost) => out.push({ at: packet.timestamp, lost }));
    repeat(3);
    push(10, 0);
    push(12, 0);
    for (const index of [9, 10, 12, 13, 30_000, 40_000]) repeat(index);
    expect(out.map(({ at }) => at)).toEqual([10]);
    expect(buffer.repeated).toBe(6);
    repeat(11);
    expect(out.map(({ at }) => at)).toEqual([10, 11, 12]);
  });

  test('it stays bounded when a path breaks', () => {
    const { push, buffer } = receiver(true);
    let most = 0;
    for (let index = 0; index < 60_000; index += 2) {
      push(index, 0);
      most = Math.max(most, buffer.missing);
    }
    expect(most).toBe(500);
    expect(buffer.counters.lost).toBeGreaterThan(29_000);
  });

  test('packets lost, repeated and reordered arbitrarily come out once and in order when requests are answered', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ lost: fc.boolean(), twice: fc.boolean(), delay: fc.nat(4) }), { minLength: 1, maxLength: 80 }),
        fc.constantFrom(0, 65_500),
        (fates, base) => {
          const { out, push, check } = receiver(true);
          const arrivals = fates.flatMap(({ lost, twice, delay }, n) => {
            // Packets before the first received packet or behind the last are not missed.
            if (lost && n > 0 && n < fates.length - 1) return [];
            const at = n === 0 ? 0 : n * 2 + delay;
            return twice
              ? [
                  { n, at },
                  { n, at: at + 1 },
                ]
              : [{ n, at }];
          });
          arrivals.sort((a, b) => a.at - b.at);
          for (const { n, at } of arrivals) push(base + n, at);
          for (let now = 400; now < 440; now += 10)
            for (const sequence of check(now)) push(base + sequenceDistance(base & 0xff_ff, sequence), now + 1);
          expect(out).toEqual(fates.map((_, n) => ({ at: base + n, lost: false })));
        },
      ),
    );
  });
});

/** Reads feedback the way a sender does. */
function readTransportFeedback(packet: Uint8Array): { base: number; number: number; arrivals: Map<number, number> } {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  expect([view.getUint8(0), view.getUint8(1), (view.getUint16(2) + 1) * 4]).toEqual([0x8f, 205, packet.length]);
  const base = view.getUint16(12);
  const count = view.getUint16(14);
  const statuses: number[] = [];
  let at = 20;
  for (; statuses.length < count; at += 2) {
    const chunk = view.getUint16(at);
    if (chunk >> 15 === 0) for (let n = 0; n < (chunk & 0x1f_ff); n += 1) statuses.push((chunk >> 13) & 3);
    else for (let n = 6; n >= 0; n -= 1) statuses.push((chunk >> (2 * n)) & 3);
  }
  let ticks = (view.getUint32(16) >>> 8) * 256;
  const arrivals = new Map<number, number>();
  statuses.slice(0, count).forEach((status, n) => {
    if (status === 0) return;
    ticks += status === 1 ? view.getUint8(at) : view.getInt16(at);
    at += status === 1 ? 1 : 2;
    arrivals.set((base + n) & 0xff_ff, ticks / 4);
  });
  expect(packet.length - at).toBeLessThan(4);
  return { base, number: view.getUint8(19), arrivals };
}

describe('transport-wide feedback', () => {
  test('reports arrivals with their times, and missing packets', () => {
    const feedback = new TransportFeedback();
    for (const [sequence, at] of [
      [100, 1000],
      [101, 1000.25],
      [104, 1100],
      [103, 1099],
    ] as const)
      feedback.arrived(sequence, at);
    const [packet] = feedback.take(1, 2);
    const { base, number, arrivals } = readTransportFeedback(packet ?? new Uint8Array(0));
    expect({ base, number }).toEqual({ base: 100, number: 0 });
    expect([...arrivals]).toEqual([
      [100, 1000],
      [101, 1000.25],
      [103, 1099],
      [104, 1100],
    ]);
    expect(feedback.take(1, 2)).toEqual([]);
    feedback.arrived(106, 1200);
    const next = readTransportFeedback(feedback.take(1, 2)[0] ?? new Uint8Array(0));
    // 105 is missing between the two.
    expect({ base: next.base, number: next.number }).toEqual({ base: 105, number: 1 });
    expect([...next.arrivals]).toEqual([[106, 1200]]);
  });

  test('every arrival is reported once, for any order and pauses', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ step: fc.integer({ min: 1, max: 60 }), pause: fc.constantFrom(0, 1, 20, 70, 9000) }), {
          minLength: 1,
          maxLength: 120,
        }),
        fc.nat(0xff_ff),
        fc.boolean(),
        (steps, start, swaps) => {
          const sent: { sequence: number; at: number }[] = [];
          let sequence = start;
          let at = 5000;
          for (const { step, pause } of steps) {
            sequence = (sequence + step) & 0xff_ff;
            at += pause;
            sent.push({ sequence, at });
          }
          if (swaps) for (let n = 0; n + 1 < sent.length; n += 2) [sent[n], sent[n + 1]] = [sent[n + 1]!, sent[n]!];
          const feedback = new TransportFeedback();
          const told = new Map<number, number>();
          const take = (): void => {
            for (const packet of feedback.take(1, 2)) {
              expect(packet.length).toBeLessThan(1300);
              for (const [key, value] of readTransportFeedback(packet).arrivals) told.set(key, value);
            }
          };
          sent.forEach((one, n) => {
            feedback.arrived(one.sequence, one.at);
            if (n % 17 === 16) take();
          });
          take();
          expect(new Map([...told].sort(([a], [b]) => a - b))).toEqual(
            new Map(sent.map((one): [number, number] => [one.sequence, one.at]).sort(([a], [b]) => a - b)),
          );
        },
      ),
    );
  });

  test('it stays bounded when it is never taken', () => {
    const feedback = new TransportFeedback();
    for (let n = 0; n < 20_000; n += 1) feedback.arrived(n & 0xff_ff, n);
    expect(feedback.pending).toBeLessThanOrEqual(1000);
    feedback.arrived(40_000, 1);
    expect(feedback.pending).toBe(1);
  });
});

describe('requests to a sender', () => {
  test('a NACK names every number once', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(300), { minLength: 1 }), fc.constantFrom(0, 65_400), (offsets, base) => {
        const sequences = offsets.sort((a, b) => a - b).map((offset) => (base + offset) & 0xff_ff);
        const { nacks, other } = readNacks(buildNack(7, 8, sequences));
        expect(other).toBe(false);
        expect(nacks).toEqual([{ ssrc: 8, sequences }]);
      }),
    );
  });

  test('NACKs are found inside compound packets', () => {
    const nack = (item: string): Buffer => Buffer.from(`81cd0003 00009999 00000005 ${item}`.replaceAll(' ', ''), 'hex');
    const pli = Buffer.from('81ce00020000999900001111', 'hex');
    expect(readNacks(Buffer.concat([nack('ffff 0003'), pli]))).toEqual({ nacks: [{ ssrc: 5, sequences: [65_535, 0, 1] }], other: true });
    expect(readNacks(nack('000a 0000')).other).toBe(false);
  });

  test('keyframe requests and limits are understood', () => {
    expect(readViewerFeedback(buildPli(1, 2))).toMatchObject({ keyframeWanted: true, remb: null });
    expect(readViewerFeedback(buildFir(1, 2, 300))).toMatchObject({ keyframeWanted: true });
    for (const rate of [0, 150_000, 262_143, 262_144, 3_000_000, 50_000_000]) {
      const { remb, keyframeWanted } = readViewerFeedback(buildRemb(1, rate, [2, 3]));
      expect(keyframeWanted).toBe(false);
      expect(remb ?? -1).toBeLessThanOrEqual(rate);
      expect(remb ?? -1).toBeGreaterThanOrEqual(rate * 0.99999);
    }
  });

  test('a report of several sources is whole', () => {
    const source = { fractionLost: 10, totalLost: 3, highestSequence: 70_000, jitter: 20, lastReport: 0, delaySinceLastReport: 0 };
    const packet = buildReceiverReport(1, 'millrace', [
      { ...source, ssrc: 5 },
      { ...source, ssrc: 6 },
    ]);
    expect(() => parseRtcp(packet)).not.toThrow();
    expect(readViewerFeedback(packet).reports.map(({ ssrc, totalLost, jitter }) => ({ ssrc, totalLost, jitter }))).toEqual([
      { ssrc: 5, totalLost: 3, jitter: 20 },
      { ssrc: 6, totalLost: 3, jitter: 20 },
    ]);
  });
});
