import { describe, expect, it } from 'vitest';
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

  it('takes keyframes that are early by the rounding of timebases', () => {
    expect(new SlotSchedule(2000).cutsAt(at(0, 0, 1999.7))).toBe(true);
  });

  it('lets others follow the first one that cuts', () => {
    const schedule = new SlotSchedule(2000);
    schedule.cutsAt(at(0, 0, 2500));
    expect(schedule.cutsAt(at(0, 300, 2490))).toBe(true);
    expect(schedule.cutsAt(at(0, 0, 2300))).toBe(false);
    expect(schedule.cutsAt(at(0, 0, 3000))).toBe(true);
  });

  it('lets a variant without video wait for the video, but not for ever', () => {
    const schedule = new SlotSchedule(2000);
    expect(schedule.cutsAt(at(0, 0, 3900, { leads: false }))).toBe(false);
    expect(schedule.cutsAt(at(0, 0, 4000, { leads: false }))).toBe(true);
    expect(schedule.cutsAt(at(0, 0, 4100))).toBe(true);
  });

  it('cuts without a keyframe when a segment would grow without end', () => {
    expect(new SlotSchedule(2000).cutsAt(at(0, 0, 20_000, { keyframe: false }))).toBe(true);
  });

  it('tells which slot a variant that begins later joins', () => {
    const schedule = new SlotSchedule(2000);
    expect(schedule.slotAt(500)).toBe(0);
    schedule.cutsAt(at(0, 0, 2000));
    schedule.cutsAt(at(1, 2000, 4000));
    expect([1000, 1950, 3000, 4000, 9000].map((time) => schedule.slotAt(time))).toEqual([0, 1, 1, 2, 2]);
  });

  it('cuts at once for a variant so far behind that its cut is forgotten', () => {
    const schedule = new SlotSchedule(10);
    for (let slot = 0; slot < 100; slot++) schedule.cutsAt(at(slot, slot * 10, slot * 10 + 10));
    expect(schedule.cutsAt(at(3, 30, 31))).toBe(true);
  });
});
