import { expect, test } from 'vitest';
import { SynCookies } from './syn-cookie.ts';

const PEER = '192.0.2.1:40000';
const MINUTE = 60_000;

test('a cookie is valid for its caller, in its minute and the next', () => {
  const cookies = new SynCookies();
  const cookie = cookies.issue(PEER, 5 * MINUTE);
  expect(cookie).toBe(cookie >>> 0);
  const goodAt = [5 * MINUTE, 6 * MINUTE - 1, 7 * MINUTE - 1, 7 * MINUTE, 5 * MINUTE - 1].map((now) => cookies.isValid(PEER, cookie, now));
  expect(goodAt).toEqual([true, true, true, false, false]);
  expect(cookies.isValid('192.0.2.1:40001', cookie, 5 * MINUTE)).toBe(false);
  expect(cookies.isValid(PEER, cookie ^ 1, 5 * MINUTE)).toBe(false);
});

test('two ports issue different cookies', () => {
  const [one, other] = [new SynCookies(), new SynCookies()];
  expect([0, MINUTE].some((now) => one.issue(PEER, now) !== other.issue(PEER, now))).toBe(true);
});
