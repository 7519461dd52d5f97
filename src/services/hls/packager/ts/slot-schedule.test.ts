import { describe, expect, it } from 'vitest';
import { dataTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { buildCue } from '../../../../containers/markers/cue.ts';
import type { Packet } from '../../../../media/packet.ts';
import { MILLISECONDS } from '../../../../media/timebase.ts';
import { SlotSchedule } from './slot-schedule.ts';

const at = (slot: number, start: number, time: number, more: { keyframe?: boolean; leads?: boolean } = {}) => ({
  slot,
  start,
  time,
  keyframe: true,
  leads: true,
  ...more,
});

describe('SlotSchedule', () => {
  it('cuts at the first keyframe at or after the target duration', () => {
    const schedule = new SlotSchedule(2000);
    expect(schedule.cutsAt(at(0, 0, 1900))).toBe(false);
    expect(schedule.cutsAt(at(0, 0, 2100, { keyframe: false }))).toBe(false);
    expect(schedule.cutsAt(at(0, 0, 2500))).toBe(true);
  });

  it('cuts at a keyframe that is early by the rounding of timebases', () => {
    expect(new SlotSchedule(2000).cutsAt(at(0, 0, 1999.7))).toBe(true);
  });

  it('cuts the other variants at the cut of the first', () => {
    const schedule = new SlotSchedule(2000);
    schedule.cutsAt(at(0, 0, 2500));
    expect(schedule.cutsAt(at(0, 300, 2490))).toBe(true);
    expect(schedule.cutsAt(at(0, 0, 2300))).toBe(false);
    expect(schedule.cutsAt(at(0, 0, 3000))).toBe(true);
  });

  it('lets a variant without video wait for the video, for a limited time', () => {
    const schedule = new SlotSchedule(2000);
    expect(schedule.cutsAt(at(0, 0, 3900, { leads: false }))).toBe(false);
    expect(schedule.cutsAt(at(0, 0, 4000, { leads: false }))).toBe(true);
    expect(schedule.cutsAt(at(0, 0, 4100))).toBe(true);
  });

  it('cuts a segment of ten target durations without a keyframe', () => {
    expect(new SlotSchedule(2000).cutsAt(at(0, 0, 20_000, { keyframe: false }))).toBe(true);
  });

  it('returns the slot that a late variant joins', () => {
    const schedule = new SlotSchedule(2000);
    expect(schedule.slotAt(500)).toBe(0);
    schedule.cutsAt(at(0, 0, 2000));
    schedule.cutsAt(at(1, 2000, 4000));
    expect([1000, 1950, 3000, 4000, 9000].map((time) => schedule.slotAt(time))).toEqual([0, 1, 1, 2, 2]);
  });

  it('cuts at once for a variant that is too far behind', () => {
    const schedule = new SlotSchedule(10);
    for (let slot = 0; slot < 100; slot++) schedule.cutsAt(at(slot, slot * 10, slot * 10 + 10));
    expect(schedule.cutsAt(at(3, 30, 31))).toBe(true);
  });

  describe('with a break', () => {
    const marked = (pts: number): Packet => ({
      ...{ track: { ...dataTrack(2), timebase: MILLISECONDS }, pts, dts: pts, duration: 0, keyframe: true },
      ...{ data: buildCue({ type: 'out', duration: 0, elapsed: 0 }), event: { format: 'cue', target: 'all' } },
    });

    it('cuts at a keyframe of the leading video only, and puts the tag before the next segment', () => {
      const schedule = new SlotSchedule(6000);
      schedule.markers.push(marked(2000));
      expect(schedule.cutsAt(at(0, 0, 2010, { leads: false }))).toBe(false);
      expect(schedule.cutsAt(at(0, 0, 2500))).toBe(true);
      expect([schedule.tagsOf(0), schedule.tagsOf(1)]).toEqual(['', '#EXT-X-CUE-OUT\n']);
      expect(schedule.cutsAt(at(0, 0, 2510, { leads: false }))).toBe(true);
    });

    it('frees the tags of a slot some cuts later', () => {
      const schedule = new SlotSchedule(10);
      schedule.markers.push(marked(0));
      for (let slot = 0; slot < 100; slot += 1) schedule.cutsAt(at(slot, slot * 10, slot * 10 + 10));
      expect(schedule.tagsOf(99)).not.toBe('');
      expect([0, 1, 2, 30].map((slot) => schedule.tagsOf(slot))).toEqual(['', '', '', '']);
    });
  });
});
