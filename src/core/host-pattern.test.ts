import { describe, expect, it } from 'vitest';
import { compileHostPattern, HostTable } from './host-pattern.ts';

describe('compileHostPattern', () => {
  const cases: [pattern: string, host: string, matches: boolean][] = [
    ['*', 'anything.example', true],
    ['*', '', true],
    ['*.example.org', 'live.example.org', true],
    ['*.example.org', 'example.org', false],
    ['edge?.example.org', 'edge1.example.org', true],
    ['edge?.example.org', 'edge.example.org', true],
    ['edge?.example.org', 'edge12.example.org', false],
    ['a.b', 'axb', false],
    ['Live', 'live', false],
    ['[::1]', '[::1]', true],
  ];
  it.each(cases)('%s against %s: %s', (pattern, host, matches) => {
    expect(compileHostPattern(pattern).test(host)).toBe(matches);
  });
});

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
