/** Two applications cannot share a port for MPEG-TS, whoever makes them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const fed = (name: string, port: string) => ({ name, type: 'live', providers: { mpegts: { streams: [{ name: 's', port }] } } });
const APPS = '/v1/vhosts/ports/apps';

test('the second application is refused with both named, and changes of the first are not', async () => {
  await api.call('POST', '/v1/vhosts', [{ name: 'ports', host: { names: ['ports.example'] } }]);
  expect(await api.call('POST', APPS, [fed('one', '4700-4702/udp')])).toMatchObject({ status: 200 });
  const refused = await api.call('POST', APPS, [fed('two', '4702/udp')]);
  expect(refused.status).toBe(400);
  const text = JSON.stringify(refused.json);
  for (const part of ['4702', 'ports/one', 'ports/two']) expect(text).toContain(part);
  expect(await api.call('GET', APPS)).toMatchObject({ json: { response: ['one'] } });
  expect(await api.call('PATCH', `${APPS}/one`, { providers: { mpegts: { streams: [{ name: 't', port: '4702/udp' }] } } })).toMatchObject({
    status: 200,
  });
  const vhost = { name: 'other', host: { names: ['other.example'] }, applications: [fed('three', '4702/udp')] };
  expect(await api.call('POST', '/v1/vhosts', [vhost])).toMatchObject({ status: 400 });
  expect(await api.call('POST', APPS, [fed('two', '4703/udp')])).toMatchObject({ status: 200 });
});
