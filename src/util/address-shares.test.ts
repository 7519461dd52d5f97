import { describe, expect, it } from 'vitest';
import { AddressShares } from './address-shares.ts';

describe('AddressShares', () => {
  it('refuses an address at its share, and no other address', () => {
    const shares = new AddressShares({ perAddress: 2 });
    const [first] = [shares.enter('192.0.2.1'), shares.enter('192.0.2.1')];
    expect(shares.enter('192.0.2.1')).toBeNull();
    expect(shares.refused).toBe(1);
    expect(shares.enter('192.0.2.2')).not.toBeNull();
    first?.leave();
    first?.leave();
    expect(shares.held('192.0.2.1')).toBe(1);
    expect(shares.enter('192.0.2.1')).not.toBeNull();
    expect(shares.enter('192.0.2.1')).toBeNull();
  });

  it('counts an IPv4 address inside IPv6 as itself, and IPv6 by networks of 64 bits', () => {
    const shares = new AddressShares({ perAddress: 1 });
    expect(shares.enter('::ffff:192.0.2.1')).not.toBeNull();
    expect(shares.enter('192.0.2.1')).toBeNull();
    expect(shares.enter('2001:db8::1')).not.toBeNull();
    expect(shares.enter('2001:db8::ffff:1')).toBeNull();
    expect(shares.enter('2001:db8:0:1::1')).not.toBeNull();
  });

  it.each([
    { perAddress: 256, total: 2000, share: 256 },
    { perAddress: 5000, total: 1000, share: 500 },
    { perAddress: 5000, total: 1, share: 1 },
    { perAddress: 0, total: 1000, share: 1000 },
    { perAddress: 0, total: undefined, share: Number.POSITIVE_INFINITY },
  ])('gives $share seats of $total with a limit of $perAddress', ({ perAddress, total, share }) => {
    expect(new AddressShares({ perAddress, ...(total !== undefined && { total }) }).share).toBe(share);
  });
});
