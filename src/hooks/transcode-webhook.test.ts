import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { fakeStream } from '../../test/fakes/stream-figures.ts';
import { audioTrack, dataTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { controlSignature } from '../../test/support/control-signature.ts';
import { readApplication, type TranscodeWebhookConfig } from '../config/index.ts';
import type { AdvisedStream } from '../core/profile-advice.ts';
import { TranscodeWebhook } from './transcode-webhook.ts';

const PROFILE = { name: 'small', outputStreamName: '${OriginStreamName}_small', encodes: { videos: [{ bypass: 'true' }] } };
const NONE = {
  useLocalProfilesOnConnectionFailure: false,
  useLocalProfilesOnServerDisallow: false,
  useLocalProfilesOnErrorResponse: false,
};
const STREAM: AdvisedStream = {
  ...{ vhost: 'default', app: 'app', stream: 's', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:48128', createdAt: Date.UTC(2026, 0, 1) },
  tracks: [videoTrack({ variantName: '' }), audioTrack({ variantName: '' }), dataTrack(2)],
  figures: fakeStream('s').figures,
};

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

/** A control server, and a webhook that asks it. */
async function start(answer: (request: IncomingMessage, response: ServerResponse) => void, flags: Partial<TranscodeWebhookConfig> = NONE) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  const controlServerUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/transcode`;
  const webhook = { enable: true, controlServerUrl, secretKey: 'twsecret', timeout: 60_000, ...flags };
  const { typed } = readApplication({ name: 'app', type: 'live', transcodeWebhook: webhook });
  const logger = new RecordingLogger();
  const asked = new TranscodeWebhook(typed.transcodeWebhook as TranscodeWebhookConfig, logger);
  open.push(asked);
  return { asked, logger, advise: (signal = new AbortController().signal) => asked.advise(STREAM, signal) };
}

const saying =
  (body: unknown, status = 200) =>
  (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status).end(JSON.stringify(body));
  };

/** All paths of members, with their types. */
function shapeOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => shapeOf(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [`${path}: ${typeof value}`];
  return Object.entries(value).flatMap(([key, member]) => shapeOf(member, `${path}.${key}`));
}

test("the request has the members of OvenMediaEngine's, and a signature", async () => {
  const seen: { body: string; signature: unknown }[] = [];
  const { advise } = await start(async (request, response) => {
    seen.push({ body: await text(request), signature: request.headers['x-ome-signature'] });
    response.end(JSON.stringify({ allowed: true, outputProfiles: { outputProfile: [PROFILE] } }));
  });
  await advise();
  const [{ body, signature }] = seen as [(typeof seen)[number]];
  expect(signature).toBe(controlSignature('twsecret', body));
  const recorded = JSON.parse(readFileSync(new URL('../../test/fixtures/hooks/transcode.json', import.meta.url), 'utf8')) as object;
  expect([...new Set(shapeOf(JSON.parse(body)))].sort()).toEqual([...new Set(shapeOf(recorded))].sort());
  expect(JSON.parse(body)).toMatchObject({
    source: 'TCP://127.0.0.1:48128',
    stream: {
      name: 's',
      virtualHost: 'default',
      application: 'app',
      sourceType: 'Rtmp',
      tracks: [{ type: 'Video' }, { type: 'Audio' }, { type: 'Data' }],
    },
  });
});

test('the answer is read as output profiles of the API are, texts for booleans included', async () => {
  const hwaccels = { encoder: { enable: 'true', modules: 'nv' } };
  const { advise } = await start(saying({ allowed: 'true', outputProfiles: { hwaccels, outputProfile: [PROFILE] } }));
  const advice = await advise();
  expect(advice).toMatchObject({
    kind: 'profiles',
    outputProfiles: {
      hwaccels: { encoder: { enable: true, modules: 'nv' } },
      outputProfile: [{ name: 'small', encodes: { videos: [{ name: 'video_0', bypass: true }], audios: [] }, playlists: [] }],
    },
  });
});

test('settings without effect in a profile of the control server are reported', async () => {
  const encodes = { videos: [{ codec: 'vp8', bitrate: 1000, profile: 'main' }] };
  const { advise, logger } = await start(saying({ allowed: true, outputProfiles: { outputProfile: [{ ...PROFILE, encodes }] } }));
  await advise();
  expect(logger.lines.map(({ message }) => message)).toEqual([
    "output profile 'small' of the control server: Encodes/Video/Profile has no effect: vp8 has no such profiles: the encoder chooses",
  ]);
});

test.each<[string, keyof typeof NONE, (request: IncomingMessage, response: ServerResponse) => void, string]>([
  [
    'refuses',
    'useLocalProfilesOnServerDisallow',
    saying({ allowed: false, reason: 'not today' }),
    'the control server refuses the stream: "not today"',
  ],
  ['refuses without a reason', 'useLocalProfilesOnServerDisallow', saying({ allowed: 'false' }), 'the control server refuses the stream'],
  ['fails', 'useLocalProfilesOnErrorResponse', saying({ allowed: true }, 500), 'answers with status 500'],
  [
    'does not say whether it allows',
    'useLocalProfilesOnErrorResponse',
    saying({ outputProfiles: {} }),
    "must say 'allowed': true or false, but says nothing",
  ],
  ['gives an answer of the wrong type', 'useLocalProfilesOnErrorResponse', saying({ allowed: 1 }), 'but says 1'],
  [
    'allows without profiles',
    'useLocalProfilesOnErrorResponse',
    saying({ allowed: true }),
    'outputProfiles must be an object, but got nothing',
  ],
  [
    'gives invalid profiles',
    'useLocalProfilesOnErrorResponse',
    saying({
      allowed: true,
      outputProfiles: { outputProfile: [{ name: 'x', outputStreamName: 'o', encodes: { videos: [{ codec: 'bogus', bitrate: 1 }] } }] },
    }),
    'Unknown codec: bogus (expected: h264, h265, vp8, av1)',
  ],
  [
    'gives two profiles for one stream',
    'useLocalProfilesOnErrorResponse',
    saying({ allowed: true, outputProfiles: { outputProfile: [PROFILE, { ...PROFILE, name: 'b' }] } }),
    'Duplicate output stream name: ${OriginStreamName}_small',
  ],
  ['hangs up', 'useLocalProfilesOnConnectionFailure', (request) => request.socket.destroy(), 'cannot be asked: socket hang up'],
])('a server that %s: refused, unless %s', async (_what, flag, answer, reason) => {
  const strict = await start(answer, { ...NONE });
  expect(await strict.advise()).toEqual({ kind: 'refused', reason: expect.stringContaining(reason) });
  const others = Object.fromEntries(Object.keys(NONE).map((name) => [name, name !== flag]));
  const almost = await start(answer, others);
  expect((await almost.advise()).kind).toBe('refused');
  const lenient = await start(answer, { ...NONE, [flag]: true });
  expect(await lenient.advise()).toEqual({ kind: 'local', reason: expect.stringContaining(reason) });
});

test('a hanging server is awaited until the timeout, or until the request is cancelled', async () => {
  const { advise } = await start(() => undefined, { timeout: 50, useLocalProfilesOnConnectionFailure: true });
  expect(await advise()).toEqual({ kind: 'local', reason: expect.stringContaining('has not answered within 50 ms') });
  const patient = await start(() => undefined);
  const controller = new AbortController();
  const advice = patient.advise(controller.signal);
  controller.abort();
  expect(await advice).toEqual({ kind: 'refused', reason: expect.stringContaining('no more of the stream can be held') });
  const closed = patient.advise();
  patient.asked.close();
  expect((await closed).kind).toBe('refused');
});

test.each(['ftp://a/b', 'http://', 'nonsense'])('%s is refused as the URL of a control server', (controlServerUrl) => {
  const transcodeWebhook = { enable: true, controlServerUrl, secretKey: 's' };
  expect(() => readApplication({ name: 'app', type: 'live', transcodeWebhook })).toThrow(/[cC]ontrolServerUrl/);
});
