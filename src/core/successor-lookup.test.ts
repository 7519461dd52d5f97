import { expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { SuccessorLookup } from './successor-lookup.ts';

it('returns the current owner of a stream with the same scheme', async () => {
  let known: string | null = 'ovt://b/app/s';
  const successors = new SuccessorLookup(async () => known, new ManualClock());
  expect(await successors.find(['ovt'])).toBe('ovt://b/app/s');
  known = 'rtsp://b/s';
  expect(await successors.find(['ovt'])).toBeNull();
  known = null;
  expect(await successors.find(['ovt'])).toBeNull();
});

it('waits for a successor while the entry of a dead server lives, and for less time without an entry', async () => {
  const clock = new ManualClock();
  const lost = clock.monotonic();
  let known: string | null = 'ovt://dead/app/s';
  const successors = new SuccessorLookup(async () => known, clock);
  await successors.find(['ovt']);
  clock.advance(14_000);
  expect(successors.isOver(lost)).toBe(false);
  clock.advance(1001);
  expect(successors.isOver(lost)).toBe(true);

  const later = clock.monotonic();
  known = null;
  await successors.find(['ovt']);
  clock.advance(3900);
  await successors.find(['ovt']);
  expect(successors.isOver(later)).toBe(false);
  clock.advance(101);
  expect(successors.isOver(later)).toBe(true);
  known = 'ovt://c/app/s';
  await successors.find(['ovt']);
  expect(successors.isOver(later)).toBe(false);
});
