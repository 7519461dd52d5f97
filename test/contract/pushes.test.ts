/** Push tasks beyond the recorded requests: refusals, and the state of the tasks. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const APP = '/v1/vhosts/default/apps/app';
const GOOD = { id: 'p', stream: { name: 's' }, protocol: 'rtmp', url: 'rtmp://127.0.0.1:5000/app', streamKey: 'k' };

test.each([
  [{ ...GOOD, url: 'rtmp://' }, 'Could not parse url'],
  [{ ...GOOD, url: 'rtmp://user:password@host/app' }, 'Could not parse url'],
  [{ ...GOOD, url: 'http://host/app' }, 'Unsupported protocol'],
  [{ ...GOOD, protocol: 'mpegts', url: 'udp://host:0' }, 'Could not parse url: its port must be from 1 to 65535'],
  [{ ...GOOD, protocol: 'srt', url: 'srt://host:65536' }, 'Could not parse url: its port must be from 1 to 65535'],
  [{ ...GOOD, streamKey: undefined }, 'There is no required parameter [ streamKey]'],
  [{ ...GOOD, streamKey: ' ' }, 'There is no required parameter [ streamKey]'],
  [{ ...GOOD, url: 'rtmp://host/app/key', streamKey: undefined }, 'There is no required parameter [ streamKey]'],
  [{ ...GOOD, protocol: 'srt', url: 'srt://host:1?mode=listener' }, 'Unsupported connection mode'],
  [{ ...GOOD, protocol: 'mpegts', url: 'tcp://host:1?listen' }, 'Unsupported tcp listen'],
  [{ ...GOOD, url: 'rtmp://host\u0001/app' }, 'Could not parse url'],
  [{ ...GOOD, streamKey: 'a\r\nb' }, 'Invalid [streamKey] parameter'],
  [{ ...GOOD, protocol: 'rtsp' }, "Could not find protocol 'rtsp': [default/app]"],
  [{ ...GOOD, protocol: 4 }, "Could not find protocol '': [default/app]"],
  [{ protocol: 'rtmp' }, 'There is no required parameter [ id stream.name url streamKey]'],
  [{ ...GOOD, id: 7, stream: 'live' }, 'There is no required parameter [ id stream.name]'],
])('%j is refused: %s', async (body, message) => {
  expect(await api.call('POST', `${APP}:startPush`, body)).toEqual({
    status: 400,
    json: { message: `[HTTP] ${message} (400)`, statusCode: 400 },
  });
  expect(await api.call('GET', `${APP}:pushes`)).toMatchObject({ json: { response: [] } });
});

test.each([
  ['srt', 'srt://host?mode=caller'],
  ['mpegts', 'udp://host'],
  ['mpegts', 'tcp://[::1]'],
])('a push by %s to %s needs neither port nor key', async (protocol, url) => {
  const body = { id: 'portless', stream: { name: 'later' }, protocol, url };
  expect(await api.call('POST', `${APP}:startPush`, body)).toMatchObject({ status: 200, json: { response: { state: 'ready', url } } });
  expect((await api.call('POST', `${APP}:stopPush`, { id: 'portless' })).status).toBe(200);
});

test('a stream key that is invalid in every protocol is refused', async () => {
  const { status, json } = await api.call('POST', `${APP}:startPush`, { ...GOOD, streamKey: 'k'.repeat(4097) });
  expect([status, json]).toEqual([400, { message: '[HTTP] Invalid [streamKey] parameter (400)', statusCode: 400 }]);
});

test('a task follows its stream, reports its failure, and ends with its application', async () => {
  await api.call('POST', '/v1/vhosts', [{ name: 'v', host: { names: ['v.example'] } }]);
  const profile = { name: 'b', outputStreamName: '${OriginStreamName}', encodes: { videos: [{ name: 'v', bypass: true }] } };
  const application = {
    name: 'a',
    type: 'live',
    providers: { rtmp: {} },
    publishers: { push: {} },
    outputProfiles: { outputProfile: [profile] },
  };
  expect((await api.call('POST', '/v1/vhosts/v/apps', [application])).status).toBe(200);
  const app = '/v1/vhosts/v/apps/a';
  const states = async () => {
    const { json } = await api.call('POST', `${app}:pushes`, {});
    return (json as { response: { id: string; state: string; reason?: string }[] }).response.map(({ id, state, reason }) => [
      id,
      state,
      reason,
    ]);
  };
  await api.call('POST', `${app}:startPush`, { ...GOOD, id: 'good' });
  await api.call('POST', `${app}:startPush`, { ...GOOD, id: 'bad', url: 'rtmp://127.0.0.1:1/app' });
  await api.call('POST', `${app}:startPush`, { ...GOOD, id: 'none', stream: { name: 's', variantNames: ['nope'] } });
  await api.publish('v', 'a', 's');
  await expect.poll(states).toEqual([
    ['bad', 'error', 'cannot connect: nobody listens'],
    ['good', 'pushing', undefined],
    ['none', 'error', "the stream has no track nope (track 0 'v': H264)"],
  ]);
  api.orchestrator.application('v', 'a')?.stream('s')?.terminate({ code: 'peer-left', detail: 'stopped' });
  await expect.poll(states).toEqual([
    ['bad', 'ready', undefined],
    ['good', 'ready', undefined],
    ['none', 'ready', undefined],
  ]);
  await api.call('DELETE', app);
  await api.call('POST', '/v1/vhosts/v/apps', [application]);
  expect(await states()).toEqual([]);
});
