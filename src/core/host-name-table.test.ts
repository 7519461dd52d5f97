import { describe, expect, it } from 'vitest';
import { HostNameTable } from './host-name-table.ts';

describe('HostNameTable', () => {
  it('prefers a literal name to the catch-all of an earlier virtual host', () => {
    const table = new HostNameTable([
      { name: 'default', hostNames: ['*'] },
      { name: 'dyn', hostNames: ['dyn.local'] },
    ]);
    expect(table.find('dyn.local')).toBe('dyn');
    expect(table.find('other.local')).toBe('default');
  });

  it('takes the first pattern that matches', () => {
    const table = new HostNameTable([
      { name: 'a', hostNames: ['*.org'] },
      { name: 'b', hostNames: ['*'] },
    ]);
    expect([table.find('x.org'), table.find('x.com')]).toEqual(['a', 'b']);
  });

  it('returns undefined without a match', () => {
    expect(new HostNameTable([{ name: 'a', hostNames: ['a.org'] }]).find('b.org')).toBeUndefined();
  });
});
