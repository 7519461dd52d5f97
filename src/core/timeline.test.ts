import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MPEG_90K } from '../media/timebase.ts';
import { Timeline } from './timeline.ts';

const AUDIO = { num: 1, den: 48_000 };

describe('Timeline', () => {
  it('starts at 0 for any first timestamp of the source', () => {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    expect(timeline.place(video, 900_000, 3000)).toBe(0);
    expect(timeline.place(video, 903_000, 3000)).toBe(3000);
  });

  it('gives all tracks one offset', () => {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    const audio = timeline.addTrack(AUDIO);
    timeline.place(video, 90_000, 3000);
    expect(timeline.place(audio, 48_000 + 480, 1024)).toBe(480);
  });

  it('leaves out packets before the start', () => {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    const audio = timeline.addTrack(AUDIO);
    timeline.place(video, 90_000, 3000);
    expect(timeline.place(audio, 47_000, 1024)).toBeNull();
    expect(timeline.place(audio, 48_024, 1024)).toBe(24);
  });

  it('bridges a jump of the source clock and moves the other tracks with it', () => {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    const audio = timeline.addTrack(AUDIO);
    for (let frame = 0; frame < 30; frame += 1) timeline.place(video, frame * 3000, 3000);
    for (let frame = 0; frame < 47; frame += 1) timeline.place(audio, frame * 1024, 1024);
    const back = -90_000 * 3600;
    expect(timeline.place(video, back, 3000)).toBe(Math.round((47 * 1024 * 90_000) / 48_000));
    expect(timeline.place(audio, (back * 48_000) / 90_000 + 1024, 1024)).toBe(48 * 1024);
    expect(timeline.jumps).toBe(1);
  });

  /** 25 frames of video, which end at 1.0 s, and 47 frames of audio, which end at 1.0027 s. */
  function oneSecond() {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    const audio = timeline.addTrack(AUDIO);
    for (let frame = 0; frame < 25; frame += 1) timeline.place(video, frame * 3600, 3600);
    for (let frame = 0; frame < 47; frame += 1) timeline.place(audio, frame * 1024, 1024);
    return { timeline, video, audio };
  }

  it('closes up a pause of all tracks and keeps them in step', () => {
    const { timeline, video, audio } = oneSecond();
    const end = Math.round((47 * 1024 * 90_000) / 48_000);
    expect(timeline.place(video, 8 * 90_000, 3600)).toBe(end);
    expect(timeline.place(video, 8 * 90_000 + 3600, 3600)).toBe(end + 3600);
    expect(timeline.place(audio, 8 * 48_000 + 480, 1024)).toBe(47 * 1024 + 480);
    expect(timeline.jumps).toBe(1);
  });

  describe('whose last frames are shown long after later frames were decoded', () => {
    /** 25 frames that are decoded within a second and shown 0.2 s later. */
    function reordered() {
      const timeline = new Timeline();
      const video = timeline.addTrack(MPEG_90K);
      for (let frame = 0; frame < 25; frame += 1) timeline.place(video, frame * 3600, 3600, 0, 18_000);
      return { timeline, video };
    }

    it('places the first frame after a pause, or a jump, after them', () => {
      for (const dts of [8 * 90_000, -8 * 90_000, 80 * 90_000]) {
        // A frame that is shown when it is decoded, a frame shown as late as earlier frames, and a frame shown later still.
        for (const [composition, placed] of [
          [0, 90_000 + 18_000],
          [18_000, 90_000],
          [27_000, 90_000],
        ] as const) {
          const { timeline, video } = reordered();
          expect(timeline.place(video, dts, 3600, 0, composition)).toBe(placed);
        }
      }
    });

    it('shows the first frame of the next source after them', () => {
      const { timeline } = reordered();
      timeline.changeSource();
      expect([0, 0.1, 0.2, 0.3].map((composition) => timeline.floorOf(composition).toFixed(3))).toEqual([
        '1.200',
        '1.100',
        '1.000',
        '1.000',
      ]);
    });

    it('waits at most a second for them, for any announced delay', () => {
      const { timeline, video } = reordered();
      timeline.place(video, 90_000, 3600, 0, 2 ** 40);
      expect(timeline.place(video, 8 * 90_000, 3600)).toBe(90_000 + 3600 + 90_000);
    });
  });

  it('keeps pauses when source times are kept', () => {
    const timeline = new Timeline({ keepsPauses: true });
    const video = timeline.addTrack(MPEG_90K);
    expect(timeline.place(video, 0, 3600)).toBe(0);
    expect(timeline.place(video, 8 * 90_000, 3600)).toBe(8 * 90_000);
  });

  it('keeps a pause of one track while another track continues', () => {
    const { timeline, video, audio } = oneSecond();
    for (let frame = 47; frame < 376; frame += 1) timeline.place(audio, frame * 1024, 1024);
    expect(timeline.place(video, 8 * 90_000, 3600)).toBe(8 * 90_000);
    expect(timeline.jumps).toBe(0);
  });

  it('gives a track its pause back when audio of that time arrives after it', () => {
    const { timeline, video, audio } = oneSecond();
    expect(timeline.place(video, 8 * 90_000, 3600)).toBeLessThan(2 * 90_000);
    for (let frame = 47; frame < 376; frame += 1) expect(timeline.place(audio, frame * 1024, 1024)).toBe(frame * 1024);
    expect(timeline.place(video, 8 * 90_000 + 3600, 3600)).toBe(8 * 90_000 + 3600);
  });

  it('does not treat a slow frame rate as pauses', () => {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    const placed = [0, 1, 2, 3].map((frame) => timeline.place(video, frame * 135_000, 135_000));
    expect(placed).toEqual([0, 135_000, 270_000, 405_000]);
  });

  it('places audio within the tolerance exactly at its expected time', () => {
    const timeline = new Timeline();
    const audio = timeline.addTrack(AUDIO);
    const placed = [];
    for (let frame = 0; frame < 100; frame += 1) {
      const milliseconds = Math.round((frame * 1024) / 48);
      placed.push(timeline.place(audio, milliseconds * 48, 1024, 144));
    }
    expect(placed).toEqual(placed.map((_, frame) => frame * 1024));
  });

  it.each([-0.01, 0.01])('follows an audio clock that drifts by %s of its speed, and keeps it in step with the frames', (drift) => {
    const timeline = new Timeline();
    const video = timeline.addTrack(MPEG_90K);
    const audio = timeline.addTrack(AUDIO);
    for (let frame = 0; frame < 3000; frame += 1) {
      // The source's times: a frame of audio lasts a little less or more than its samples.
      const source = Math.round(frame * 1024 * (1 + drift));
      if (frame % 2 === 0) timeline.place(video, Math.round((source * 90_000) / 48_000), 3840);
      const placed = timeline.place(audio, source, 1024, 144);
      expect(Math.abs((placed ?? Number.NaN) - source)).toBeLessThanOrEqual(144);
    }
    expect(timeline.jumps).toBe(0);
  });

  it('always increases, for arbitrary timestamps of the source', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.integer({ min: -(2 ** 40), max: 2 ** 40 })), { maxLength: 200 }), (packets) => {
        const timeline = new Timeline();
        const tracks = { video: timeline.addTrack(MPEG_90K), audio: timeline.addTrack(AUDIO) };
        const last = { video: -1, audio: -1 };
        for (const [isVideo, dts] of packets) {
          const key = isVideo ? 'video' : 'audio';
          const placed = timeline.place(tracks[key], dts, 1000);
          if (placed === null) continue;
          expect(Number.isSafeInteger(placed)).toBe(true);
          expect(placed).toBeGreaterThan(last[key]);
          last[key] = placed;
        }
      }),
    );
  });

  it('keeps every gap of a steady clock, of one track and of all', () => {
    const timeline = new Timeline({ steady: true });
    const video = timeline.addTrack(MPEG_90K);
    const other = timeline.addTrack(MPEG_90K);
    timeline.place(video, 0, 3000);
    expect(timeline.place(other, 60 * 90_000, 3000)).toBe(60 * 90_000);
    expect(timeline.place(video, 61 * 90_000, 3000)).toBe(61 * 90_000);
    expect(timeline.place(other, 61 * 90_000, 3000)).toBe(61 * 90_000);
    expect(timeline.place(video, 100 * 90_000, 3000)).toBe(100 * 90_000);
    expect(timeline.jumps).toBe(0);
    const late = timeline.addTrack(MPEG_90K);
    expect(timeline.place(late, -20 * 90_000, 3000)).toBeNull();
    expect(timeline.place(late, 102 * 90_000, 3000)).toBe(102 * 90_000);
  });
});
