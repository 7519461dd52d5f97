/** Rules for all routes of the API: authorisation, and the text for a missing virtual host, application or stream. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../src/api/routes.ts';
import { type ApiHarness, startApi } from './harness.ts';

const MISSING = {
  vhost: 'Could not find the virtual host: [nope]',
  app: 'Could not find the application: [default/nope]',
  stream: 'Could not find the stream: [default/#default#app/nope]',
} as const;
/** The contract has one sentence for a missing application and a missing stream or channel here. */
const EITHER = { message: 'Could not find the application or stream (404)', statusCode: 404 };
const TELLS_EITHER: ReadonlySet<string> = new Set([
  'GET /v1/vhosts/{vhost}/apps/{app}/streams/{stream}',
  'GET /v1/vhosts/{vhost}/apps/{app}/scheduledChannels/{channel}',
  'GET /v1/vhosts/{vhost}/apps/{app}/multiplexChannels/{channel}',
]);
const PRESENT: Readonly<Record<string, string>> = { vhost: 'default', app: 'app', stream: 'live' };

/** The endpoints of the contract, by subject. */
const CONTRACT: Readonly<Record<string, readonly string[]>> = {
  '/v1/version': ['GET'],
  '/v1/vhosts': ['GET', 'POST', 'POST :reloadAllCertificates'],
  '/v1/vhosts/{vhost}': ['GET', 'DELETE', 'POST :reloadCertificate'],
  '/v1/managers/api': ['POST :reloadCertificate'],
  '/v1/vhosts/{vhost}/apps': ['GET', 'POST'],
  '/v1/vhosts/{vhost}/apps/{app}': [
    ...['GET', 'PATCH', 'DELETE', 'POST :startRecord', 'POST :stopRecord', 'POST :records'],
    ...['POST :startPush', 'POST :stopPush', 'POST :pushes'],
  ],
  '/v1/vhosts/{vhost}/apps/{app}/outputProfiles': ['GET', 'POST'],
  '/v1/vhosts/{vhost}/apps/{app}/outputProfiles/{profile}': ['GET', 'DELETE'],
  '/v1/vhosts/{vhost}/apps/{app}/streams': ['GET', 'POST'],
  '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}': [
    ...['GET', 'DELETE', 'POST :sendEvent', 'POST :sendSubtitles', 'POST :concludeHlsLive', 'POST :startHlsDump', 'POST :stopHlsDump'],
  ],
  '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions': ['GET'],
  '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions/{session}': ['DELETE'],
  '/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions/{session}': ['GET'],
  '/v1/vhosts/{vhost}/apps/{app}/scheduledChannels': ['GET', 'POST'],
  '/v1/vhosts/{vhost}/apps/{app}/scheduledChannels/{channel}': ['GET', 'PATCH', 'DELETE'],
  '/v1/vhosts/{vhost}/apps/{app}/multiplexChannels': ['GET', 'POST'],
  '/v1/vhosts/{vhost}/apps/{app}/multiplexChannels/{channel}': ['GET', 'DELETE'],
  '/v1/stats/current/vhosts/{vhost}': ['GET'],
  '/v1/stats/current/vhosts/{vhost}/apps/{app}': ['GET'],
  '/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}': ['GET'],
  '/v2/stats/current/vhosts/{vhost}': ['GET'],
  '/v2/stats/current/vhosts/{vhost}/apps/{app}': ['GET'],
  '/v2/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}': ['GET'],
  '/v2/internals/queues': ['GET'],
  '/v2/internals/codecs': ['GET'],
};

test('only the health check needs no token', () => {
  expect(routes.filter(({ open }) => open === true).map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /health']);
});

test('every endpoint of the contract exists', () => {
  const wanted = Object.entries(CONTRACT).flatMap(([path, calls]) =>
    calls.map((call) => {
      const [method, action = ''] = call.split(' ');
      return `${method} ${path}${action}`;
    }),
  );
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  expect(wanted.filter((endpoint) => !known.has(endpoint))).toEqual([]);
});

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
  await api.publish('default', 'app', 'live');
});
afterAll(() => api.close());

/** The path of a route with existing names, except `missing`. */
function pathOf(pattern: string, missing: string | null): string {
  return pattern.replace(/\{(\w+)\}/g, (_place, name: string) => (name === missing ? 'nope' : (PRESENT[name] ?? 'x')));
}

describe.each(routes.filter(({ open }) => open !== true).map((route) => ({ ...route, title: `${route.method} ${route.path}` })))(
  '$title',
  ({ method, path, body }) => {
    const sent = body === undefined ? {} : { body: '{}' };

    test('checks the access token before anything else', async () => {
      const headers = { Authorization: null };
      const answer = await api.send({ method, path: pathOf(path, 'vhost'), headers, ...(body !== undefined && { body: '{' }) });
      expect(answer.headers.get('www-authenticate')).toBe('Basic realm="Millrace"');
      expect([answer.status, JSON.parse(answer.body)]).toEqual([
        401,
        { message: '[HTTP] Authorization header is required to call API (401)', statusCode: 401 },
      ]);
    });

    // The objects in the path, independent of the code that looks them up.
    const levels = (['vhost', 'app', 'stream'] as const).filter((name) => path.includes(`{${name}}`));
    test.each(levels)('answers 404 when the %s does not exist', async (name) => {
      const answer = await api.send({ method, path: pathOf(path, name), ...sent });
      const either = name !== 'vhost' && TELLS_EITHER.has(`${method} ${path}`);
      const missing = either ? EITHER : { message: `[HTTP] ${MISSING[name]} (404)`, statusCode: 404 };
      expect([answer.status, JSON.parse(answer.body)]).toEqual([404, missing]);
    });

    if (body === undefined) return;
    test('refuses a body that is no JSON, even for a missing object', async () => {
      const answer = await api.send({ method, path: pathOf(path, 'vhost'), body: '{"a":' });
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body).message).toMatch(/^\[HTTP\] \[JSON\] \* Line 1, Column 6\n {2}.+\n \(400\)$/);
    });
  },
);
