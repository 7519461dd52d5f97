/** Virtual hosts, applications and output profiles: success, each status, and the text of each refusal. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, APP, checkedCalls, done, error, FILE_APP, found, VHOST } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const PROFILE = { name: 'p', outputStreamName: '${OriginStreamName}_p', encodes: { videos: [{ name: 'v', bypass: true }] } };
const BAD_HEADER = { crossDomains: { urls: ['*'], headers: [{ key: 'Bad Name', value: 'x' }] } };
const STORED_PROFILE = { ...PROFILE, encodes: { audios: [], videos: [{ name: 'v', bypass: true }] } };

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const { call, createApp } = checkedCalls(() => api);

describe('virtual hosts', () => {
  test('are listed in the order of their creation', async () => {
    await call('POST', '/v1/vhosts', [
      { ...VHOST, name: 'z' },
      { ...VHOST, name: 'a' },
    ]);
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default', 'z', 'a']));
  });

  test('are created one by one in a batch', async () => {
    expect(await call('POST', '/v1/vhosts', [])).toEqual({ status: 200, json: [] });
    const created = { message: 'OK', response: VHOST, statusCode: 200 };
    const taken = { message: 'Conflict', statusCode: 409 };
    const nameless = { message: '[Config] virtualHost.name is not optional', statusCode: 400 };
    expect(await call('POST', '/v1/vhosts', [VHOST, VHOST, {}])).toEqual({ status: 207, json: [created, taken, nameless] });
    expect(await call('POST', '/v1/vhosts', [VHOST])).toEqual({ status: 409, json: [taken] });
    expect(await call('POST', '/v1/vhosts', [{}, 'x'])).toEqual({ status: 400, json: [nameless, nameless] });
  });

  test('are refused with the place', async () => {
    const refusals = [
      [{ name: 'v' }, 'virtualHost.host is not optional'],
      [{ ...VHOST, x: 1 }, 'Unknown item found: virtualHost.x'],
      [{ ...VHOST, host: { names: 'c' } }, 'virtualHost.host.names must be a list, but got "c"'],
      [
        { ...VHOST, host: { names: ['a b'] } },
        'virtualHost.host.names[0] must not contain white space or characters that cannot be seen, but got "a b"',
      ],
      [
        { ...VHOST, applications: [{ name: 'a', type: 'live', publishers: { llhls: BAD_HEADER } }] },
        'virtualHost.applications[0].publishers.llhls.crossDomains.headers[0].key must be the name of a header: letters, digits and -, without blanks, but got "Bad Name"',
      ],
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

  test.each([{}, 'text', 5, null, true])('%j is refused as a batch', async (body) => {
    expect(await call('POST', '/v1/vhosts', body)).toEqual(error(400, 'Request body must be an array'));
  });

  test('have the requested signed policy, and are refused when a policy is incomplete', async () => {
    const keys = { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' };
    const enables = { providers: 'rtmp', publishers: 'llhls' };
    const refused = (message: string) => ({
      status: 400,
      json: [{ message: expect.stringContaining(message) as string, statusCode: 400 }],
    });
    const create = (policy: object) => call('POST', '/v1/vhosts', [{ ...VHOST, signedPolicy: { ...keys, enables, ...policy } }]);
    expect(await create({ secretKey: '' })).toEqual(refused('signedPolicy.secretKey must not be empty'));
    expect(await create({ enables: { publishers: 'llhls,lhls' } })).toEqual(refused("enables.publishers: unknown name 'lhls'"));
    expect(await create({ enables: { publishers: 'ovt' } })).toEqual(refused("enables.publishers: 'ovt' cannot be protected"));
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default']));
    expect((await create({})).status).toBe(200);
    expect(await call('GET', '/v1/vhosts/v')).toMatchObject({ json: { response: { signedPolicy: { ...keys, enables } } } });
  });

  test('have the requested admission webhooks, and are refused with unusable ones', async () => {
    const enables = { providers: 'rtmp,srt,webrtc', publishers: 'webrtc,llhls,hls,thumbnail,srt' };
    const hooks = { controlServerUrl: 'http://127.0.0.1:1/admission', secretKey: 'k', timeout: 3000, enables };
    const create = (changes: object) => call('POST', '/v1/vhosts', [{ ...VHOST, admissionWebhooks: { ...hooks, ...changes } }]);
    const refused = (message: string) => ({
      status: 400,
      json: [{ message: expect.stringContaining(message) as string, statusCode: 400 }],
    });
    expect(await create({ controlServerUrl: 'ftp://127.0.0.1/' })).toEqual(refused('admissionWebhooks.controlServerUrl must be a URL'));
    expect(await create({ controlServerUrl: '' })).toEqual(refused('admissionWebhooks.controlServerUrl must be a URL'));
    expect(await create({ timeout: 0 })).toEqual(refused('admissionWebhooks.timeout must be a whole number from 1 to 10000'));
    expect(await create({ timeout: 10_001 })).toEqual(refused('admissionWebhooks.timeout must be a whole number from 1 to 10000'));
    expect(await create({ enables: { publishers: 'llhls,lhls' } })).toEqual(refused("enables.publishers: unknown name 'lhls'"));
    expect(await create({ enables: { providers: 'mpegts' } })).toEqual(refused("enables.providers: 'mpegts' cannot be protected"));
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default']));
    expect((await create({})).status).toBe(200);
    expect(await call('GET', '/v1/vhosts/v')).toMatchObject({ json: { response: { admissionWebhooks: hooks } } });
  });

  test('are refused when they ask for DRM, which is not built yet', async () => {
    const drm = { name: 'app', type: 'live', publishers: { llhls: { drm: { enable: true, infoFile: 'drm.xml' } } } };
    const refused = (owner: string, element: string) => ({
      message: `Not implemented yet: ${owner}: ${element} is not built yet, and nothing is served without it`,
      statusCode: 501,
    });
    const withApplication = { ...VHOST, applications: [drm] };
    expect(await call('POST', '/v1/vhosts', [withApplication])).toEqual({
      status: 501,
      json: [refused("application 'v/app'", 'Publishers/LLHLS/DRM')],
    });
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default']));
    await call('POST', '/v1/vhosts', [VHOST]);
    expect(await call('POST', '/v1/vhosts/v/apps', [drm])).toEqual({
      status: 501,
      json: [refused("application 'v/app'", 'Publishers/LLHLS/DRM')],
    });
    await call('POST', '/v1/vhosts/v/apps', [{ name: 'app', type: 'live' }]);
    expect((await call('PATCH', '/v1/vhosts/v/apps/app', { publishers: drm.publishers })).status).toBe(501);
    expect((await call('GET', '/v1/vhosts/v/apps/app')).status).toBe(200);
  });

  test('may contain applications, which the answers do not show', async () => {
    const created = await call('POST', '/v1/vhosts', [{ ...VHOST, applications: [{ name: 'a', type: 'live' }] }]);
    expect(created.json[0].response).toEqual(VHOST);
    // Only this answer contains this member.
    expect(await call('GET', '/v1/vhosts/v')).toEqual(found({ ...VHOST, distribution: '' }));
    expect(await call('GET', '/v1/vhosts/v/apps')).toEqual(found(['a']));
  });

  test('may not contain templates, which belong into the file', async () => {
    const { json } = await call('POST', '/v1/vhosts', [{ ...VHOST, applications: [{ name: '*', type: 'live' }] }]);
    const message = '[Config] application.name must not be "*": templates can only be declared in the configuration file';
    expect(json).toEqual([{ message, statusCode: 400 }]);
    expect((await call('GET', '/v1/vhosts/v')).status).toBe(404);
  });

  test('are refused with an invalid application', async () => {
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

  test('keep the distribution that they were given', async () => {
    const given = { ...VHOST, distribution: 'cdn-1' };
    expect((await call('POST', '/v1/vhosts', [given])).json[0].response).toEqual(given);
    expect(await call('GET', '/v1/vhosts/v')).toEqual(found(given));
  });

  test('of the file show numbers and booleans as such', async () => {
    const { json } = await call('GET', '/v1/vhosts/default');
    expect(json.response).toMatchObject({ distribution: 'ovenmediaengine.com', host: { names: ['*'] }, name: 'default' });
    const app = await call('GET', FILE_APP);
    expect(app.json.response.publishers.llhls.segmentDuration).toBe(6);
    const { encodes } = (await call('GET', `${FILE_APP}/outputProfiles/bypass_stream`)).json.response;
    expect(encodes.videos[0].bypass).toBe(true);
    expect(encodes.audios[0]).toMatchObject({ codec: 'aac', bitrate: 128_000, samplerate: 48_000, channel: 2 });
  });
});

describe('definitions of the configuration file', () => {
  const readOnly = error(403, 'The VirtualHost is read-only: [default]');

  test.each([
    ['DELETE', '/v1/vhosts/default', undefined],
    ['POST', '/v1/vhosts/default/apps', {}],
    ['PATCH', FILE_APP, { name: 'x' }],
    ['DELETE', FILE_APP, undefined],
    ['POST', `${FILE_APP}/outputProfiles`, 'nonsense'],
    ['PATCH', `${FILE_APP}/outputProfiles/nope`, []],
    ['DELETE', `${FILE_APP}/outputProfiles/bypass_stream`, undefined],
    ['PUT', '/v1/vhosts/default', { name: 'default' }],
    ['POST', '/v1/vhosts/default', undefined],
    ['PATCH', '/v1/vhosts/default', {}],
    ['PUT', '/v1/vhosts/default/apps', []],
    ['PUT', FILE_APP, { name: 'app' }],
    ['POST', FILE_APP, {}],
    ['DELETE', `${FILE_APP}/outputProfiles`, undefined],
    ['PUT', `${FILE_APP}/outputProfiles/bypass_stream`, 'nonsense'],
  ])('cannot be changed by %s %s', async (method, path, body) => {
    expect(await call(method, path, body)).toEqual(readOnly);
  });

  test('is found before it is refused, and read before it is found', async () => {
    expect(await call('DELETE', '/v1/vhosts/default/apps/nope')).toEqual(error(404, 'Could not find the application: [default/nope]'));
    expect(await call('PUT', '/v1/vhosts/default/apps/nope', {})).toEqual(error(404, 'Could not find the application: [default/nope]'));
    const malformed = await api.send({ method: 'POST', path: '/v1/vhosts/nope/apps', body: '{' });
    expect(malformed.status).toBe(400);
  });

  test.each(['/v1/vhosts/nope', '/v1/vhosts', '/v1/vhosts/v', '/v1/vhosts/v/apps/a', '/v1/stats/current/vhosts/default', '/health'])(
    'alone is protected: PUT is not a method of %s',
    async (path) => {
      await createApp();
      expect(await call('PUT', path, {})).toEqual(error(404, 'Controller not found'));
    },
  );

  test('allow the termination of their streams', async () => {
    await api.publish('default', 'app', 's');
    expect(await call('DELETE', `${FILE_APP}/streams/s`)).toEqual(done);
  });
});

describe('applications', () => {
  test('have default values for members that are not given', async () => {
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

  test('keep the given members, even null', async () => {
    await call('POST', '/v1/vhosts', [VHOST]);
    const { json } = await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live', providers: null, publishers: { hls: {} } }]);
    expect(json[0].response).not.toHaveProperty('providers');
    expect(json[0].response.publishers).toEqual({ hls: {} });
  });

  test('are created one by one in a batch', async () => {
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
      [409, 'Conflict'],
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
  ])('refuse %j and keep running', async (patch, text) => {
    await createApp();
    const closed = await api.publish('v', 'a', 's');
    expect(await call('PATCH', APP, patch)).toEqual(error(400, text));
    expect(closed).toEqual([]);
  });

  test('refuse invalid settings and keep running', async () => {
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
      { message: 'Conflict', statusCode: 409 },
      { message: 'OK', response: { ...STORED_PROFILE, name: 'q', outputStreamName: 'q' }, statusCode: 200 },
    ]);
    expect(closed).toHaveLength(1);
    expect(await call('GET', PROFILES)).toEqual(found(['default', 'p', 'q']));
    expect(await call('GET', `${PROFILES}/p`)).toEqual(found(STORED_PROFILE));
  });

  test('created simultaneously are all kept', async () => {
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
    [{ ...PROFILE, outputStreamName: 'first' }, '[Config] Duplicate output stream name: first'],
    [{ ...PROFILE, encodes: { videos: [{ name: 'v' }] } }, '[Config] Codec must be specified when bypass is false'],
    [{ ...PROFILE, encodes: { videos: [{ codec: 'h264' }] } }, '[Config] Bitrate must be specified when bypass is false'],
    [{ ...PROFILE, outputStreamName: '${OriginStreamName}' }, '[Config] Duplicate output stream name: ${OriginStreamName}'],
    [{ ...PROFILE, x: 1 }, '[Config] Unknown item found: outputProfile.x'],
  ])('%j is refused, and the valid profiles of the batch are created', async (profile, text) => {
    const first = { ...PROFILE, name: 'first', outputStreamName: 'first' };
    const last = { ...PROFILE, name: 'last', outputStreamName: 'last' };
    const { status, json } = await call('POST', PROFILES, [first, profile, last]);
    expect([status, json.map(({ statusCode }: Answer) => statusCode)]).toEqual([207, [200, 400, 200]]);
    expect(json[1]).toEqual({ message: text, statusCode: 400 });
    expect(await call('GET', PROFILES)).toEqual(found(['default', 'first', 'last']));
  });

  test('a batch without a valid profile leaves the application unchanged', async () => {
    const closed = await api.publish('v', 'a', 's');
    const refused = { message: required, statusCode: 400 };
    expect(await call('POST', PROFILES, [{}, 'text'])).toEqual({ status: 400, json: [refused, refused] });
    expect(await call('POST', PROFILES, [{ ...PROFILE, name: 'default' }])).toEqual({
      status: 409,
      json: [{ message: 'Conflict', statusCode: 409 }],
    });
    expect(await call('POST', PROFILES, [])).toEqual({ status: 200, json: [] });
    expect(closed).toEqual([]);
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

describe('a full disk', () => {
  beforeEach(createApp);

  test.each([
    ['DELETE', '/v1/vhosts/v', undefined, 'Internal Server Error'],
    ['DELETE', APP, undefined, 'Internal Server Error'],
    ['PATCH', APP, { type: 'vod' }, 'Failed to create the application: [v/a]'],
    ['POST', `${APP}/outputProfiles`, [PROFILE], 'Failed to create the application: [v/a]'],
  ])('refuses %s %s, and nothing changes', async (method, path, body, text) => {
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
    expect(vhosts).toEqual({ status: 500, json: [{ message: 'Failed to save the virtual host: [w]', statusCode: 500 }] });
    const apps = await call('POST', '/v1/vhosts/v/apps', [{ name: 'b', type: 'live' }]);
    expect(apps).toEqual({ status: 500, json: [{ message: 'Failed to create the application: [v/b]', statusCode: 500 }] });
    expect(await call('GET', '/v1/vhosts')).toEqual(found(['default', 'v']));
  });
});

test('a created definition is stored as the client sent it', async () => {
  await createApp();
  const kept = api.store.documents.get('v');
  expect(kept?.definition).toEqual(VHOST);
  expect(kept?.applications.map((definition) => definition['name'])).toEqual(['a']);
});

test('a created definition is shown with the types of the contract, for other types in the request', async () => {
  const hooks = { controlServerUrl: 'http://h.test', timeout: '1500', secretKey: 7, enables: { providers: 'rtmp', publishers: '' } };
  const [vhost] = (await call('POST', '/v1/vhosts', [{ name: 5, host: { names: [6] }, admissionWebhooks: hooks, distribution: true }]))
    .json;
  const shown = { admissionWebhooks: { ...hooks, timeout: 1500, secretKey: '7' }, distribution: 'true', host: { names: ['6'] }, name: '5' };
  expect(vhost.response).toEqual(shown);
  expect((await call('GET', '/v1/vhosts/5')).json.response).toEqual(shown);
  const audio = { name: 1, codec: 'opus', bitrate: '128K', samplerate: '48000', channel: '2', bypass: 'false' };
  const profile = { name: 'p', outputStreamName: 2, encodes: { videos: [{ name: 'v', bypass: 'true' }], audios: [audio] } };
  const app = { name: 3, type: 'live', providers: { webrtc: { timeout: '30000' } }, outputProfiles: { outputProfile: [profile] } };
  const [created] = (await call('POST', '/v1/vhosts/5/apps', [app])).json;
  const typed = { name: '1', codec: 'opus', bitrate: 131_072, samplerate: 48_000, channel: 2, bypass: false };
  const typedProfile = { name: 'p', outputStreamName: '2', encodes: { videos: [{ name: 'v', bypass: true }], audios: [typed] } };
  expect(created.response).toMatchObject({
    ...{ name: '3', providers: { webrtc: { timeout: 30_000 } } },
    outputProfiles: { outputProfile: [typedProfile] },
  });
  expect((await call('GET', '/v1/vhosts/5/apps/3/outputProfiles/p')).json.response).toEqual(typedProfile);
  const patched = await call('PATCH', '/v1/vhosts/5/apps/3', { providers: { webrtc: { timeout: '20000' } } });
  expect(patched.json.response.providers.webrtc).toEqual({ timeout: 20_000 });
});
