import { expect, test } from 'vitest';
import { secretsOf } from './secrets.ts';

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
