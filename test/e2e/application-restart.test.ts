/** A changed application restarts: its encoder is disconnected, its viewers lose the stream, and new streams follow the new profiles. */
import { expect, onTestFinished, test } from 'vitest';
import { apiPath, type Statistics, type StreamInformation } from '../harness/api-client.ts';
import { until, within } from '../harness/poll.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const BYPASS = { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] };
/** The macro for the name of the inbound stream. */
const ORIGIN_NAME = `\${OriginStreamName}`;
const APP = apiPath.app('second', 'made');
const STREAM = apiPath.stream('live', 'made', 'second');

async function start(): Promise<TestServer> {
  const server = await startServer({ hostNames: ['127.0.0.1'] });
  onTestFinished(async () => {
    await server.close();
  });
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
  const publishers = { llhls: { chunkDuration: 0.5, segmentDuration: 1, segmentCount: 5 } };
  const outputProfile = [{ name: 'first', outputStreamName: ORIGIN_NAME, encodes: BYPASS }];
  const application = { name: 'made', type: 'live', providers: { rtmp: {} }, publishers, outputProfiles: { outputProfile } };
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
  return server;
}

function encoder(server: TestServer): FfmpegPublisher {
  const started = publish({ url: server.rtmp('live', 'made', 'localhost'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await started.stop();
  });
  return started;
}

async function outputs(server: TestServer): Promise<string[]> {
  return (await server.api.get<StreamInformation>(STREAM)).outputs.map(({ name }) => name);
}

function url(server: TestServer, stream: string): string {
  return server.http(stream, 'llhls.m3u8', 'made', 'localhost');
}

test.each<[string, string, string, unknown, readonly string[], string]>([
  [
    'a new profile',
    'POST',
    `${APP}/outputProfiles`,
    [{ name: 'copy', outputStreamName: `${ORIGIN_NAME}_copy`, encodes: BYPASS }],
    ['live', 'live_copy'],
    'live_copy',
  ],
  [
    'a replaced profile',
    'PATCH',
    `${APP}/outputProfiles/first`,
    { outputStreamName: `${ORIGIN_NAME}_other`, encodes: BYPASS },
    ['live_other'],
    'live_other',
  ],
  ['changed settings', 'PATCH', APP, { publishers: { llhls: { segmentDuration: 2 } } }, ['live'], 'live'],
])('%s disconnects the encoder and counts for its next stream', async (_what, method, path, body, expected, watched) => {
  const server = await start();
  const before = encoder(server);
  await before.sent(60);
  expect((await probe(url(server, 'live'))).video).toMatchObject({ codec_name: 'h264' });
  expect(await outputs(server)).toEqual(['live']);
  const counted = await server.api.get<Statistics>(apiPath.stats('live', 'made', 'second'));
  expect(counted.totalBytesIn).toBeGreaterThan(0);

  expect((await server.api.call(method, path, body)).status).toBe(200);

  await within('the encoder loses its connection', 15_000, before.child.exited);
  expect((await server.api.call('GET', STREAM)).status).toBe(404);
  await until('viewers lose the stream', async () => (await fetch(url(server, 'live'))).status === 404);

  await encoder(server).sent(60);
  expect(await outputs(server)).toEqual(expected);
  expect((await probe(url(server, watched))).video).toMatchObject({ codec_name: 'h264', width: 320 });
});

test('without its last profile the next stream cannot be watched', async () => {
  const server = await start();
  const before = encoder(server);
  await before.sent(30);
  expect((await server.api.call('DELETE', `${APP}/outputProfiles/first`)).status).toBe(200);
  await within('the encoder loses its connection', 15_000, before.child.exited);
  await encoder(server).sent(30);
  expect(await outputs(server)).toEqual([]);
  expect((await fetch(url(server, 'live'))).status).toBe(404);
});
