import { expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { Succession } from './pull-succession.ts';

it('names who has the stream now, if it can be fetched the same way', async () => {
  let known: string | null = 'ovt://b/app/s';
  const succession = new Succession(async () => known, new ManualClock());
  expect(await succession.find('ovt')).toBe('ovt://b/app/s');
  known = 'rtsp://b/s';
  expect(await succession.find('ovt')).toBeNull();
  known = null;
  expect(await succession.find('ovt')).toBeNull();
});

it('waits for an heir as long as the entry of a dead server lives, and less where nobody has one', async () => {
  const clock = new ManualClock();
  const lost = clock.monotonic();
  let known: string | null = 'ovt://dead/app/s';
  const succession = new Succession(async () => known, clock);
  await succession.find('ovt');
  clock.advance(14_000);
  expect(succession.isOver(lost)).toBe(false);
  clock.advance(1001);
  expect(succession.isOver(lost)).toBe(true);

  const later = clock.monotonic();
  known = null;
  await succession.find('ovt');
  clock.advance(3900);
  await succession.find('ovt');
  expect(succession.isOver(later)).toBe(false);
  clock.advance(101);
  expect(succession.isOver(later)).toBe(true);
  known = 'ovt://c/app/s';
  await succession.find('ovt');
  expect(succession.isOver(later)).toBe(false);
});
