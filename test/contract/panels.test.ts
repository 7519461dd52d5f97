/** A control panel that recreates everything after a restart, as in `docs/guide/panels.md`. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Answer, APP, checkedCalls, VHOST } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const { call } = checkedCalls(() => api);

const PROFILE = { name: 'p', outputStreamName: '${OriginStreamName}_p', encodes: { videos: [{ name: 'v', bypass: true }] } };
const APPLICATION = { name: 'a', type: 'live', publishers: { llhls: {}, file: {}, push: {} } };
const PULL = { name: 'cam', urls: ['rtsp://127.0.0.1:1/app/stream'], properties: { persistent: true } };
const PUSH = { id: 'on', stream: { name: 's' }, protocol: 'rtmp', url: 'rtmp://127.0.0.1:1/app', streamKey: 'k' };

/** The panel's requests, named as in the guide. */
const REQUESTS: readonly (readonly [request: string, path: string, body: unknown])[] = [
  ['POST /v1/vhosts', '/v1/vhosts', [VHOST]],
  ['POST …/apps', '/v1/vhosts/v/apps', [APPLICATION]],
  ['POST …/outputProfiles', `${APP}/outputProfiles`, [PROFILE]],
  ['POST …/streams', `${APP}/streams`, PULL],
  [':startRecord', `${APP}:startRecord`, { id: 'tape', stream: { name: 's' } }],
  [':startPush', `${APP}:startPush`, PUSH],
];
const KEPT = ['/v1/vhosts/v', APP, `${APP}/outputProfiles/p`, `${APP}/streams`, `${APP}:records`, `${APP}:pushes`];

const everything = async (): Promise<Answer[]> => Promise.all(KEPT.map(async (path) => (await call('GET', path)).json.response));

test('repeated requests are answered with the 409 of the guide, and change nothing', async () => {
  for (const [request, path, body] of REQUESTS) expect([200, 201], request).toContain((await call('POST', path, body)).status);
  const closed = await api.publish('v', 'a', 's');
  const before = await everything();

  const guide = readFileSync(new URL('../../docs/guide/panels.md', import.meta.url), 'utf8');
  const rows = [...guide.matchAll(/^\| `(.+?)` \| (item )?`(.+?)` \|/gm)].map(([, ...cells]) => cells);
  expect(rows.map(([request]) => request)).toEqual(REQUESTS.map(([request]) => request));
  for (const [index, [request, path, body]] of REQUESTS.entries()) {
    const [, item, words] = rows[index] ?? [];
    const { status, json } = await call('POST', path, body);
    const message = item === undefined ? `[HTTP] ${words} (409)` : words;
    const refusal = { message, statusCode: 409 };
    expect([status, json], request).toEqual([409, item === undefined ? refusal : [refusal]]);
  }
  expect(await everything()).toEqual(before);
  expect(closed).toEqual([]);
});

test('a batch with an existing and a new virtual host creates the new one', async () => {
  const { status, json } = await call('POST', '/v1/vhosts', [VHOST, { ...VHOST, name: 'new', host: { names: ['new.example'] } }]);
  expect([status, json.map(({ statusCode }: Answer) => statusCode)]).toEqual([207, [409, 200]]);
});
