import { describe, expect, it } from 'vitest';
import { HostTable } from './host-table.ts';

describe('HostTable', () => {
  it('prefers a literal name to the catch-all of an earlier virtual host', () => {
    const table = new HostTable([
      { name: 'default', hostNames: ['*'] },
      { name: 'dyn', hostNames: ['dyn.local'] },
    ]);
    expect(table.find('dyn.local')).toBe('dyn');
    expect(table.find('other.local')).toBe('default');
  });

  it('takes the first pattern that matches', () => {
    const table = new HostTable([
      { name: 'a', hostNames: ['*.org'] },
      { name: 'b', hostNames: ['*'] },
    ]);
    expect([table.find('x.org'), table.find('x.com')]).toEqual(['a', 'b']);
  });

  it('finds nothing when nothing matches', () => {
    expect(new HostTable([{ name: 'a', hostNames: ['a.org'] }]).find('b.org')).toBeUndefined();
  });
});
