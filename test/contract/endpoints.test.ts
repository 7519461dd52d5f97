/** Rows of the contract's endpoint tables that have no test file of their own: success, each status, and the text of each refusal. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { routes } from '../../src/api/routes.ts';
import { type Answer, APP, checkedCalls, done, error, FILE_APP, found, VHOST } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const { call, createApp } = checkedCalls(() => api);

test('GET /v1/version returns the compatible version, and the version of Millrace', async () => {
  const answer = await call('GET', '/v1/version');
  expect(answer).toEqual(found({ gitVersion: 'v0.1.0-g4ff91095c0ff', millraceVersion: '0.1.0', version: '0.20.0' }));
  // By the contract, startRecord and startPush answer with arrays up to 0.15.3.
  const [major = 0, minor = 0] = answer.json.response.version.split('.').map(Number);
  expect(major > 0 || minor >= 16).toBe(true);
  const task = await call('POST', `${FILE_APP}:startRecord`, { id: 'form', stream: { name: 'later' } });
  expect(Array.isArray(task.json.response)).toBe(false);
});

test('GET /metrics needs a token, and includes the metrics of newcomers and SRT connections', async () => {
  const answer = await api.send({ path: '/metrics' });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  expect(answer.body).toContain(
    'millrace_srt_rtt_seconds{direction="playback",vhost="default",app="app",stream="café",session="7"} 0.025\n',
  );
  expect(answer.body).toContain('# TYPE millrace_newcomers_refused_total counter\nmillrace_newcomers_refused_total 17\n');
  expect(answer.body).toContain('\nmillrace_newcomers_waiting 3\n');
  expect((await api.send({ path: '/metrics', headers: { Authorization: null } })).status).toBe(401);
});

test('GET /openapi.json needs a token, and describes each route', async () => {
  const answer = await api.send({ path: '/openapi.json' });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json;charset=UTF-8']);
  const described = Object.entries<object>(JSON.parse(answer.body).paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
  expect((await api.send({ path: '/openapi.json', headers: { Authorization: null } })).status).toBe(401);
});

describe('recordings', () => {
  const task = { id: 'r', stream: { name: 'later' } };

  test('accept the segmentation rules of the contract, and refuse other values', async () => {
    for (const segmentationRule of ['bogus', 'Continuity', 5]) {
      const text = 'Invalid [segmentationRule] parameter: it must be continuity or discontinuity';
      expect(await call('POST', `${FILE_APP}:startRecord`, { ...task, segmentationRule })).toEqual(error(400, text));
    }
    for (const [given, rule] of [
      ['', 'discontinuity'],
      [null, 'discontinuity'],
      ['discontinuity', 'discontinuity'],
      ['continuity', 'continuity'],
    ]) {
      const { json } = await call('POST', `${FILE_APP}:startRecord`, { ...task, id: `rule ${given}`, segmentationRule: given });
      expect(json.response).toMatchObject({ segmentationRule: rule });
    }
  });

  test('accept only paths below the root path, and each id once', async () => {
    const refused = await call('POST', `${FILE_APP}:startRecord`, { ...task, filePath: '/../x.ts' });
    expect(refused.status).toBe(400);
    expect(refused.json.message).toMatch(/^\[HTTP\] Invalid path: .* contains "\.\." \(400\)$/);
    expect((await call('POST', `${FILE_APP}:startRecord`, task)).json.response).toMatchObject({ id: 'r', state: 'ready' });
    expect(await call('POST', `${FILE_APP}:startRecord`, task)).toEqual(error(409, 'Duplicate ID already exists'));
    expect((await call('POST', `${FILE_APP}:records`, { id: 'r' })).json.response).toHaveLength(1);
    expect((await call('POST', `${FILE_APP}:stopRecord`, { id: 'r' })).json.response).toMatchObject({ state: 'stopping' });
  });

  test.each([
    [{ interval: '10000' }, 'Invalid [interval] parameter: it must be a whole number from 0 on'],
    [{ interval: -5 }, 'Invalid [interval] parameter: it must be a whole number from 0 on'],
    [{ interval: 1.5 }, 'Invalid [interval] parameter: it must be a whole number from 0 on'],
    [{ filepath: '/x.mp4' }, 'Unknown parameter [filepath]: did you mean [filePath]?'],
    [{ filePath: 5 }, 'Invalid [filePath] parameter: it must be a text'],
    [{ stream: { name: 's', variantNames: 'video' } }, 'Invalid [stream.variantNames] parameter: it must be an array of texts'],
    [{ stream: { name: 's', trackIds: ['1'] } }, 'Invalid [stream.trackIds] parameter: it must be an array of whole numbers'],
    [{ stream: { name: 's', VariantNames: [] } }, 'Unknown parameter [stream.VariantNames]: did you mean [stream.variantNames]?'],
  ])('with %j are refused', async (more, text) => {
    expect(await call('POST', `${FILE_APP}:startRecord`, { ...task, id: 'wrong', ...more })).toEqual(error(400, text));
    expect((await call('POST', `${FILE_APP}:records`, { id: 'wrong' })).json.response).toEqual([]);
  });

  test('accept unknown members and null for a default', async () => {
    const body = { ...task, id: 'odd', interval: 0, filePath: null, comment: 'x', stream: { name: 'later', group: 7 } };
    expect((await call('POST', `${FILE_APP}:startRecord`, body)).json.response).toMatchObject({ id: 'odd', state: 'ready' });
    await call('POST', `${FILE_APP}:stopRecord`, { id: 'odd' });
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

  test.each(['/v1/stats/current', '/v2/stats/current'])('%s are summed up for each level', async (root) => {
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

  test('of the whole server exist in version 1 only', async () => {
    expect((await call('GET', '/v1/stats/current')).status).toBe(200);
    expect(await call('GET', '/v2/stats/current')).toEqual(error(404, 'Controller not found'));
  });

  test.each(['/v1/stats/current', '/v2/stats/current'])('%s of a missing virtual host, application or stream are 404', async (root) => {
    expect(await call('GET', `${root}/vhosts/nope`)).toEqual(error(404, 'Could not find the virtual host: [nope]'));
    expect(await call('GET', `${root}/vhosts/default/apps/nope`)).toEqual(error(404, 'Could not find the application: [default/nope]'));
    expect(await call('GET', `${root}/vhosts/default/apps/app/streams/nope`)).toEqual(
      error(404, 'Could not find the stream: [default/#default#app/nope]'),
    );
  });
});

test('queues are listed under both paths', async () => {
  await api.publish('default', 'app', 's');
  const { json } = await call('GET', '/v2/internals/queues');
  expect(json.response.map(({ urn }: Answer) => urn)).toContainEqual(expect.stringMatching(/^mngq:v=default#app:s=\/s:p=imr:r=/));
  expect((await call('GET', '/v1/stats/current/internals/queues')).json.response).toHaveLength(json.response.length);
  expect(await call('GET', '/v1/stats/current/internals')).toEqual(found(['/v1/stats/current/internals/queues']));
});

test('codec modules are listed in the form of the contract', async () => {
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
  test('are reloaded with any request body', async () => {
    expect(await call('POST', '/v1/vhosts:reloadAllCertificates')).toEqual(done);
    await call('POST', '/v1/vhosts', [VHOST]);
    expect(await call('POST', '/v1/vhosts/v:reloadCertificate', { any: 1 })).toEqual(done);
    expect(api.certificates.reloaded).toEqual([['default'], ['v']]);
  });

  test('stay in use when the new files cannot be loaded', async () => {
    api.certificates.broken = true;
    const failed = error(500, 'Internal Server Error');
    expect(await call('POST', '/v1/vhosts:reloadAllCertificates')).toEqual(failed);
    expect(await call('POST', '/v1/vhosts/default:reloadCertificate')).toEqual(failed);
    expect(api.logger.lines.filter(({ level }) => level === 'error')).toHaveLength(2);
  });

  test('need a virtual host, or TLS', async () => {
    expect(await call('POST', '/v1/vhosts/nope:reloadCertificate')).toEqual(error(404, 'Could not find the virtual host: [nope]'));
    expect(await call('POST', '/v1/managers/api:reloadCertificate')).toEqual(error(400, 'TLS is not enabled for the API Server'));
  });
});
