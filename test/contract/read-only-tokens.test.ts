/** Secrets that read-only tokens must not see: everything that enables publishing, playing or signing. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ApiHarness, startApi, TOKEN } from './harness.ts';

const READER = 'a-token-that-only-reads';
const ENABLES = { providers: 'rtmp', publishers: 'webrtc' };
const VHOST = {
  name: 'v',
  host: { names: ['g'] },
  signedPolicy: { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'SECRET-"1\\é', enables: ENABLES },
  admissionWebhooks: { controlServerUrl: 'https://me:SECRET-2@hooks.test/ask?pin=SECRET-3', secretKey: 'SECRET-4', enables: ENABLES },
  origins: { origin: [{ location: '/a', pass: { scheme: 'rtsp', urls: { url: ['me:SECRET@5@cam.test/x?p=SECRET-6', 'b.test/y'] } } }] },
  originMapStore: {
    originHostName: 'o',
    redisServer: { url: 'redis+sentinel://redis.test:1/m', auth: 'SECRET-7', sentinelAuth: 'SECRET-71' },
  },
};
const APP = {
  name: 'a',
  type: 'live',
  publishers: { llhls: {}, push: {} },
  transcodeWebhook: { enable: false, controlServerUrl: 'http://t.test', secretKey: 'SECRET-8' },
};
const PUSH = { stream: { name: 's' } };
const PUSHES = [
  { ...PUSH, id: 'r', protocol: 'rtmp', url: 'rtmp://to.test/live/SECRET-9', streamKey: 'SECRET-10' },
  { ...PUSH, id: 's', protocol: 'srt', url: 'srt://to.test:1?passphrase=SECRET-11&streamid=SECRET-12' },
];

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi({ accessTokens: [{ name: 'dashboard', value: READER, mayWrite: false }] });
  expect((await api.call('POST', '/v1/vhosts', [VHOST])).status).toBe(200);
  expect((await api.call('POST', '/v1/vhosts/v/apps', [APP])).status).toBe(200);
  for (const push of PUSHES) expect((await api.call('POST', '/v1/vhosts/v/apps/a:startPush', push)).status).toBe(200);
});
afterEach(() => api.close());

const bodyFor = async (token: string, path: string): Promise<string> => {
  const { status, body } = await api.send({ path, headers: { Authorization: `Bearer ${token}` } });
  expect(status).toBe(200);
  return body;
};

test.each([
  [
    '/v1/vhosts/v',
    [
      '"secretKey":"***"',
      '"https://***@hooks.test/ask?***"',
      '"auth":"***"',
      '["***@cam.test/x?***","b.test/y"]',
      '"redis+sentinel://redis.test:1/m"',
    ],
  ],
  ['/v1/vhosts/v/apps/a', ['"secretKey":"***"', '"http://t.test"', '"opus"']],
  ['/v1/vhosts/v/apps/a:pushes', ['"streamKey":"***"', '"rtmp://to.test/live/***"', '"srt://to.test:1?***"', '"name":"s"']],
])('%s', async (path, shown) => {
  const [all, masked] = [await bodyFor(TOKEN, path), await bodyFor(READER, path)];
  expect([all.includes('SECRET'), masked.includes('SECRET')]).toEqual([true, false]);
  for (const text of shown) expect(masked).toContain(text);
  // Apart from secrets, both answers are equal.
  const hidden = (_key: string, value: unknown): unknown => (typeof value === 'string' && /SECRET|\*\*\*/.test(value) ? '' : value);
  expect(JSON.parse(masked, hidden)).toEqual(JSON.parse(all, hidden));
});

test('lists behind a POST can be read without secrets, and actions are refused', async () => {
  const headers = { Authorization: `Bearer ${READER}` };
  const post = async (path: string, body = '{}') => await api.send({ method: 'POST', path, headers, body });
  const { status, body } = await post('/v1/vhosts/v/apps/a:pushes');
  expect([status, JSON.parse(body).response.map(({ id }: { id: string }) => id), body.includes('SECRET')]).toEqual([
    200,
    ['r', 's'],
    false,
  ]);
  expect(JSON.parse((await post('/v1/vhosts/v/apps/a:pushes', '{"id":"s"}')).body).response).toHaveLength(1);
  expect((await post('/v1/vhosts/default/apps/app:records')).status).toBe(200);
  await api.publish('default', 'app', 'live');
  expect((await post('/v1/vhosts/default/apps/app/streams/live:hlsDumps', '{"outputStreamName":"live"}')).status).toBe(200);
  for (const action of ['a:startPush', 'a:stopPush', 'a:startRecord', 'a:stopRecord', 'a', 'a:nope', 'a/streams/s:startHlsDump']) {
    expect([action, (await post(`/v1/vhosts/v/apps/${action}`)).status]).toEqual([action, 403]);
  }
  expect((await post('/v1/vhosts/v/apps/a:pushes')).body).toBe(body);
});

test('an empty key is shown as empty, and a text that mentions keys stays unchanged', async () => {
  const hooks = { controlServerUrl: 'http://h.test', enables: ENABLES };
  await api.call('POST', '/v1/vhosts', [{ name: 'w', host: { names: ['w'] }, admissionWebhooks: { ...hooks, secretKey: '' } }]);
  expect(await bodyFor(READER, '/v1/vhosts/w')).toContain('"secretKey":""');
  const id = 'x "secretKey":"y"';
  await api.call('POST', '/v1/vhosts/v/apps/a:startPush', { ...PUSHES[1], id });
  expect(JSON.parse(await bodyFor(READER, '/v1/vhosts/v/apps/a:pushes')).response).toContainEqual(expect.objectContaining({ id }));
});

test('a long text is scanned in linear time', async () => {
  const id = 'a'.repeat(900_000);
  await api.call('POST', '/v1/vhosts/v/apps/a:startPush', { ...PUSHES[1], id });
  expect(await bodyFor(READER, '/v1/vhosts/v/apps/a:pushes')).toContain('"id":"r"');
});
