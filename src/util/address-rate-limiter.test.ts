import { describe, expect, it } from 'vitest';
import { AddressRateLimiter } from './address-rate-limiter.ts';

const SECOND = 1000;

describe('AddressRateLimiter', () => {
  it('allows each address a number of events per second', () => {
    const limiter = new AddressRateLimiter(2);
    const taken = (address: string, now: number) => Array.from({ length: 4 }, () => limiter.take(address, now)).filter(Boolean).length;
    expect([taken('192.0.2.1', SECOND), taken('192.0.2.2', SECOND), taken('192.0.2.1', SECOND)]).toEqual([2, 2, 0]);
    expect([taken('192.0.2.1', 1.5 * SECOND), taken('192.0.2.1', 9 * SECOND)]).toEqual([1, 2]);
    expect([taken('2001:db8::1', SECOND), taken('2001:db8::2', SECOND)]).toEqual([2, 0]);
  });

  it('does not count returned slots', () => {
    const limiter = new AddressRateLimiter(1);
    for (let n = 0; n < 10; n += 1) {
      expect(limiter.take('192.0.2.1', SECOND)).toBe(true);
      limiter.giveBack('192.0.2.1');
    }
    limiter.giveBack('192.0.2.1');
    limiter.giveBack('192.0.2.9');
    expect([limiter.take('192.0.2.1', SECOND), limiter.take('192.0.2.1', SECOND)]).toEqual([true, false]);
  });

  it('has no limit with 0, and remembers a bounded number of addresses', () => {
    const unlimited = new AddressRateLimiter(0);
    for (let n = 0; n < 1000; n += 1) expect(unlimited.take('192.0.2.1', SECOND)).toBe(true);
    const limiter = new AddressRateLimiter(1);
    for (let n = 0; n < 10_000; n += 1) limiter.take(`10.0.${n >> 8}.${n & 255}`, SECOND);
    expect([unlimited.size, limiter.size]).toEqual([0, 4096]);
  });
});
