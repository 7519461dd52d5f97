import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { DiskRetry, FIRST_PAUSE_MS, MAX_PAUSE_MS } from './disk-retry.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('an attempt is due after the pause when the disk has room, and the pause grows with each failure', async () => {
  const clock = new ManualClock();
  const retry = new DiskRetry(clock);
  let looks = 0;
  let room = false;
  const due = async (): Promise<boolean> => {
    const look = async () => {
      looks += 1;
      return room;
    };
    if (retry.isDue(look)) return true;
    await turn();
    return retry.isDue(look);
  };
  retry.failed();
  expect([await due(), looks]).toEqual([false, 0]);
  clock.advance(FIRST_PAUSE_MS);
  expect([await due(), looks]).toEqual([false, 1]);
  // No room: the disk is left alone for another pause.
  expect([await due(), looks]).toEqual([false, 1]);
  room = true;
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 8; attempt += 1) {
    let pause = 0;
    while (!(await due())) {
      clock.advance(1000);
      pause += 1000;
    }
    pauses.push(pause);
    retry.failed();
  }
  expect(pauses).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  clock.advance(2 * MAX_PAUSE_MS);
  expect(await due()).toBe(true);
  clock.advance(MAX_PAUSE_MS + 1);
  retry.failed();
  clock.advance(FIRST_PAUSE_MS);
  expect(await due()).toBe(true);
});
