import { expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { FailedAttempts } from './failed-attempts.ts';

it('blocks a failed item for a growing time, up to a minute, until it succeeds', () => {
  const clock = new ManualClock();
  const attempts = new FailedAttempts(clock);
  expect(attempts.reasonOf('a')).toBeNull();
  for (const seconds of [2, 4, 8, 16, 32, 60, 60]) {
    attempts.failed('a', `before ${seconds}`);
    clock.advance(seconds * 1000 - 1);
    expect([attempts.reasonOf('a'), attempts.reasonOf('b')]).toEqual([`before ${seconds}`, null]);
    clock.advance(1);
    expect(attempts.reasonOf('a')).toBeNull();
  }
  attempts.succeeded('a');
  attempts.failed('a', 'again');
  clock.advance(2000);
  expect(attempts.reasonOf('a')).toBeNull();
});

it('remembers the last thousand', () => {
  const attempts = new FailedAttempts(new ManualClock());
  for (let key = 0; key < 1001; key += 1) attempts.failed(`${key}`, 'no');
  expect(['0', '1', '1000'].map((key) => attempts.reasonOf(key))).toEqual([null, 'no', 'no']);
});
