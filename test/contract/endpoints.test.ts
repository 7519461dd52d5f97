/** Every row of the contract's endpoint tables that is built: success, each status, and the words of each refusal. */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RouteTable } from '../../src/api/route.ts';
import { routes } from '../../src/api/routes.ts';
import { type ApiHarness, startApi } from './harness.ts';

const table = new RouteTable(routes);
const VHOST = { name: 'v', host: { names: ['v.example'] } };
const PROFILE = { name: 'p', outputStreamName: '${OriginStreamName}_p', encodes: { videos: [{ name: 'v', bypass: true }] } };
const STORED_PROFILE = { ...PROFILE, encodes: { audios: [], videos: [{ name: 'v', bypass: true }] } };
const APP = '/v1/vhosts/v/apps/a';
const FILE_APP = '/v1/vhosts/default/apps/app';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

/** Calls and, when the answer is a success, checks it against the schema of the route. */
async function call(method: string, path: string, body?: unknown): Promise<{ status: number; json: Answer }> {
  const answer = await api.call(method, path, body);
  const route = table.find(method, path)?.route;
  const envelopes = Array.isArray(answer.json) ? answer.json : [answer.json];
  for (const envelope of envelopes) {
    if (envelope.statusCode === 200 && route?.response !== undefined) {
      expect([...Value.Errors(route.response, envelope.response)], `${method} ${path}`).toEqual([]);
    }
  }
  return { status: answer.status, json: answer.json as Answer };
}

// biome-ignore lint/suspicious/noExplicitAny: answers are JSON of any form; what they must hold is asserted
type Answer = any;

const error = (statusCode: number, text: string) => ({
  status: statusCode,
  json: { message: `[HTTP] ${text} (${statusCode})`, statusCode },
});
const done = { status: 200, json: { message: 'OK', statusCode: 200 } };
const found = (response: unknown) => ({ status: 200, json: { message: 'OK', response, statusCode: 200 } });

async function createApp(): Promise<void> {
  expect((await call('POST', '/v1/vhosts', [VHOST])).status).toBe(200);
  expect((await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live' }])).status).toBe(200);
}

test('GET /v1/version', async () => {
  expect(await call('GET', '/v1/version')).toEqual(found({ gitVersion: 'v0.1.0', version: '0.1.0' }));
});

test('GET /openapi.json describes the API, to whom may use it', async () => {
  const answer = await api.send({ path: '/openapi.json' });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json;charset=UTF-8']);
  const described = Object.entries<object>(JSON.parse(answer.body).paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.sort()).toEqual(
    routes
      .map(({ method, path }) => `${method} ${path}`)
      .filter((route) => route !== 'GET /openapi.json')
      .sort(),
  );
  expect((await api.send({ path: '/openapi.json', headers: { Authorization: null } })).status).toBe(401);
});

describe('virtual hosts', () => {
  test('are listed in the order of their creation', async () => {
    await call('POST', '/v1/vhosts', [
      { ...VHOST, name: 'z' },
      { ...VHOST, name: 'a' },
    ]);
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default', 'z', 'a']));
  });

  test('are created in a batch, each on its own', async () => {
    expect(await call('POST', '/v1/vhosts', [])).toEqual({ status: 200, json: [] });
    const created = { message: 'OK', response: VHOST, statusCode: 200 };
    const taken = { message: 'The virtual host already exists: [v]', statusCode: 409 };
    const nameless = { message: '[Config] virtualHost.name is not optional', statusCode: 400 };
    expect(await call('POST', '/v1/vhosts', [VHOST, VHOST, {}])).toEqual({ status: 207, json: [created, taken, nameless] });
    expect(await call('POST', '/v1/vhosts', [VHOST])).toEqual({ status: 409, json: [taken] });
    expect(await call('POST', '/v1/vhosts', [{}, 'x'])).toEqual({ status: 400, json: [nameless, nameless] });
  });

  test('are refused with the place of the fault', async () => {
    const refusals = [
      [{ name: 'v' }, 'virtualHost.host is not optional'],
      [{ ...VHOST, x: 1 }, 'Unknown item found: virtualHost.x'],
      [{ ...VHOST, host: { names: 'c' } }, 'virtualHost.host.names must be a list, but got "c"'],
      [{ ...VHOST, name: 'a/b' }, 'virtualHost.name must not contain "/", "?", "#", ":" or white space, but got "a/b"'],
    ] as const;
    const { status, json } = await call(
      'POST',
      '/v1/vhosts',
      refusals.map(([definition]) => definition),
    );
    expect(status).toBe(400);
    expect(json).toEqual(refusals.map(([, text]) => ({ message: `[Config] ${text}`, statusCode: 400 })));
  });

  test.each([{}, 'text', 5, null, true])('%j is no batch', async (body) => {
    expect(await call('POST', '/v1/vhosts', body)).toEqual(error(400, 'Request body must be an array'));
  });

  test('may bring their applications, which the answers do not show', async () => {
    const created = await call('POST', '/v1/vhosts', [{ ...VHOST, applications: [{ name: 'a', type: 'live' }] }]);
    expect(created.json[0].response).toEqual(VHOST);
    expect(await call('GET', '/v1/vhosts/v')).toEqual(found(VHOST));
    expect(await call('GET', '/v1/vhosts/v/apps')).toEqual(found(['a']));
  });

  test('bring no templates: those belong into the file', async () => {
    const { json } = await call('POST', '/v1/vhosts', [{ ...VHOST, applications: [{ name: '*', type: 'live' }] }]);
    const message = '[Config] application.name must not be "*": templates can only be declared in the configuration file';
    expect(json).toEqual([{ message, statusCode: 400 }]);
    expect((await call('GET', '/v1/vhosts/v')).status).toBe(404);
  });

  test('with an application that cannot be created are not created', async () => {
    const twice = { name: 'a', type: 'live' };
    const { json } = await call('POST', '/v1/vhosts', [{ ...VHOST, applications: [twice, twice] }]);
    expect(json[0].statusCode).toBe(400);
    expect(await call('GET', '/v1/vhosts/v')).toEqual(error(404, 'Could not find the virtual host: [v]'));
  });

  test('are deleted with everything in them', async () => {
    await createApp();
    const closed = await api.publish('v', 'a', 's');
    expect(await call('DELETE', '/v1/vhosts/v')).toEqual(done);
    expect(closed.map(({ code }) => code)).toEqual(['deleted']);
    expect(await call('DELETE', '/v1/vhosts/v')).toEqual(error(404, 'Could not find the virtual host: [v]'));
  });

  test('of the file show their values as text', async () => {
    const { json } = await call('GET', '/v1/vhosts/default');
    expect(json.response).toMatchObject({ distribution: 'ovenmediaengine.com', host: { names: ['*'] }, name: 'default' });
    const app = await call('GET', FILE_APP);
    expect(app.json.response.publishers.llhls.segmentDuration).toBe('6');
  });
});

describe('what the file declares', () => {
  const readOnly = error(403, 'The VirtualHost is read-only: [default]');

  test.each([
    ['DELETE', '/v1/vhosts/default', undefined],
    ['POST', '/v1/vhosts/default/apps', {}],
    ['PATCH', FILE_APP, { name: 'x' }],
    ['DELETE', FILE_APP, undefined],
    ['POST', `${FILE_APP}/outputProfiles`, 'nonsense'],
    ['PATCH', `${FILE_APP}/outputProfiles/nope`, []],
    ['DELETE', `${FILE_APP}/outputProfiles/bypass_stream`, undefined],
  ])('is not changed by %s %s', async (method, path, body) => {
    expect(await call(method, path, body)).toEqual(readOnly);
  });

  test('is found before it is refused, and read before it is found', async () => {
    expect(await call('DELETE', '/v1/vhosts/default/apps/nope')).toEqual(error(404, 'Could not find the application: [default/nope]'));
    const malformed = await api.send({ method: 'POST', path: '/v1/vhosts/nope/apps', body: '{' });
    expect(malformed.status).toBe(400);
  });

  test('still lets its streams be terminated', async () => {
    await api.publish('default', 'app', 's');
    expect(await call('DELETE', `${FILE_APP}/streams/s`)).toEqual(done);
  });
});

describe('applications', () => {
  test('get defaults for what their definition does not mention', async () => {
    await call('POST', '/v1/vhosts', [VHOST]);
    const { json } = await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live' }]);
    const audio = (codec: string) => ({
      bitrate: 128000,
      bypassIfMatch: { codec: 'eq' },
      channel: 2,
      codec,
      name: codec,
      samplerate: 48000,
    });
    const encodes = { audios: [audio('opus'), audio('aac')], videos: [{ bypass: true, name: 'bypass_video' }] };
    expect(json[0].response).toEqual({
      dynamic: false,
      name: 'a',
      outputProfiles: { outputProfile: [{ encodes, name: 'default', outputStreamName: '${OriginStreamName}' }] },
      providers: { ovt: {}, rtmp: {}, rtspPull: {}, srt: {}, webrtc: {} },
      publishers: { llhls: {}, ovt: {}, webrtc: {} },
      type: 'live',
    });
    expect((await call('GET', APP)).json.response).toEqual(json[0].response);
  });

  test('keep what their definition mentions, even as null', async () => {
    await call('POST', '/v1/vhosts', [VHOST]);
    const { json } = await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live', providers: null, publishers: { hls: {} } }]);
    expect(json[0].response).not.toHaveProperty('providers');
    expect(json[0].response.publishers).toEqual({ hls: {} });
  });

  test('are created in a batch, each on its own', async () => {
    await createApp();
    const bodies = [
      { name: 'b', type: 'live' },
      { name: 'a', type: 'live' },
      { name: 'c' },
      { name: 'd', type: 'x' },
      'text',
      { name: 'e', type: 'live', f: 1 },
    ];
    const { status, json } = await call('POST', '/v1/vhosts/v/apps', bodies);
    expect(status).toBe(207);
    expect(json.map((item: Answer) => [item.statusCode, item.message])).toEqual([
      [200, 'OK'],
      [409, 'Could not create the application: [v/a] already exists'],
      [400, '[Config] application.type is not optional'],
      [400, '[Config] Unknown type: x'],
      [400, '[Config] application.name is not optional'],
      [400, '[Config] Unknown item found: application.f'],
    ]);
    expect(await call('GET', '/v1/vhosts/v/apps')).toEqual(found(['a', 'b']));
  });

  test('are listed, found and missed', async () => {
    await createApp();
    expect(await call('GET', '/v1/vhosts/nope/apps')).toEqual(error(404, 'Could not find the virtual host: [nope]'));
    expect(await call('POST', '/v1/vhosts/nope/apps', [])).toEqual(error(404, 'Could not find the virtual host: [nope]'));
    expect(await call('GET', '/v1/vhosts/v/apps/')).toEqual(error(404, 'Could not find the application: [v/]'));
    expect(await call('POST', '/v1/vhosts/v/apps', {})).toEqual(error(400, 'Request body must be an array'));
  });

  test('restart when they are changed, and all their sessions are closed', async () => {
    await createApp();
    await call('POST', '/v1/vhosts/v/apps', [{ name: 'b', type: 'live' }]);
    const closed = await api.publish('v', 'a', 's');
    const { status, json } = await call('PATCH', APP, { publishers: { llhls: { segmentDuration: 4 }, file: {}, ovt: null }, type: 'vod' });
    expect(status).toBe(200);
    expect(json.response.publishers).toEqual({ file: {}, llhls: { segmentDuration: 4 }, webrtc: {} });
    expect(json.response.type).toBe('vod');
    expect(closed.map(({ code }) => code)).toEqual(['application-restart']);
    expect(await call('GET', `${APP}/streams`)).toEqual(found([]));
    expect(await call('GET', '/v1/vhosts/v/apps')).toEqual(found(['b', 'a']));
  });

  test('are changed under either spelling of a member', async () => {
    await createApp();
    await call('PATCH', APP, { publishers: { llhls: { dVR: { enable: false, maxDuration: 60 } } } });
    const { json } = await call('PATCH', APP, { publishers: { llhls: { dvr: { maxDuration: 70 } } } });
    expect(json.response.publishers.llhls).toEqual({ dVR: { enable: false, maxDuration: 70 } });
  });

  test.each([
    [{ name: 'a' }, 'Cannot change [name] using this API'],
    [{ dynamic: false, outputProfiles: {} }, 'Cannot change [dynamic] using this API'],
    [{ outputProfiles: {} }, 'Cannot change [outputProfiles] using this API'],
    [[], 'Request body must be an object'],
    [null, 'Request body must be an object'],
  ])('refuse %j and go on', async (patch, text) => {
    await createApp();
    const closed = await api.publish('v', 'a', 's');
    expect(await call('PATCH', APP, patch)).toEqual(error(400, text));
    expect(closed).toEqual([]);
  });

  test('refuse what cannot be configured and go on', async () => {
    await createApp();
    const closed = await api.publish('v', 'a', 's');
    const patched = await call('PATCH', APP, { publishers: { llhls: { segmentDuration: 'abc' } } });
    expect(patched.status).toBe(400);
    expect(patched.json.message).toMatch(/^\[Config\] application\.publishers\.llhls\.segmentDuration must be a number/);
    expect(await call('PATCH', APP, { publishers: { bogus: {} } })).toMatchObject({
      json: { message: '[Config] Unknown item found: application.publishers.bogus' },
    });
    expect(closed).toEqual([]);
  });

  test('are deleted', async () => {
    await createApp();
    expect(await call('DELETE', APP)).toEqual(done);
    const missing = error(404, 'Could not find the application: [v/a]');
    for (const method of ['GET', 'DELETE']) expect(await call(method, APP)).toEqual(missing);
    expect(await call('PATCH', APP, {})).toEqual(missing);
  });
});

describe('output profiles', () => {
  const PROFILES = `${APP}/outputProfiles`;
  beforeEach(createApp);

  test('are created in a batch, with one restart', async () => {
    const closed = await api.publish('v', 'a', 's');
    const { status, json } = await call('POST', PROFILES, [PROFILE, PROFILE, { ...PROFILE, name: 'q', outputStreamName: 'q' }]);
    expect(status).toBe(207);
    expect(json).toEqual([
      { message: 'OK', response: STORED_PROFILE, statusCode: 200 },
      { message: 'The output profile "p" already exists', statusCode: 409 },
      { message: 'OK', response: { ...STORED_PROFILE, name: 'q', outputStreamName: 'q' }, statusCode: 200 },
    ]);
    expect(closed).toHaveLength(1);
    expect(await call('GET', PROFILES)).toEqual(found(['default', 'p', 'q']));
    expect(await call('GET', `${PROFILES}/p`)).toEqual(found(STORED_PROFILE));
  });

  test('that come at the same time are all kept', async () => {
    const names = ['a', 'b', 'c', 'd'];
    await Promise.all(names.map((name) => call('POST', PROFILES, [{ ...PROFILE, name, outputStreamName: name }])));
    expect((await call('GET', PROFILES)).json.response.sort()).toEqual([...names, 'default']);
  });

  const required = 'Invalid request body: "name", "outputStreamName", "encodes" are required';
  const wrong = 'Invalid request body: "name" must be a string and "encodes" must be an object';

  test.each([
    [{ ...PROFILE, name: undefined }, required],
    [{ name: 'p', encodes: {} }, required],
    [{ name: 'p', outputStreamName: 'x' }, required],
    ['text', required],
    [null, required],
    [{ ...PROFILE, name: 4 }, wrong],
    [{ ...PROFILE, outputStreamName: null }, wrong],
    [{ ...PROFILE, encodes: [] }, wrong],
    [{ ...PROFILE, encodes: {} }, 'Invalid request body: "encodes" must have at least one item (videos array or audios array)'],
    [{ ...PROFILE, encodes: { videos: {} } }, 'Invalid request body: "encodes.videos" must be an array'],
    [{ ...PROFILE, encodes: { audios: 1 } }, 'Invalid request body: "encodes.audios" must be an array'],
    [
      { ...PROFILE, encodes: { videos: [], audios: [] } },
      'Invalid request body: "encodes" must have at least one item (videos array or audios array) and each item must have at least one item',
    ],
    [{ ...PROFILE, encodes: { videos: [{ name: 'v' }] } }, '[Config] Codec must be specified when bypass is false'],
    [{ ...PROFILE, encodes: { videos: [{ codec: 'h264' }] } }, '[Config] Bitrate must be specified when bypass is false'],
    [{ ...PROFILE, outputStreamName: '${OriginStreamName}' }, '[Config] Duplicate output stream name: ${OriginStreamName}'],
    [{ ...PROFILE, x: 1 }, '[Config] Unknown item found: outputProfile.x'],
  ])('%j refuses the whole request', async (profile, text) => {
    expect(await call('POST', PROFILES, [{ ...PROFILE, name: 'first', outputStreamName: 'first' }, profile])).toEqual(error(400, text));
    expect(await call('GET', PROFILES)).toEqual(found(['default']));
  });

  test('are replaced by PATCH, except for their name', async () => {
    await call('POST', PROFILES, [PROFILE]);
    const patch = { outputStreamName: 'other', encodes: { audios: [{ name: 'a', bypass: true }] } };
    const stored = { name: 'p', outputStreamName: 'other', encodes: { audios: [{ name: 'a', bypass: true }], videos: [] } };
    expect(await call('PATCH', `${PROFILES}/p`, patch)).toEqual(found(stored));
    expect(await call('GET', PROFILES)).toEqual(found(['default', 'p']));
    expect(await call('PATCH', `${PROFILES}/p`, { Name: 'q' })).toEqual(
      error(400, 'The Name entry cannot be specified in the modification'),
    );
    expect(await call('PATCH', `${PROFILES}/p`, [])).toEqual(error(400, 'Request body must be an object'));
  });

  test('are deleted', async () => {
    await call('POST', PROFILES, [PROFILE]);
    expect(await call('DELETE', `${PROFILES}/p`)).toEqual(done);
    const missing = error(404, 'Could not find the output profile: [v/a/p]');
    for (const method of ['GET', 'DELETE']) expect(await call(method, `${PROFILES}/p`)).toEqual(missing);
    expect(await call('PATCH', `${PROFILES}/p`, {})).toEqual(missing);
  });
});

describe('streams', () => {
  const STREAMS = `${FILE_APP}/streams`;
  const missing = error(404, 'Could not find the stream: [default/#default#app/nope]');

  test('are listed in the order they came', async () => {
    await api.publish('default', 'app', 'z');
    await api.publish('default', 'app', 'a');
    expect(await call('GET', STREAMS)).toEqual(found(['z', 'a']));
    expect(await call('GET', '/v1/vhosts/default/apps/nope/streams')).toEqual(error(404, 'Could not find the application: [default/nope]'));
  });

  test('tell what comes in and what goes out', async () => {
    await api.publish('default', 'app', 's');
    const { json } = await call('GET', `${STREAMS}/s`);
    expect(json.response).toMatchObject({ name: 's', input: { sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.7:50412' } });
    expect(json.response.input.tracks.map(({ type }: Answer) => type)).toEqual(['Video', 'Audio', 'Data']);
    expect(json.response.input.tracks[0].video).toMatchObject({ codec: 'H264', width: 320, height: 180, bypass: false, framerate: 30 });
    expect(json.response.outputs.map(({ name }: Answer) => name)).toEqual(['s']);
    const { body } = await api.send({ path: `${STREAMS}/s` });
    expect(body).toContain('"framerate":30.0,');
    expect(await call('GET', `${STREAMS}/nope`)).toEqual(missing);
  });

  test('are terminated: the publisher is disconnected', async () => {
    const closed = await api.publish('default', 'app', 's');
    expect(await call('DELETE', `${STREAMS}/s`)).toEqual(done);
    expect(closed.map(({ code }) => code)).toEqual(['deleted']);
    expect(await call('GET', STREAMS)).toEqual(found([]));
    expect(await call('DELETE', `${STREAMS}/nope`)).toEqual(missing);
  });

  test.each([
    [[], 'Request body must be an object'],
    [{}, 'Stream name or urls is required'],
    [{ name: 1, urls: ['rtsp://h/x'] }, 'Stream name or urls is required'],
    [{ name: 'p', urls: 'rtsp://h/x' }, 'Stream name or urls is required'],
    [{ name: 'p', urls: [] }, 'Urls must be at least one'],
    [{ name: 'p', urls: [5] }, 'Url must be a string'],
  ])('%j does not ask for a pull', async (body, text) => {
    expect(await call('POST', STREAMS, body)).toEqual(error(400, text));
  });

  test('are not pulled from URLs of several schemes, or under a name no path can address', async () => {
    const urls = ['rtsp://h/x', 'ovt://h/x'];
    expect(await call('POST', STREAMS, { name: 'p', urls })).toEqual(error(400, 'Urls must have the same scheme'));
    const text = 'Stream name must not be empty or contain / : ? # or white space: [a/b]';
    expect(await call('POST', STREAMS, { name: 'a/b', urls: ['rtsp://h/x'] })).toEqual(error(400, text));
    expect(api.rtsp.asked).toEqual([]);
  });

  const PLAYS = 'rtsp://user:secret@127.0.0.1:1/app/stream';
  const failed = error(502, 'Could not pull the stream : http://127.0.0.1/v1/vhosts/default/apps/app/streams');
  const createdAnswer = { status: 201, json: { message: 'Created', statusCode: 201 } };

  test('are pulled, listed with their source, and deleted', async () => {
    expect(await call('POST', STREAMS, { name: 'p', urls: [PLAYS] })).toEqual(createdAnswer);
    const { json } = await call('GET', `${STREAMS}/p`);
    expect(json.response.input).toMatchObject({ sourceType: 'RtspPull', sourceUrl: 'rtsp://127.0.0.1:1/app/stream' });
    expect(await call('POST', STREAMS, { name: 'p', urls: [PLAYS] })).toEqual(error(409, 'Stream already exists'));
    expect(await call('DELETE', `${STREAMS}/p`)).toEqual(done);
    expect(api.rtsp.opened.map(({ closed }) => closed)).toEqual([true]);
    expect(await call('GET', STREAMS)).toEqual(found([]));
  });

  test('are pulled from the next URL when the first fails, and answered with 502 when all fail', async () => {
    expect(await call('POST', STREAMS, { name: 'p', urls: ['rtsp://h/a', PLAYS] })).toEqual(createdAnswer);
    expect(await call('POST', STREAMS, { name: 'q', urls: ['rtsp://h/a', 'rtsp://h/b'] })).toEqual(failed);
    expect(await call('POST', STREAMS, { name: 'q', urls: ['srt://h/a'] })).toEqual(failed);
    expect(await call('GET', STREAMS)).toEqual(found(['p']));
    expect(api.rtsp.asked).toEqual(['rtsp://h/a', PLAYS, 'rtsp://h/a', 'rtsp://h/b']);
  });

  test('wait for their source under their name: a second pull of it is refused meanwhile', async () => {
    const both = await Promise.all([1, 2].map(() => call('POST', STREAMS, { name: 'p', urls: [PLAYS] })));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test('go on with the next URL when the source ends or falls silent, under the same stream', async () => {
    const other = 'rtsp://127.0.0.1:2/app/stream';
    const properties = { noInputFailoverTimeoutMs: 2000, unusedStreamDeletionTimeoutMs: 600_000 };
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS, other], properties });
    const stream = api.orchestrator.application('default', 'app')!.stream('p')!;
    api.rtsp.deliver();
    api.rtsp.opened[0]!.target.sink.ended({ code: 'peer-left', detail: 'bye' });
    await api.until(() => api.rtsp.opened.length === 2);
    await api.until(() => stream.sourceUrl === other);
    api.rtsp.deliver();
    api.clock.advance(2001);
    await api.until(() => api.rtsp.opened.length === 3);
    expect(api.rtsp.opened.map(({ closed }) => closed)).toEqual([true, true, false]);
    expect(api.orchestrator.application('default', 'app')!.stream('p')).toBe(stream);
  });

  test('are deleted when every URL has failed as often as allowed', async () => {
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { retryCount: 1 } });
    api.rtsp.plays = () => false;
    api.rtsp.opened[0]!.target.sink.ended({ code: 'peer-left', detail: 'bye' });
    await api.until(() => api.orchestrator.application('default', 'app')!.stream('p') === undefined);
    // The lost connection brought no packet and is the first failure, the retry in vain the second.
    expect(api.rtsp.asked).toHaveLength(2);
  });

  test('are deleted when nobody watches, unless they are persistent', async () => {
    const properties = { unusedStreamDeletionTimeoutMs: 5000, noInputFailoverTimeoutMs: 600_000 };
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties });
    await call('POST', STREAMS, { name: 'kept', urls: [PLAYS], properties: { ...properties, persistent: true } });
    api.clock.advance(5001);
    await api.until(() => api.orchestrator.application('default', 'app')!.stream('p') === undefined);
    expect(await call('GET', STREAMS)).toEqual(found(['kept']));
  });

  test('are kept while their source is away when they are persistent, and go on when it is back', async () => {
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { persistent: true, retryCount: 0 } });
    api.rtsp.plays = () => false;
    api.rtsp.opened[0]!.target.sink.ended({ code: 'peer-left', detail: 'bye' });
    await api.until(() => api.rtsp.asked.length === 4);
    expect(await call('GET', STREAMS)).toEqual(found(['p']));
    api.rtsp.plays = () => true;
    await api.until(() => api.rtsp.opened.length === 2);
  });

  test('are on disk before the answer when they are persistent, and off it before that of their deletion', async () => {
    const body = { name: 'p', urls: [PLAYS], properties: { persistent: true, relay: true, ignoreRtcpSRTimestamp: true } };
    api.pullStore.full = true;
    expect((await call('POST', STREAMS, body)).status).toBe(500);
    expect(await call('GET', STREAMS)).toEqual(found([]));
    api.pullStore.full = false;
    expect(await call('POST', STREAMS, body)).toEqual(createdAnswer);
    expect([...api.pullStore.documents.values()]).toMatchObject([{ vhost: 'default', app: 'app', ...body }]);
    expect(await call('DELETE', `${STREAMS}/p`)).toEqual(done);
    expect(api.pullStore.documents.size).toBe(0);
  });

  test('come back after a restart of their application when they are persistent, and leave the disk with it', async () => {
    const APPS = '/v1/vhosts/made/apps';
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', APPS, [{ name: 'app', type: 'live', providers: { rtspPull: {}, rtmp: {} } }]);
    await call('POST', `${APPS}/app/streams`, { name: 'kept', urls: [PLAYS], properties: { persistent: true } });
    await call('POST', `${APPS}/app/streams`, { name: 'passing', urls: [PLAYS] });
    expect((await call('PATCH', `${APPS}/app`, { providers: { webrtc: { timeout: 1 } } })).status).toBe(200);
    await api.until(() => api.orchestrator.application('made', 'app')?.stream('kept') !== undefined);
    await api.until(() => api.rtsp.opened.length === 3);
    expect(await call('GET', `${APPS}/app/streams`)).toEqual(found(['kept']));
    expect(api.rtsp.opened.map(({ closed }) => closed)).toEqual([true, true, false]);
    expect(api.pullStore.documents.size).toBe(1);
    expect((await call('DELETE', `${APPS}/app`)).status).toBe(200);
    await api.until(() => api.pullStore.documents.size === 0);
  });

  test('exist until they are deleted when they are persistent, also while their provider is switched off', async () => {
    const APP = '/v1/vhosts/made/apps/app';
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} } }]);
    const given = { persistent: true, noInputFailoverTimeoutMs: 3000, unusedStreamDeletionTimeoutMs: 60_000 };
    const properties = { ...given, retryCount: 1, ignoreRtcpSRTimestamp: false, relay: false };
    for (const name of ['one', 'two']) {
      const document = { vhost: 'made', app: 'app', name, urls: ['rtsp://user:secret@camera/x'], properties };
      await api.pullStore.save(document);
      expect(() => api.pulls.restore(document)).toThrow('is not enabled');
    }
    expect(await call('GET', `${APP}/streams`)).toEqual(found(['one', 'two']));
    expect(await call('GET', STREAMS)).toEqual(found([]));
    const { json } = await call('GET', `${APP}/streams/one`);
    expect(json.response).toEqual({
      name: 'one',
      input: { createdTime: expect.any(String), sourceType: 'RtspPull', sourceUrl: 'rtsp://camera/x', tracks: [] },
      outputs: [],
    });
    expect((await call('POST', `${APP}/streams`, { name: 'one', urls: [PLAYS] })).status).toBe(409);
    expect(await call('DELETE', `${APP}/streams/one`)).toEqual(done);
    expect([...api.pullStore.documents.keys()]).toEqual(['two']);
    for (const method of ['GET', 'DELETE']) expect((await call(method, `${APP}/streams/one`)).status).toBe(404);
    expect(await call('GET', `${APP}/streams`)).toEqual(found(['two']));
    // What has its name meanwhile is shown once, and is what is deleted, with what waits for the name.
    await api.publish('made', 'app', 'two');
    expect(await call('GET', `${APP}/streams`)).toEqual(found(['two']));
    expect((await call('GET', `${APP}/streams/two`)).json.response.input.sourceType).toBe('Rtmp');
  });

  test.each(['/v1/vhosts/made/apps/app', '/v1/vhosts/made'])(
    'do not wait for another application of the name when %s is deleted',
    async (path) => {
      await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
      await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtspPull: {} } }]);
      await call('POST', '/v1/vhosts/made/apps/app/streams', { name: 'p', urls: [PLAYS], properties: { persistent: true } });
      const document = { ...api.pullStore.documents.get('p')!, name: 'q' };
      await call('DELETE', '/v1/vhosts/made/apps/app/streams/p');
      await call('DELETE', '/v1/vhosts/made/apps/app');
      await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} } }]);
      const other = { ...document, vhost: 'default', name: 'other' };
      await api.pullStore.save(document);
      await api.pullStore.save(other);
      expect(() => api.pulls.restore(document)).toThrow('is not enabled');
      expect((await call('DELETE', path)).status).toBe(200);
      expect([...api.pullStore.documents.keys()]).toEqual(['other']);
      expect(api.pulls.waiting).toBe(0);
    },
  );

  test('need their provider in the application', async () => {
    await call('POST', '/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
    await call('POST', '/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtmp: {} } }]);
    expect((await call('POST', '/v1/vhosts/made/apps/app/streams', { name: 'p', urls: [PLAYS] })).status).toBe(502);
    expect(api.rtsp.asked).toEqual([]);
  });

  test('pass untouched when they are relayed', async () => {
    await call('POST', STREAMS, { name: 'p', urls: [PLAYS], properties: { relay: true } });
    const { json } = await call('GET', `${STREAMS}/p`);
    expect(json.response.outputs.map(({ name }: Answer) => name)).toEqual(['p']);
    const tracks: Answer[] = json.response.outputs[0].tracks;
    expect(tracks.map(({ name }) => name)).toEqual(['video_0', 'audio_0', 'Data']);
  });
});

describe('recordings', () => {
  const task = { id: 'r', stream: { name: 'later' } };

  test('take paths below the root path only, and an id once', async () => {
    const refused = await call('POST', `${FILE_APP}:startRecord`, { ...task, filePath: '/../x.ts' });
    expect(refused.status).toBe(400);
    expect(refused.json.message).toMatch(/^\[HTTP\] Invalid path: .* contains "\.\." \(400\)$/);
    expect((await call('POST', `${FILE_APP}:startRecord`, task)).json.response).toMatchObject({ id: 'r', state: 'ready' });
    expect(await call('POST', `${FILE_APP}:startRecord`, task)).toEqual(error(409, 'Duplicate ID already exists'));
    expect((await call('POST', `${FILE_APP}:records`, { id: 'r' })).json.response).toHaveLength(1);
    expect((await call('POST', `${FILE_APP}:stopRecord`, { id: 'r' })).json.response).toMatchObject({ state: 'stopping' });
  });

  test('vanish with their application, and stay when it restarts', async () => {
    await createApp();
    await call('PATCH', APP, { publishers: { file: {} } });
    await call('POST', `${APP}:startRecord`, task);
    await call('PATCH', APP, { publishers: { file: { infoPath: '/i.xml' } } });
    expect((await call('GET', `${APP}:records`)).json.response).toHaveLength(1);
    await call('DELETE', APP);
    await createAppOnly();
    expect((await call('GET', `${APP}:records`)).json.response).toEqual([]);
  });

  async function createAppOnly(): Promise<void> {
    await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live', publishers: { file: {} } }]);
  }
});

describe('statistics', () => {
  const levels = ['/vhosts/default', '/vhosts/default/apps/app', '/vhosts/default/apps/app/streams/s'];

  test.each(['/v1/stats/current', '/v2/stats/current'])('%s are told for each level, rolled up', async (root) => {
    await api.publish('default', 'app', 's');
    for (const level of levels) {
      const { json } = await call('GET', root + level);
      const figures = root.startsWith('/v1') ? json.response : json.response.providers;
      expect(figures.totalBytesIn).toBe(1000);
    }
  });

  test('count ingest connections by provider in version 2', async () => {
    await api.publish('default', 'app', 's');
    const { json } = await call('GET', '/v2/stats/current/vhosts/default');
    expect(json.response.providers.connections).toMatchObject({ rtmp: 1, srt: 0 });
  });

  test('of the whole server are told by version 1', async () => {
    expect((await call('GET', '/v1/stats/current')).status).toBe(200);
    expect(await call('GET', '/v2/stats/current')).toEqual(error(404, 'Controller not found'));
  });

  test.each(['/v1/stats/current', '/v2/stats/current'])('%s of what does not exist are 404', async (root) => {
    expect(await call('GET', `${root}/vhosts/nope`)).toEqual(error(404, 'Could not find the virtual host: [nope]'));
    expect(await call('GET', `${root}/vhosts/default/apps/nope`)).toEqual(error(404, 'Could not find the application: [default/nope]'));
    expect(await call('GET', `${root}/vhosts/default/apps/app/streams/nope`)).toEqual(
      error(404, 'Could not find the stream: [default/#default#app/nope]'),
    );
  });
});

test('queues are told under both paths', async () => {
  await api.publish('default', 'app', 's');
  const { json } = await call('GET', '/v2/internals/queues');
  expect(json.response.map(({ urn }: Answer) => urn)).toContainEqual(expect.stringMatching(/^mngq:v=default#app:s=\/s:p=imr:r=/));
  expect((await call('GET', '/v1/stats/current/internals/queues')).json.response).toHaveLength(json.response.length);
  expect(await call('GET', '/v1/stats/current/internals')).toEqual(found(['/v1/stats/current/internals/queues']));
});

test('codec modules are told as the contract has them', async () => {
  const { status, json } = await call('GET', '/v2/internals/codecs');
  expect(status).toBe(200);
  expect(json.response.find(({ module }: Answer) => module === 'x264')).toEqual({
    busId: '-',
    displayName: 'x264 video',
    id: 1,
    isDecoder: false,
    isDefault: true,
    isEncoder: true,
    isHwAccel: false,
    mediaType: 'Video',
    metrics: { active: { decoder: 0, encoder: 0 } },
    module: 'x264',
    name: 'x264:0',
    supportedCodecs: ['H264'],
  });
});

describe('certificates', () => {
  test('are loaded again, whatever the body', async () => {
    expect(await call('POST', '/v1/vhosts:reloadAllCertificates')).toEqual(done);
    await call('POST', '/v1/vhosts', [VHOST]);
    expect(await call('POST', '/v1/vhosts/v:reloadCertificate', { any: 1 })).toEqual(done);
    expect(api.certificates.reloaded).toEqual([['default'], ['v']]);
  });

  test('that cannot be loaded stay', async () => {
    api.certificates.broken = true;
    const failed = error(500, 'Failed to reload certificate. Check server log for more information.');
    expect(await call('POST', '/v1/vhosts:reloadAllCertificates')).toEqual(failed);
    expect(await call('POST', '/v1/vhosts/default:reloadCertificate')).toEqual(failed);
    expect(api.logger.lines.filter(({ level }) => level === 'error')).toHaveLength(2);
  });

  test('need a virtual host, or TLS', async () => {
    expect(await call('POST', '/v1/vhosts/nope:reloadCertificate')).toEqual(error(404, 'Could not find the virtual host: [nope]'));
    expect(await call('POST', '/v1/managers/api:reloadCertificate')).toEqual(error(400, 'TLS is not enabled for the API Server'));
  });
});

describe('a disk that is full', () => {
  beforeEach(createApp);

  test.each([
    ['DELETE', '/v1/vhosts/v', undefined, 'Failed to delete the virtual host: [v]'],
    ['DELETE', APP, undefined, 'Failed to delete the application: [v/a]'],
    ['PATCH', APP, { type: 'vod' }, 'Failed to create the application: [v/a]'],
    ['POST', `${APP}/outputProfiles`, [PROFILE], 'Failed to create the application: [v/a]'],
  ])('refuses %s %s, and nothing has changed', async (method, path, body, text) => {
    const closed = await api.publish('v', 'a', 's');
    const before = await call('GET', APP);
    api.store.full = true;
    expect(await call(method, path, body)).toEqual(error(500, text));
    expect(await call('GET', APP)).toEqual(before);
    expect(closed).toEqual([]);
  });

  test('refuses items of a batch', async () => {
    api.store.full = true;
    const vhosts = await call('POST', '/v1/vhosts', [{ ...VHOST, name: 'w' }]);
    expect(vhosts).toEqual({ status: 500, json: [{ message: 'Internal Server Error', statusCode: 500 }] });
    const apps = await call('POST', '/v1/vhosts/v/apps', [{ name: 'b', type: 'live' }]);
    expect(apps).toEqual({ status: 500, json: [{ message: 'Failed to create the application: [v/b]', statusCode: 500 }] });
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default', 'v']));
  });
});

test('what was created is kept as it was given', async () => {
  await createApp();
  const kept = api.store.documents.get('v');
  expect(kept?.definition).toEqual(VHOST);
  expect(kept?.applications.map((definition) => definition['name'])).toEqual(['a']);
});
