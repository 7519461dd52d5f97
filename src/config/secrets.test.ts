import { expect, test } from 'vitest';
import { atOnce } from '../util/in-slices.ts';
import { repeatedSecrets, secretsOf } from './secrets.ts';

test('finds keys, passwords and tokens, and separately those inside URLs', () => {
  expect(
    secretsOf({
      name: 'app',
      streamKey: 'abc-def',
      signedPolicy: { secretKey: 'policy-key', names: ['x'] },
      urls: ['rtsp://me:p%40ss@cam.test/x', 'http://cdn.test/live.m3u8?session=1&token=t0k&mode=caller', 'rtsp://open.test/x'],
      origin: { url: 'user:word@origin.test:9000/app' },
      empty: { key: '' },
    }),
  ).toEqual([
    'abc-def',
    'policy-key',
    ...['rtsp://me:p%40ss@cam.test/x', 'p%40ss', 'p@ss', 'me:p@ss'],
    ...['http://cdn.test/live.m3u8?session=1&token=t0k&mode=caller', 't0k'],
    ...['user:word@origin.test:9000/app', 'word', 'word', 'user:word'],
  ]);
});

test('of all secrets, those that a text repeats are found, in any of its forms', () => {
  const value = { list: [{ streamKey: 'say "hi"' }, { streamKey: 'unsaid' }], url: 'rtsp://me:p%40ss@cam.test/x', passphrase: 'a b' };
  const found = (text: string): string[] => atOnce(repeatedSecrets(value, text)).sort();
  expect(found('nothing')).toEqual([]);
  expect(found('say "hi"')).toEqual(['say "hi"']);
  expect(found('{"key":"say \\"hi\\""} a%20b')).toEqual(['a b', 'say "hi"']);
  expect(found('of p@ss and rtsp://me:p%40ss@cam.test/x')).toEqual(['p%40ss', 'p@ss', 'rtsp://me:p%40ss@cam.test/x']);
});
