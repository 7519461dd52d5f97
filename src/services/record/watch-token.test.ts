import { expect, test } from 'vitest';
import { WatchTokens } from './watch-token.ts';

test('a token is valid for its recording until it expires, and only in the process that signed it', () => {
  const tokens = new WatchTokens();
  const token = tokens.sign('a', 2_000_000_000);
  const now = 1_999_999_999_999;
  expect(tokens.verify('a', token, now)).toBe(2_000_000_000);
  expect(tokens.verify('a', token, now + 1)).toBeNull();
  expect(tokens.verify('b', token, now)).toBeNull();
  expect(new WatchTokens().verify('a', token, now)).toBeNull();
  for (const bad of [
    '',
    '-',
    token.slice(1),
    `${token}x`,
    token.replace('2', '3'),
    token.replace('-', '-\0'),
    '2000000000-'.padEnd(54, 'A'),
  ])
    expect([bad, tokens.verify('a', bad, now)]).toEqual([bad, null]);
});
