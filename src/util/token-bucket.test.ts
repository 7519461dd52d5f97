import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

function taken(bucket: TokenBucket, now: number, tries = 100): number {
  return Array.from({ length: tries }, () => bucket.take(now)).filter(Boolean).length;
}

test('a burst passes at once, then what the rate allows', () => {
  const bucket = new TokenBucket({ burst: 5, perSecond: 2 });
  expect(taken(bucket, 1000)).toBe(5);
  expect(taken(bucket, 1400)).toBe(0);
  expect(taken(bucket, 1500)).toBe(1);
  expect(taken(bucket, 2500)).toBe(2);
});

test('what is not used adds up to a burst and no further', () => {
  const bucket = new TokenBucket({ burst: 5, perSecond: 2 });
  taken(bucket, 0);
  expect(taken(bucket, 1_000_000)).toBe(5);
});

test('a clock that goes back takes nothing away', () => {
  const bucket = new TokenBucket({ burst: 1, perSecond: 1 });
  expect(bucket.take(5000)).toBe(true);
  expect(bucket.take(4000)).toBe(false);
  expect(bucket.take(5000)).toBe(true);
});
