import { expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { GatedLines } from './gated-lines.ts';
import { KnownSecrets } from './known-secrets.ts';
import { LogTail, TailedLines } from './log-tail.ts';
import type { LogLines } from './logger.ts';

const silent: LogLines = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };

test('a ring of a fixed size, whose lines are cut', () => {
  const tail = new LogTail({ clock: new ManualClock(), kept: 3 });
  for (let n = 1; n <= 5; n += 1)
    tail.add('info', { text: 'x'.repeat(100_000), ...Object.fromEntries(Array.from({ length: 200 }, (_, k) => [`f${k}`, k])) }, `${n}`);
  expect([tail.oldest, tail.newest, tail.at(2), tail.at(3)?.notice.message]).toEqual([3, 5, undefined, '3']);
  expect(tail.at(5)?.json.length).toBeLessThan(2000);
});

test('lines are kept with the fields of their logger at any log level, and as text', () => {
  const tail = new LogTail({ clock: new ManualClock() });
  const lines = new TailedLines(new GatedLines(silent, 'error'), tail);
  const list = ['a'];
  lines.child({ part: 'rtmp' }).child({ list }).info({ none: undefined }, 'hello');
  list.push('b');
  lines.debug({}, 'left out');
  const loop: Record<string, unknown> = {};
  loop['loop'] = loop;
  lines.warn({ loop }, 'odd');
  expect([tail.newest, tail.at(1)?.notice.fields, tail.at(2)?.notice.fields]).toEqual([2, { part: 'rtmp', list: '["a"]' }, { loop: '?' }]);
});

test.each([
  ['a password in a URL', 'rtsp://me:SECRET-SECRET-SECRET@cam.test/x', []],
  ['a parameter of a path', '/app/x?token=SECRET-SECRET-SECRET', []],
  ['a known secret', 'SECRET-SECRET-SECRET is no key', ['SECRET-SECRET-SECRET']],
  ['a secret in an object', { streamKey: 'SECRET-SECRET-SECRET' }, []],
])('a secret across the cut does not show its start: %s', (_what, told, known) => {
  const secrets = new KnownSecrets();
  secrets.learn(known);
  const tail = new LogTail({ clock: new ManualClock(), secrets });
  for (let before = 990; before <= 1024; before += 1) {
    const [padding, text] = ['x '.repeat(before / 2), typeof told === 'string' ? told : JSON.stringify(told)];
    tail.add('info', { text: padding + text, object: { padding, told } }, padding + text);
    const { json = '' } = tail.at(tail.newest) ?? {};
    expect([before, /S?ECR/.exec(json)?.[0], json.length < 4096]).toEqual([before, undefined, true]);
  }
});
