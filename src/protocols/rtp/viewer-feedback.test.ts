import { expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { readViewerFeedback } from './viewer-feedback.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const REPORT = hex('81c90007 00000001 00001111 40fffffe 00012345 00000064 00000000 00000000');
const PLI = hex('81ce0002 00000001 00001111');
const FIR = hex('84ce0004 00000001 00000000 00001111 01000000');
/** 0x20000 × 2⁴ bits per second for one stream. */
const REMB = hex('8fce0005 00000001 00000000 52454d42 01120000 00001111');

test('reports, keyframe requests and bandwidth are read out of compounds', () => {
  const feedback = readViewerFeedback(Buffer.concat([REPORT, PLI, REMB]));
  expect(feedback).toEqual({
    keyframeWanted: true,
    remb: 0x20000 * 2 ** 4,
    reports: [{ ssrc: 0x1111, fractionLost: 0.25, totalLost: -2, jitter: 100 }],
  });
  expect(readViewerFeedback(FIR).keyframeWanted).toBe(true);
  expect(readViewerFeedback(REPORT)).toMatchObject({ keyframeWanted: false, remb: null });
});

test('hostile feedback is skipped, never worse', () => {
  survivesHostileBytes((data) => readViewerFeedback(data), [Buffer.concat([REPORT, PLI, REMB]), FIR]);
});
