/** A control server chooses the outputs of each stream while the server runs and real encoders publish. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { controlSignature } from '../support/control-signature.ts';

const APP = apiPath.app('default', 'app');
const THEIRS = {
  name: 'theirs',
  outputStreamName: '${OriginStreamName}_theirs',
  encodes: { videos: [{ name: 'only_video', bypass: 'true' }] },
};

let control: Server;
let server: TestServer;
const encoders: FfmpegPublisher[] = [];
/** The request without an answer. */
let late: ServerResponse | null = null;
const asked: { readonly name: string; readonly signed: boolean }[] = [];

beforeAll(async () => {
  control = createServer(async (request, response) => {
    const body = await text(request);
    const { stream } = JSON.parse(body) as { stream: { name: string } };
    asked.push({ name: stream.name, signed: request.headers['x-ome-signature'] === controlSignature('key', body) });
    if (stream.name === 'late') {
      late = response;
      return;
    }
    const refusal = { allowed: false, reason: 'nobody paid' };
    response.end(JSON.stringify(stream.name === 'refused' ? refusal : { allowed: true, outputProfiles: { outputProfile: [THEIRS] } }));
  }).listen(0, '127.0.0.1');
  await once(control, 'listening');
  const url = `http://127.0.0.1:${(control.address() as AddressInfo).port}/transcode`;
  const webhook = `<TranscodeWebhook><Enable>true</Enable><ControlServerUrl>${url}</ControlServerUrl><SecretKey>key</SecretKey><Timeout>60000</Timeout></TranscodeWebhook>`;
  server = await startServer({ application: webhook });
});

afterAll(async () => {
  for (const encoder of encoders) await encoder.stop();
  await server?.close();
  control?.closeAllConnections();
  control?.close();
});

function start(name: string): FfmpegPublisher {
  const encoder = publish({ url: server.rtmp(name) });
  encoders.push(encoder);
  return encoder;
}

/** The outputs of a stream as soon as it has some, each with the names of its tracks. */
async function outputsOf(name: string): Promise<[string, string[]][]> {
  const { body } = await server.api.call('GET', `${APP}/streams/${name}`);
  const { outputs = [] } = (body as { response?: { outputs?: { name: string; tracks: { name: string }[] }[] } }).response ?? {};
  return outputs.map((output) => [output.name, output.tracks.map((track) => track.name)]);
}

function madeOf(name: string): Promise<[string, string[]][]> {
  return until(`outputs of ${name}`, async () => {
    const made = await outputsOf(name);
    return made.length > 0 && made.every(([, tracks]) => tracks.length > 0) ? made : null;
  });
}

test('its profiles are used, its refusal ends the encoder, and its silence delays only one stream', async () => {
  start('late');
  await until('the question that is not answered', () => late);
  start('good');
  expect(await madeOf('good')).toEqual([['good_theirs', ['only_video', 'Data']]]);
  const refused = start('refused');
  await until('the end of the encoder that is refused', () => refused.child.exit);
  expect(server.log).toContain('publisher refused: the control server refuses the stream: ');
  expect(await outputsOf('late')).toEqual([]);
  late?.destroy();
  expect((await madeOf('late')).map(([name]) => name)).toEqual(['late']);
  expect(asked.map(({ name, signed }) => [name, signed])).toEqual([
    ['late', true],
    ['good', true],
    ['refused', true],
  ]);
});
