import { expect, test } from 'vitest';
import { LipSync, type SyncedTrack } from './lip-sync.ts';

const AUDIO = { isAudio: true, rate: 48_000 };
const VIDEO = { isAudio: false, rate: 90_000 };

/** A sender whose audio and video are `skew` seconds apart in arrival. */
function play(
  sync: LipSync,
  audio: SyncedTrack,
  video: SyncedTrack,
  { skew, seconds, from = 0 }: { skew: number; seconds: number; from?: number },
) {
  const audioTimes: number[] = [];
  const videoTimes: number[] = [];
  for (let n = from * 100; n < (from + seconds) * 100; n += 1) {
    const now = n / 100;
    if (n % 2 === 0) audioTimes.push(sync.place(audio, 1000 + n * 480, now));
    if (n % 4 === 0) videoTimes.push(sync.place(video, 4_294_960_000 + n * 900, now + skew));
    // Both clocks read the same wall clock.
    if (n % 100 === 99) {
      sync.report(audio, { ssrc: 1, ntp: 5000 + now, compactNtp: 0, rtpTimestamp: (1000 + n * 480) >>> 0 });
      sync.report(video, { ssrc: 2, ntp: 5000 + now, compactNtp: 0, rtpTimestamp: (4_294_960_000 + n * 900) % 2 ** 32 });
    }
  }
  return { audioTimes, videoTimes };
}

test('packets are placed by arrival time before the first report, without a jump at a wrap', () => {
  const sync = new LipSync();
  const video = sync.add(VIDEO);
  expect(sync.place(video, 4_294_967_000, 3)).toBe(3);
  expect(sync.place(video, (4_294_967_000 + 90_000) % 2 ** 32, 99)).toBeCloseTo(4, 6);
});

test('video moves to the times of sender reports in steps below 5 ms, and audio stays gapless', () => {
  const sync = new LipSync();
  const [audio, video] = [sync.add(AUDIO), sync.add(VIDEO)];
  const { audioTimes, videoTimes } = play(sync, audio, video, { skew: 0.12, seconds: 8 });
  audioTimes.forEach((at, n) => {
    expect(at).toBeCloseTo(n / 50, 6);
  });
  for (let n = 1; n < videoTimes.length; n += 1) {
    const step = (videoTimes[n] ?? 0) - (videoTimes[n - 1] ?? 0);
    expect(step).toBeGreaterThan(0.04 - 0.0051);
    expect(step).toBeLessThan(0.04 + 0.0051);
  }
  expect(videoTimes[0]).toBeCloseTo(0.12, 6);
  expect((videoTimes.at(-1) ?? 0) - (videoTimes.length - 1) / 25).toBeCloseTo(0, 2);
});

test('a large error is corrected faster, and time never decreases; an error of unrelated clocks is ignored', () => {
  const sync = new LipSync();
  const [audio, video] = [sync.add(AUDIO), sync.add(VIDEO)];
  const { videoTimes } = play(sync, audio, video, { skew: 2, seconds: 14 });
  for (let n = 1; n < videoTimes.length; n += 1) expect((videoTimes[n] ?? 0) - (videoTimes[n - 1] ?? 0)).toBeGreaterThan(0.02);
  expect(Math.abs((video.base ?? 0) - (video.wanted ?? 1))).toBeLessThan(0.01);
  sync.report(video, { ssrc: 2, ntp: 90_000, compactNtp: 0, rtpTimestamp: 0 });
  expect(video.wanted).toBeNull();
});

test('a restarted source is placed by its arrival time again', () => {
  const sync = new LipSync();
  const [audio, video] = [sync.add(AUDIO), sync.add(VIDEO)];
  play(sync, audio, video, { skew: 0, seconds: 2 });
  sync.restart(video);
  expect(sync.place(video, 7, 2.5)).toBeCloseTo(2.5, 6);
});
