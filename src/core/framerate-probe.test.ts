import { describe, expect, it } from 'vitest';
import { constantFrames, videoPackets, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { MILLISECONDS } from '../media/timebase.ts';
import { FramerateProbe } from './framerate-probe.ts';

/** The probe's result for frames at `fps` whose times are whole milliseconds. */
function measured(fps: number, announced: number, frames = 100): number {
  const probe = new FramerateProbe();
  const track = { ...videoTrack({ id: 0 }), timebase: MILLISECONDS };
  for (let index = 0; index < frames; index += 1) {
    const dts = Math.round((index * 1000) / fps);
    probe.count({ track, pts: dts, dts, duration: 1, keyframe: index === 0, data: new Uint8Array(1) });
  }
  return probe.rate(announced);
}

describe('a frame rate', () => {
  it.each([
    ['is believed when the frames agree', 30_000 / 1001, 29.97, 29.97],
    ['is measured when nothing was announced', 25, 0, 25],
    ['is measured when another rate was announced', 60, 30, 60],
    ['is measured when less was meant', 15, 30, 15],
    ['need not be a common rate', 7, 30, 15 / (Math.round(15_000 / 7) / 1000)],
  ])('%s', (_name, fps, announced, expected) => {
    expect(measured(fps, announced)).toBeCloseTo(expected, 3);
  });

  it('is the announced rate until there are two frames', () => {
    expect(measured(25, 30, 0)).toBe(30);
    expect(measured(25, 30, 1)).toBe(30);
  });

  it('is known after half a second', () => {
    const probe = new FramerateProbe();
    const packets = videoPackets(videoTrack({ id: 0 }), constantFrames({ rate: 30, gop: 30, seconds: 1 }));
    const settled = packets.map((packet) => {
      probe.count(packet);
      return probe.settled;
    });
    expect(settled.indexOf(true)).toBe(15);
  });
});
