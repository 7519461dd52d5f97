import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { framePlan } from './process/frame-plan.ts';
import { FrameSelector } from './process/frame-selector.ts';
import { frameSize } from './process/frame-size.ts';
import { KeyframeSchedule, keyframeInterval } from './process/keyframe-schedule.ts';

const square = { sarNum: 1, sarDen: 1 };

describe('frameSize', () => {
  it.each([
    ['follows the source', { width: 1280, height: 720, ...square }, { width: 0, height: 0 }, { width: 1280, height: 720, ...square }],
    ['makes odd sides even', { width: 641, height: 359, ...square }, { width: 0, height: 0 }, { width: 642, height: 360, ...square }],
    ['derives the width', { width: 1920, height: 1080, ...square }, { width: 0, height: 480 }, { width: 856, height: 480, ...square }],
    ['derives the height', { width: 1920, height: 1080, ...square }, { width: 640, height: 0 }, { width: 640, height: 360, ...square }],
    [
      'makes the pixels of an anamorphic source square when one side is given',
      { width: 720, height: 576, sarNum: 64, sarDen: 45 },
      { width: 0, height: 576 },
      { width: 1024, height: 576, ...square },
    ],
    [
      'keeps the pixels of an anamorphic source when none is given',
      { width: 720, height: 576, sarNum: 64, sarDen: 45 },
      { width: 0, height: 0 },
      { width: 720, height: 576, sarNum: 64, sarDen: 45 },
    ],
    [
      'moves both sides to a multiple of 4 when one is given',
      { width: 1280, height: 720, ...square },
      { width: 0, height: 90 },
      { width: 160, height: 92, ...square },
    ],
    [
      'stretches pixels when both sides are given with another shape',
      { width: 640, height: 480, ...square },
      { width: 1280, height: 720 },
      { width: 1280, height: 720, sarNum: 3, sarDen: 4 },
    ],
  ])('%s', (_name, source, encode, expected) => {
    expect(frameSize(source, encode)).toEqual(expected);
  });

  it('never has odd sides and keeps the shape but for rounding', () => {
    const side = fc.integer({ min: 64, max: 4096 });
    const term = fc.integer({ min: 1, max: 64 });
    const wanted = fc.oneof(fc.constant(0), fc.integer({ min: 240, max: 2160 }));
    fc.assert(
      fc.property(side, side, term, term, wanted, wanted, (width, height, sarNum, sarDen, w, h) => {
        const shape = (width * sarNum) / (height * sarDen);
        fc.pre(shape < 3 && shape > 1 / 3);
        const size = frameSize({ width, height, sarNum, sarDen }, { width: w, height: h });
        expect(size.width % 2).toBe(0);
        expect(size.height % 2).toBe(0);
        const made = (size.width * size.sarNum) / (size.height * size.sarDen);
        expect(Math.abs(made / shape - 1)).toBeLessThan(0.07);
      }),
    );
  });
});

describe('framePlan', () => {
  const hardware = { enable: false, modules: '' };
  const working = new Set(['libx264', 'h264_nvenc', 'png']);
  it.each([
    ['of the codec', { codec: 'h264' }, hardware, 'yuv420p', 'encoder_h264_1'],
    ['of the encoder in its name', { codec: 'h264_nvenc' }, hardware, 'nv12', 'encoder_h264_1'],
    ['of the first module', { codec: 'h264', modules: 'nv,x264' }, hardware, 'nv12', 'encoder_h264_1'],
    ['of hardware when that is on', { codec: 'h264' }, { enable: true, modules: '' }, 'nv12', 'encoder_h264_1'],
    ['of an encoder that works', { codec: 'h264_qsv' }, hardware, 'yuv420p', 'encoder_h264_1'],
    ['of images', { codec: 'png' }, hardware, 'rgb24', 'encoder_png_1'],
    ['of no known codec', { codec: 'h266' }, hardware, 'yuv420p', 'encoder_h266_1'],
  ])('selects the pixel format of the encoder that will be opened: the one %s', (_name, wish, on, pixelFormat, role) => {
    expect(framePlan({ name: 'v', ...wish }, 1, { hardware: on, working })).toMatchObject({ pixelFormat, role });
  });
});

/** Output times of a source with frames at `pts`. */
function selected(selector: FrameSelector, pts: readonly number[]): number[] {
  return pts.flatMap((time) => [...selector.select(time, false, false)]);
}
const times = (rate: number, count: number): number[] => Array.from({ length: count }, (_, index) => Math.round((index * 90_000) / rate));

describe('FrameSelector', () => {
  it.each([
    ['60 → 30', 60, 30],
    ['30 → 30', 30, 30],
    ['25 → 30', 25, 30],
    ['29.97 → 25', 30_000 / 1001, 25],
    ['15 → 60', 15, 60],
  ])('makes a constant rate: %s', (_name, from, to) => {
    const out = selected(new FrameSelector({ framerate: to, skipFrames: -1, constant: true }), times(from, from * 10));
    expect(out.length).toBeGreaterThanOrEqual(to * 10 - 2 * Math.ceil(to / from));
    expect(out.length).toBeLessThanOrEqual(to * 10 + 1);
    for (let index = 1; index < out.length; index += 1) {
      expect(Math.abs(out[index]! - out[index - 1]! - 90_000 / to)).toBeLessThanOrEqual(1);
    }
  });

  it('converts a variable rate to a constant one, each frame at most half a step from its time', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 300, max: 20_000 }), { minLength: 2, maxLength: 60 }), (steps) => {
        let at = 0;
        const pts = steps.map((step) => (at += step));
        const selector = new FrameSelector({ framerate: 30, skipFrames: -1, constant: true });
        let last = Number.NaN;
        for (const time of pts) {
          const out = [...selector.select(time, false, false)];
          for (const made of out) {
            if (!Number.isNaN(last)) expect(made - last).toBe(3000);
            last = made;
          }
          if (out.length > 0) expect(Math.abs(out.at(-1)! - time)).toBeLessThanOrEqual(1500);
        }
      }),
    );
  });

  it.each([
    ['60 → 30', 60, 30],
    ['30 → 15', 30, 15],
    ['29.97 → 15', 30_000 / 1001, 15],
    ['50 → 30', 50, 30],
  ])('of a faster source selects the nearest frames: %s', (_name, from, to) => {
    const selector = new FrameSelector({ framerate: to, skipFrames: -1, constant: true });
    for (const time of times(from, from * 10)) {
      for (const at of selector.select(time, false, false)) expect(Math.abs(at - time)).toBeLessThanOrEqual(45_000 / from + 90);
    }
  });

  it('leaves long holes and known losses open', () => {
    const selector = new FrameSelector({ framerate: 30, skipFrames: -1, constant: true });
    expect([...selector.select(0, false, false)]).toEqual([0]);
    expect([...selector.select(90_000, false, true)]).toEqual([90_000]);
    expect([...selector.select(90_000 * 10, false, false)]).toEqual([900_000]);
  });

  it('drops n frames after each kept one, except for requested frames', () => {
    const selector = new FrameSelector({ framerate: 0, skipFrames: 2, constant: true });
    expect(selected(selector, [0, 1, 2, 3, 4])).toEqual([0, 3]);
    expect([...selector.select(5, true, false)]).toEqual([5]);
    expect(selected(selector, [6, 7, 8])).toEqual([8]);
  });

  it('selects a still once per period, at its own time', () => {
    const selector = new FrameSelector({ framerate: 1, skipFrames: -1, constant: false });
    expect(selected(selector, [6000, 9000, 89_950, 93_000, 360_000])).toEqual([6000, 89_950, 360_000]);
  });
});

describe('KeyframeSchedule', () => {
  const due = (plan: ConstructorParameters<typeof KeyframeSchedule>[0], pts: readonly number[], source: (index: number) => boolean) => {
    const schedule = new KeyframeSchedule(plan);
    return pts.filter((time, index) => schedule.due(time, source(index)));
  };

  it('puts keyframes of all frame rates at the same instants', () => {
    const plan = { interval: 180_000, followSource: false };
    const expected = [0, 180_000, 360_000, 540_000];
    for (const rate of [60, 30, 15, 10]) expect(due(plan, times(rate, rate * 8), () => false)).toEqual(expected);
  });

  it('makes the same decisions after a restart in the middle', () => {
    const plan = { interval: 90_000, followSource: false };
    const all = due(plan, times(30, 300), () => false);
    const later = due(plan, times(30, 300).slice(100), () => false);
    expect(later.slice(1)).toEqual(all.filter((time) => time > later[0]!));
  });

  it('follows the keyframes of the source and adds missing ones', () => {
    const found = due({ interval: 90_000, followSource: true }, times(30, 300), (index) => index % 75 === 0);
    expect(found).toEqual([0, 90_000, 180_000, 225_000, 315_000, 405_000, 450_000, 540_000, 630_000, 675_000, 765_000, 855_000]);
  });

  it.each([
    ['a little longer than the interval', 36],
    ['a little shorter', 28],
    ['much longer', 100],
    ['half as long', 15],
  ])('follows every keyframe of a source whose distance is %s', (_name, gop) => {
    const found = due({ interval: 90_000, followSource: true }, times(30, 600), (index) => index % gop === 0);
    expect(times(30, 600).filter((_time, index) => index % gop === 0 && !found.includes(index * 3000))).toEqual([]);
    // At most twice the requested number, wherever the frames fall.
    expect(found.length).toBeLessThanOrEqual(41);
  });

  it('waits a limited time for a nearby keyframe of the source', () => {
    const source = new Set([0, 36, 72]);
    const found = due({ interval: 90_000, followSource: true }, times(30, 150), (index) => source.has(index));
    expect(found.map((time) => time / 3000)).toEqual([0, 30, 36, 72, 109, 139]);
  });

  it('ignores the keyframes of a source that has only keyframes', () => {
    expect(due({ interval: 90_000, followSource: true }, times(30, 300), () => true).length).toBeLessThanOrEqual(20);
  });

  it.each([
    ['0 means a second', { keyFrameInterval: 0, keyFrameIntervalType: 'frame' }, 30, 90_000],
    ['frames', { keyFrameInterval: 60, keyFrameIntervalType: 'frame' }, 30, 180_000],
    ['milliseconds', { keyFrameInterval: 1500, keyFrameIntervalType: 'time' }, 30, 135_000],
  ])('counts its interval: %s', (_name, encode, framerate, ticks) => {
    expect(keyframeInterval(encode, framerate)).toBe(ticks);
  });
});
