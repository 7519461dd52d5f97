import { expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { readViewerFeedback, roundTrip } from './viewer-feedback.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const REPORT = hex('81c90007 00000001 00001111 40fffffe 00012345 00000064 8a3b4000 00018000');
const PLI = hex('81ce0002 00000001 00001111');
const FIR = hex('84ce0004 00000001 00000000 00001111 01000000');
/** 0x20000 × 2⁴ bits per second for one stream. */
const REMB = hex('8fce0005 00000001 00000000 52454d42 01120000 00001111');

test('reports, keyframe requests and bandwidth are read from compound packets', () => {
  const feedback = readViewerFeedback(Buffer.concat([REPORT, PLI, REMB]));
  expect(feedback).toEqual({
    keyframeWanted: true,
    remb: 0x20000 * 2 ** 4,
    reports: [{ ssrc: 0x1111, fractionLost: 0.25, totalLost: -2, jitter: 100, lastReport: 0x8a3b4000, sinceReport: 0x18000 }],
    arrivals: [],
  });
  expect(readViewerFeedback(FIR).keyframeWanted).toBe(true);
  expect(readViewerFeedback(REPORT)).toMatchObject({ keyframeWanted: false, remb: null });
});

test('the round trip is the time since the report minus the delay at the viewer', () => {
  const report = (lastReport: number, sinceReport: number) => ({
    ssrc: 1,
    fractionLost: 0,
    totalLost: 0,
    jitter: 0,
    lastReport,
    sinceReport,
  });
  // 2026-02-01T10:00:00Z is 3 978 928 800 s of NTP, 0x6b20 in 16 bits.
  const now = Date.UTC(2026, 1, 1, 10);
  const seconds = (now / 1000 + 2_208_988_800) % 0x1_0000;
  const sentAt = (seconds - 2) * 0x1_0000;
  expect(roundTrip(report(sentAt, 1.75 * 0x1_0000), now)).toBe(0.25);
  // Clocks that count ms may be a little behind.
  expect(roundTrip(report(sentAt, 2.001 * 0x1_0000), now)).toBe(0);
  expect(roundTrip(report(0, 0), now)).toBeNull();
  expect(roundTrip(report(sentAt, 4 * 0x1_0000), now)).toBeNull();
  expect(roundTrip(report((seconds - 70) * 0x1_0000, 0), now)).toBeNull();
  // The 16 bits of seconds wrap every 18 hours.
  const wrapped = now - seconds * 1000;
  expect(roundTrip(report(2 ** 32 - 0x1_0000, 0.5 * 0x1_0000), wrapped)).toBe(0.5);
});

const NEVER = Number.NaN;
/** Reference time 2 (128 ms), feedback 7. */
const head = (first: string, count: string): string => `00000001 00001111 ${first} ${count} 000002 07`;

test.each([
  // A run of three small deltas.
  ['8fcd0006', head('fffe', '0003'), '2003 04 00 08 00 00 00', { first: 0xfffe, arrivals: [129_000, 129_000, 131_000] }],
  // A list of 14 statuses, of which four count: received, missing, missing, received.
  ['8fcd0005', head('0010', '0004'), 'a400 04 02', { first: 0x10, arrivals: [129_000, NEVER, NEVER, 129_500] }],
  // A list of seven statuses: small, large and negative, missing; then a run of two that are missing.
  ['8fcd0006', head('0000', '0009'), 'd800 0002 04 fffe 00', { first: 0, arrivals: [129_000, 128_500, ...new Array(7).fill(NEVER)] }],
])('packets and their arrival times are read from chunks', (start, middle, rest, expected) => {
  const packet = hex(start + middle + rest);
  packet.writeUInt16BE(packet.length / 4 - 1, 2);
  const { arrivals } = readViewerFeedback(Buffer.concat([PLI, packet]));
  expect(arrivals.map((report) => ({ ...report, arrivals: [...report.arrivals] }))).toEqual([expected]);
  survivesHostileBytes((data) => readViewerFeedback(data), [packet]);
});

test.each([
  ['chunks that end too early', `${head('0000', '0020')}8000 0000`],
  ['deltas that end too early', `${head('0000', '0008')}2008 0400`],
  ['a run of nothing', `${head('0000', '0008')}2000 0408`],
  ['more packets than any player reports', `${head('0000', '0401')}0401 0000`],
  ['nothing at all', `${head('0000', '0000')}`],
])('%s yield no arrivals', (_name, body) => {
  const packet = hex(`8fcd0000${body}`);
  packet.writeUInt16BE(packet.length / 4 - 1, 2);
  expect(readViewerFeedback(packet).arrivals).toEqual([]);
});

test('reports of one compound are limited', () => {
  const packet = hex(`8fcd0005${head('0000', '0400')}0400 0000`);
  expect(readViewerFeedback(Buffer.concat(new Array(50).fill(packet))).arrivals).toHaveLength(4);
});

test('hostile feedback is skipped, never worse', () => {
  survivesHostileBytes((data) => readViewerFeedback(data), [Buffer.concat([REPORT, PLI, REMB]), FIR]);
});
