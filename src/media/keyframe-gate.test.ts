import { expect, test } from 'vitest';
import { audioTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { KeyframeGate } from './keyframe-gate.ts';
import type { Track } from './track.ts';

const HD = videoTrack({ id: 0 });
const SD = videoTrack({ id: 1 });
const STILL = videoTrack({ id: 2, codec: 'JPEG' });
const AUDIO = audioTrack({ id: 3 });

function passes(gate: KeyframeGate, track: Track, keyframe: boolean): boolean {
  return gate.passes({ track, pts: 0, dts: 0, duration: 0, keyframe, data: new Uint8Array(1) });
}

test('a gate is open until it is shut', () => {
  const gate = new KeyframeGate([HD, AUDIO]);
  expect([passes(gate, HD, false), passes(gate, AUDIO, true)]).toEqual([true, true]);
});

test('each video track opens at its own keyframe, other tracks at the first keyframe', () => {
  const gate = new KeyframeGate([HD, SD, STILL, AUDIO]);
  gate.shut();
  expect([passes(gate, AUDIO, true), passes(gate, STILL, true), passes(gate, HD, false)]).toEqual([false, false, false]);
  expect([passes(gate, HD, true), passes(gate, AUDIO, true), passes(gate, STILL, true)]).toEqual([true, true, true]);
  expect([passes(gate, SD, false), passes(gate, HD, false), passes(gate, SD, true), passes(gate, SD, false)]).toEqual([
    false,
    true,
    true,
    true,
  ]);
});

test('opens at once without video', () => {
  const gate = new KeyframeGate([STILL, AUDIO]);
  gate.shut();
  expect(passes(gate, AUDIO, true)).toBe(true);
});
