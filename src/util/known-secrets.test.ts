import { expect, test } from 'vitest';
import { KnownSecrets, withoutOwnSecrets } from './known-secrets.ts';

test('known secrets are masked, the longest first, in all their encodings', () => {
  const secrets = new KnownSecrets();
  secrets.configure(['tiger-1234', 'short']);
  secrets.learn(['tiger-1234-and-more', 'with "quotes" & spaces']);
  for (const [text, told] of [
    ['tiger-1234-and-more, tiger-1234-and, tiger-123, short', '***, ***-and, tiger-123, short'],
    ['with "quotes" & spaces', '***'],
    [JSON.stringify({ key: 'with "quotes" & spaces' }), '{"key":"***"}'],
    [`rtmp://to.test/app/${encodeURIComponent('with "quotes" & spaces')}?x`, 'rtmp://to.test/app/***?x'],
    ['', ''],
    ['tiger-1234tiger-1234', '******'],
  ]) {
    expect(secrets.masked(text ?? '')).toBe(told);
  }
});

test('configured secrets last until the next configuration, learned ones stay, and their number is bounded', () => {
  const secrets = new KnownSecrets();
  secrets.configure(['configured-1']);
  secrets.learn(['learned-1']);
  secrets.configure(['configured-2', 'learned-1']);
  secrets.configure(['configured-2']);
  expect(secrets.masked('configured-1 configured-2 learned-1')).toBe('configured-1 *** ***');
  secrets.learn(Array.from({ length: 20_000 }, (_, n) => `later-${n}`));
  expect(secrets.masked('configured-2 learned-1 later-0, later-19999')).toBe('*** learned-1 ***, ***');
});

test("secrets of a text's own object are masked at any length, as whole words", () => {
  for (const [secrets, text, told] of [
    [
      ['live'],
      "refused: 'live' is delivered, see live-2 or rtmp://to.test/live?x",
      "refused: '***' is delivered, see ***-2 or rtmp://to.test/***?x",
    ],
    [['12'], 'closed after 12 s, 120 packets, 512, é12', 'closed after *** s, 120 packets, 512, é12'],
    [['live', 'live-long-key'], 'live-long-key, live', '***, ***'],
    [['live-long-key'], 'xlive-long-keyx', 'x***x'],
    [['a.c', '*'], 'a.c abc * a.c', '*** abc *** ***'],
    [['p?s'], 'rtmp://to.test/p%3Fs', 'rtmp://to.test/***'],
    [['', 'x'.repeat(5000)], `nothing ${'x'.repeat(5000)}`, `nothing ${'x'.repeat(5000)}`],
    [[], 'nothing', 'nothing'],
  ] as const) {
    expect(withoutOwnSecrets(text, secrets)).toBe(told);
  }
});
