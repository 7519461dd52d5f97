import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

function taken(bucket: TokenBucket, now: number, tries = 100): number {
  return Array.from({ length: tries }, () => bucket.take(now)).filter(Boolean).length;
}

test('a burst passes at once, then the number that the rate allows', () => {
  const bucket = new TokenBucket({ burst: 5, perSecond: 2 });
  expect(taken(bucket, 1000)).toBe(5);
  expect(taken(bucket, 1400)).toBe(0);
  expect(taken(bucket, 1500)).toBe(1);
  expect(taken(bucket, 2500)).toBe(2);
});

test('unused tokens add up to at most a burst', () => {
  const bucket = new TokenBucket({ burst: 5, perSecond: 2 });
  taken(bucket, 0);
  expect(taken(bucket, 1_000_000)).toBe(5);
});

test('a clock that jumps back removes no tokens', () => {
  const bucket = new TokenBucket({ burst: 1, perSecond: 1 });
  expect(bucket.take(5000)).toBe(true);
  expect(bucket.take(4000)).toBe(false);
  expect(bucket.take(5000)).toBe(true);
});

test('returned tokens can be taken again, and never add up to more than a burst', () => {
  const bucket = new TokenBucket({ burst: 2, perSecond: 1 });
  for (let n = 0; n < 10; n += 1) {
    expect(bucket.take(0)).toBe(true);
    bucket.giveBack();
  }
  bucket.giveBack();
  expect(taken(bucket, 0)).toBe(2);
});

test('a rate of 0 adds no tokens', () => {
  const bucket = new TokenBucket({ burst: 1, perSecond: 0 });
  expect([bucket.take(1000), bucket.take(1_000_000)]).toEqual([true, false]);
});
