/** What holds for every route of the API: authorisation, and the words for a virtual host, application or stream that is not there. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../src/api/routes.ts';
import { type ApiHarness, startApi } from './harness.ts';

const MISSING = {
  vhost: 'Could not find the virtual host: [nope]',
  app: 'Could not find the application: [default/nope]',
  stream: 'Could not find the stream: [default/#default#app/nope]',
} as const;
const PRESENT: Readonly<Record<string, string>> = { vhost: 'default', app: 'app', stream: 'live' };

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
  await api.publish('default', 'app', 'live');
});
afterAll(() => api.close());

/** The path of a route with what is there, except for `missing`. */
function pathOf(pattern: string, missing: string | null): string {
  return pattern.replace(/\{(\w+)\}/g, (_place, name: string) => (name === missing ? 'nope' : (PRESENT[name] ?? 'x')));
}

describe.each(routes.map((route) => ({ ...route, title: `${route.method} ${route.path}` })))('$title', ({ method, path, body }) => {
  const sent = body === undefined ? {} : { body: '{}' };

  test('needs the access token, and says so before it looks at anything', async () => {
    const headers = { Authorization: null };
    const answer = await api.send({ method, path: pathOf(path, 'vhost'), headers, ...(body !== undefined && { body: '{' }) });
    expect(answer.headers.get('www-authenticate')).toBe('Basic realm="Millrace"');
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      401,
      { message: '[HTTP] Authorization header is required to call API (401)', statusCode: 401 },
    ]);
  });

  // By what the path names, whoever looks it up.
  const levels = (['vhost', 'app', 'stream'] as const).filter((name) => path.includes(`{${name}}`));
  test.each(levels)('tells that the %s is not there', async (name) => {
    const answer = await api.send({ method, path: pathOf(path, name), ...sent });
    expect([answer.status, JSON.parse(answer.body)]).toEqual([404, { message: `[HTTP] ${MISSING[name]} (404)`, statusCode: 404 }]);
  });

  if (body === undefined) return;
  test('refuses what is no JSON, whatever the path names', async () => {
    const answer = await api.send({ method, path: pathOf(path, 'vhost'), body: '{"a":' });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).message).toMatch(/^\[HTTP\] \[JSON\] \* Line 1, Column 6\n {2}.+\n \(400\)$/);
  });
});
