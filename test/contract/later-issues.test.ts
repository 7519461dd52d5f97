/** Endpoints that a later issue builds: they are found, authorised and looked up, and say so. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../src/api/routes.ts';
import { error } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await startApi();
  await api.publish('default', 'app', 's');
});
afterAll(() => api.close());

describe('endpoints of later issues', () => {
  const later = routes.filter(({ summary }) => summary.startsWith('Not implemented'));
  const fill = (path: string, names: Record<string, string>) => path.replace(/\{(\w+)\}/g, (_, name: string) => names[name] ?? 'x');

  test.each(later.map(({ method, path, summary }) => [method, path, summary] as const))('%s %s', async (method, path, summary) => {
    const body = method === 'GET' || method === 'DELETE' ? undefined : {};
    const what = summary.replace('Not implemented: ', '');
    expect(await api.call(method, fill(path, { vhost: 'default', app: 'app', stream: 's' }), body)).toEqual(
      error(501, `Not implemented yet: ${what}`),
    );
    expect((await api.call(method, fill(path, { vhost: 'nope', app: 'app', stream: 's' }), body)).status).toBe(404);
    expect((await api.call(method, fill(path, { vhost: 'default', app: 'nope', stream: 's' }), body)).status).toBe(404);
    if (path.includes('{stream}')) {
      expect((await api.call(method, fill(path, { vhost: 'default', app: 'app', stream: 'nope' }), body)).status).toBe(404);
    }
  });
});
