import { expect, test } from 'vitest';
import { audioTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { AlertRulesConfig } from '../../config/index.ts';
import { type JudgedStream, measuredAlerts } from './alert-rules.ts';

const VIDEO = { ...videoTrack(), width: 640, height: 360 };
const AUDIO = { ...audioTrack(), sampleRate: 48_000 };
const STREAM: JudgedStream = {
  tracks: [VIDEO, AUDIO],
  bitrate: 736_851,
  framerate: 31,
  videoFacts: () => ({ hasBframes: false, keyframeSeconds: 2 }),
};
const codes = (rules: NonNullable<AlertRulesConfig['ingress']>, stream: Partial<JudgedStream> = {}): string[] =>
  measuredAlerts(rules, { ...STREAM, ...stream }).map(({ code }) => code);

test('descriptions match the recorded ones of OvenMediaEngine', () => {
  const rules = { maxWidth: 320, minHeight: 720, minSamplerate: 96_000, minFramerate: 60, minBitrate: 2_000_000 };
  expect(measuredAlerts(rules, STREAM)).toEqual([
    {
      code: 'INGRESS_FRAMERATE_LOW',
      description: "The ingress stream's current framerate (31.00 fps) is lower than the configured framerate (60.00 fps)",
    },
    { code: 'INGRESS_WIDTH_LARGE', description: "The ingress stream's width (640) is larger than the configured width (320)" },
    { code: 'INGRESS_HEIGHT_SMALL', description: "The ingress stream's height (360) is smaller than the configured height (720)" },
    {
      code: 'INGRESS_SAMPLERATE_LOW',
      description: "The ingress stream's current samplerate (48000) is lower than the configured samplerate (96000)",
    },
    {
      code: 'INGRESS_BITRATE_LOW',
      description: "The ingress stream's current bitrate (736851 bps) is lower than the configured bitrate (2000000 bps)",
    },
  ]);
});

test('each bound is one-sided, and the bound itself is allowed', () => {
  expect(codes({ maxBitrate: 736_850, maxFramerate: 30.9, maxHeight: 359, minWidth: 641, maxSamplerate: 47_999 })).toEqual([
    'INGRESS_FRAMERATE_HIGH',
    'INGRESS_WIDTH_SMALL',
    'INGRESS_HEIGHT_LARGE',
    'INGRESS_SAMPLERATE_HIGH',
    'INGRESS_BITRATE_HIGH',
  ]);
  const on = { minBitrate: 736_851, maxBitrate: 736_851, minWidth: 640, maxWidth: 640, minFramerate: 31, maxSamplerate: 48_000 };
  expect(codes(on)).toEqual([]);
  expect(codes({})).toEqual([]);
});

test('unknown values are not judged', () => {
  expect(codes({ minBitrate: 1e9, minFramerate: 1000 }, { bitrate: 0, framerate: 0 })).toEqual([]);
});

test('keyframes and B-frames', () => {
  const rules = { longKeyFrameInterval: {}, hasBFrames: {} };
  const facts = (hasBframes: boolean, keyframeSeconds: number) => ({ videoFacts: () => ({ hasBframes, keyframeSeconds }) });
  expect(codes(rules, facts(false, 4))).toEqual([]);
  expect(codes(rules, facts(false, Number.NaN))).toEqual([]);
  expect(codes(rules, facts(true, 4.1))).toEqual(['INGRESS_LONG_KEY_FRAME_INTERVAL', 'INGRESS_HAS_BFRAME']);
});

test('several tracks with one fault are one message', () => {
  expect(codes({ minWidth: 1000 }, { tracks: [VIDEO, { ...VIDEO, id: 7, width: 320 }] })).toEqual(['INGRESS_WIDTH_SMALL']);
});
