import { expect, test } from 'vitest';
import type { AccessRequest } from '../../access/access-check.ts';
import type { FromThread } from '../thread-protocol.ts';
import { WebhookDesk } from './webhook-desk.ts';

const REQUEST: AccessRequest = {
  ...{ direction: 'outgoing', protocol: 'llhls', url: 'http://a:1/b/c/llhls.m3u8' },
  client: { address: '192.0.2.1', port: 1, realIp: '192.0.2.1' },
};
const WEBHOOKS = {
  ...{ controlServerUrl: 'http://c/', secretKey: 'k', timeout: 1 },
  enables: { providers: [], publishers: ['llhls'] },
};

function desk(limit = 2) {
  const posted: FromThread[] = [];
  const made = new WebhookDesk((message) => posted.push(message), limit);
  const check = made.check(WEBHOOKS, 'v');
  return { desk: made, posted, check, ask: () => check.judge(REQUEST) };
}

test('asks the main thread, and hands on what it says', async () => {
  const { desk: made, posted, check, ask } = desk();
  expect([check.covers('outgoing', 'llhls'), check.covers('outgoing', 'hls'), check.covers('incoming', 'rtmp')]).toEqual([
    true,
    false,
    false,
  ]);
  const [first, second] = [ask(), ask()];
  expect(posted).toEqual([1, 2].map((question) => ({ type: 'admission', question, vhost: 'v', request: REQUEST })));
  made.answered(2, { admitted: false, code: 'no', reason: 'no' });
  made.answered(1, { admitted: true, expiresAt: 5, expiry: 'over', newUrl: 'http://a/b/d', ticket: 7 });
  expect(await second).toEqual({ admitted: false, code: 'no', reason: 'no' });
  const passed = await first;
  expect(passed).toMatchObject({ admitted: true, expiresAt: 5, expiry: 'over', newUrl: 'http://a/b/d', ticket: 7 });
  if (passed.admitted) passed.closed?.();
  expect(posted.at(-1)).toEqual({ type: 'admission-over', ticket: 7 });
  expect(made.waiting).toBe(0);
});

test('refuses those who ask when too many wait, and all who wait when it closes; whom nobody waits for any more is over', async () => {
  const { desk: made, posted, ask } = desk();
  const waiting = [ask(), ask()];
  expect(ask()).toMatchObject({ admitted: false, code: 'webhook-busy' });
  made.close();
  made.close();
  expect(await Promise.all(waiting)).toMatchObject([{ code: 'webhook-closed' }, { code: 'webhook-closed' }]);
  expect(ask()).toMatchObject({ code: 'webhook-closed' });
  made.answered(1, { admitted: true, expiresAt: 5, ticket: 3 });
  expect(posted.at(-1)).toEqual({ type: 'admission-over', ticket: 3 });
});
