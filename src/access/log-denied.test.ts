import { expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { Notice } from '../core/notices/notice.ts';
import { logDenied, postRefusals } from './log-denied.ts';

const client = { address: '198.51.100.7', port: 5000, realIp: '198.51.100.7' };

test('a refusal is logged with the stream that the URL names, without its secrets', () => {
  const told: Notice[] = [];
  const tell = logDenied(new RecordingLogger(), { post: (notice) => told.push(notice) });
  const denied = { admitted: false, code: 'expired', reason: 'the URL has expired' } as const;
  const common = { direction: 'outgoing', protocol: 'llhls', client } as const;
  tell(denied, 'v', { ...common, url: 'http://h:3333/app/live/master.m3u8?policy=SECRET' });
  tell(denied, 'v', { ...common, url: 'http://h:3333/?policy=SECRET' });
  const refusal = {
    type: 'refusal.counted',
    direction: 'outgoing',
    protocol: 'llhls',
    reason: 'expired',
    count: 1,
    detail: 'the URL has expired',
  };
  expect(told).toEqual([
    { ...refusal, vhost: 'v', app: 'app', stream: 'live' },
    { ...refusal, vhost: 'v' },
  ]);
});

test('refusals in other threads are posted as counts', () => {
  const told: Notice[] = [];
  postRefusals({ post: (notice) => told.push(notice) }, [{ direction: 'outgoing', protocol: 'llhls', code: 'expired', count: 12 }]);
  expect(told).toEqual([{ type: 'refusal.counted', direction: 'outgoing', protocol: 'llhls', reason: 'expired', count: 12 }]);
});
