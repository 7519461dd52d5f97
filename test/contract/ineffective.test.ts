/** Answers name the settings in them that have no effect. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { APP, VHOST } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const JITTER = { llhls: {}, webrtc: { jitterBuffer: true } };
const PROFILE = { name: 'p', outputStreamName: '${OriginStreamName}_p' };
const LOST = { videos: [{ name: 'v', codec: 'vp8', bitrate: 100_000, profile: 'main' }] };
const WON = { videos: [{ name: 'v', codec: 'h264', bitrate: 100_000, profile: 'main' }] };

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

/** The status, and the keys in the header; null without the header. */
async function told(method: string, path: string, body?: unknown): Promise<[status: number, keys: string | null]> {
  const { status, headers } = await api.send({ method, path, ...(body !== undefined && { body: JSON.stringify(body) }) });
  return [status, headers.get('millrace-ineffective') ?? null];
}

test('an application', async () => {
  expect(await told('POST', '/v1/vhosts', [VHOST])).toEqual([200, null]);
  const apps = '/v1/vhosts/v/apps';
  expect(await told('POST', apps, [{ name: 'a', type: 'live' }])).toEqual([200, null]);
  expect(await told('GET', APP)).toEqual([200, null]);
  expect(await told('PATCH', APP, { publishers: JITTER })).toEqual([200, 'publishers.webrtc.jitterBuffer']);
  expect(await told('GET', APP)).toEqual([200, 'publishers.webrtc.jitterBuffer']);
  expect(await told('PATCH', APP, { publishers: { webrtc: { jitterBuffer: false } } })).toEqual([200, null]);
});

test('a batch, once for all its created items', async () => {
  await told('POST', '/v1/vhosts', [VHOST]);
  const silent = { providers: { srt: { maxConnection: 5 }, rtsp: {} } };
  const items = [
    { name: 'a', type: 'live', ...silent },
    { name: 'b', type: 'live', ...silent, publishers: JITTER },
    { name: 'a', type: 'live', publishers: { appWorkerCount: 9 } },
  ];
  const keys = 'providers.rtsp, publishers.webrtc.jitterBuffer';
  expect(await told('POST', '/v1/vhosts/v/apps', items)).toEqual([207, keys]);
});

test('a virtual host with its applications', async () => {
  const vhost = { ...VHOST, crossDomains: { urls: ['*'] }, applications: [{ name: 'a', type: 'live', publishers: JITTER }] };
  expect(await told('POST', '/v1/vhosts', [vhost])).toEqual([200, 'crossDomains, applications.publishers.webrtc.jitterBuffer']);
  expect(await told('GET', '/v1/vhosts/v')).toEqual([200, 'crossDomains']);
});

test('an output profile', async () => {
  await told('POST', '/v1/vhosts', [VHOST]);
  await told('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live' }]);
  const profiles = `${APP}/outputProfiles`;
  expect(await told('POST', profiles, [{ ...PROFILE, encodes: LOST }])).toEqual([200, 'encodes.videos.profile']);
  expect(await told('GET', `${profiles}/p`)).toEqual([200, 'encodes.videos.profile']);
  expect(await told('GET', APP)).toEqual([200, 'outputProfiles.outputProfile.encodes.videos.profile']);
  expect(await told('PATCH', `${profiles}/p`, { outputStreamName: 'q', encodes: WON })).toEqual([200, null]);
  expect(await told('GET', `${profiles}/p`)).toEqual([200, null]);
});
