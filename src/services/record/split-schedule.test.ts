import fc from 'fast-check';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { atTimes, DailySchedule, everyInterval } from './split-schedule.ts';

const at = (text: string): number => new Date(`2026-03-10T${text}`).getTime();
const time = (ms: number): string => new Date(ms).toTimeString().slice(0, 8);

function schedule(text: string): DailySchedule {
  const parsed = DailySchedule.parse(text);
  if (parsed === null) throw new Error(`${text} is no schedule`);
  return parsed;
}

describe('a daily schedule', () => {
  test.each([
    ['*/10 * *', '09:40:24', '09:40:30'],
    ['*/10 * *', '09:40:30', '09:40:40'],
    ['0 */10 *', '09:40:24', '09:50:00'],
    ['0 0 *', '09:59:59', '10:00:00'],
    ['0 0 *', '10:00:00', '11:00:00'],
    ['0 0 0', '23:59:59', '00:00:00'],
    ['30 15 6', '06:15:30', '06:15:30'],
    ['* * *', '12:00:00', '12:00:01'],
    ['0,30 5 *', '09:05:00', '09:05:30'],
    ['0 10-12 *', '09:12:01', '10:10:00'],
    ['0 50/5 *', '09:51:00', '09:55:00'],
  ])('%s after %s is %s', (text, from, next) => {
    expect(time(schedule(text).nextAfter(at(from)))).toBe(next);
  });

  test.each([
    // Clocks are set back from 3:00 to 2:00: that hour comes twice.
    ['0 */10 *', '2026-10-25T00:50:00Z', '2026-10-25T01:00:00Z'],
    ['0 */10 *', '2026-10-25T01:00:00Z', '2026-10-25T01:10:00Z'],
    ['*/10 * *', '2026-10-25T01:20:05Z', '2026-10-25T01:20:10Z'],
    ['0 0 *', '2026-10-25T00:30:00Z', '2026-10-25T01:00:00Z'],
    // And forward from 2:00 to 3:00, which leaves one out.
    ['0 0 *', '2026-03-29T00:30:00Z', '2026-03-29T01:00:00Z'],
    ['0 30 2', '2026-03-28T12:00:00Z', '2026-03-30T00:30:00Z'],
  ])('%s after %s, in a time zone with summer time, is %s', (text, from, next) => {
    vi.stubEnv('TZ', 'Europe/Berlin');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(new Date('2026-10-25T01:30:00Z').getHours()).toBe(2);
    expect(new Date(schedule(text).nextAfter(Date.parse(from))).toISOString()).toBe(new Date(next).toISOString());
  });

  test.each([
    'bogus',
    '',
    '*',
    '* *',
    '* * * *',
    '60 * *',
    '* 60 *',
    '* * 24',
    '*/0 * *',
    '5-2 * *',
    '-1 * *',
    '1.5 * *',
    'a * *',
    '1,, * *',
  ])('%j is refused', (text) => {
    expect(DailySchedule.parse(text)).toBeNull();
  });

  it('returns only scheduled times later than the given time, and parses arbitrary text without throwing', () => {
    fc.assert(
      fc.property(fc.nat(59), fc.nat(59), fc.nat(23), fc.nat(86_400_000), (second, minute, hour, offset) => {
        const from = at('00:00:00') + offset;
        const next = schedule(`${second} ${minute} ${hour}`).nextAfter(from);
        expect(next).toBeGreaterThan(from);
        expect(next - from).toBeLessThanOrEqual(86_400_000);
        const date = new Date(next);
        expect([date.getSeconds(), date.getMinutes(), date.getHours()]).toEqual([second, minute, hour]);
      }),
    );
    fc.assert(
      fc.property(fc.string({ maxLength: 30 }), (text) => {
        DailySchedule.parse(text);
      }),
    );
  });
});

describe('a split by schedule', () => {
  it('splits once at the first keyframe after the scheduled time', () => {
    const clock = new ManualClock(at('09:59:57'));
    const rule = atTimes(schedule('0 0 *'));
    rule.begin(0, clock.now());
    const splits: string[] = [];
    // A keyframe every 2 s, beginning at an odd second.
    for (let second = 0; second < 20; second += 2) {
      if (rule.splitsAt(second * 1000, clock.now())) {
        splits.push(time(clock.now()));
        rule.begin(second * 1000, clock.now());
      }
      clock.advance(2000);
    }
    expect(splits).toEqual(['10:00:01']);
  });
});

test('a split by interval is at the first keyframe after it, by media time', () => {
  const rule = everyInterval(2000);
  rule.begin(500, 0);
  expect([1500, 2499, 2500, 3000].map((ms) => rule.splitsAt(ms, 0))).toEqual([false, true, true, true]);
  rule.begin(2500, 0);
  expect(rule.splitsAt(4000, 0)).toBe(false);
});
