/** An application that delays its streams. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { decode } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const DELAY_MS = 4000;

let server: TestServer;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  server = await startServer({ hostNames: ['localhost'] });
  const publishers = { delayBufferTimeMs: DELAY_MS, llhls: { segmentDuration: 1 } };
  const encodes = { videos: [{ bypass: true }], audios: [{ bypass: true }] };
  const outputProfiles = { outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', encodes }] };
  const applications = [{ name: 'app', type: 'live', providers: { rtmp: {} }, publishers, outputProfiles }];
  await server.api.create('/v1/vhosts', [{ name: 'later', host: { names: ['127.0.0.1'] }, applications }]);
});

afterAll(async () => {
  await encoder?.stop();
  await server?.close();
});

test('its streams can be played that much later', async () => {
  const from = performance.now();
  encoder = publish({ url: server.rtmp('live') });
  const stream = apiPath.stream('live', 'app', 'later');
  await until('the stream that comes in', async () => (await server.api.call('GET', stream)).status === 200);
  const url = server.http('live', 'llhls.m3u8');
  const answer = await until('the playlist of the stream', async () => {
    const { status } = await fetch(url);
    return status === 200 ? performance.now() : null;
  });
  expect(answer - from).toBeGreaterThanOrEqual(DELAY_MS);
  expect((await decode(url, 2)).errors).toBe('');
});
