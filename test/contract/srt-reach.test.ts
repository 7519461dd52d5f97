import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiHarness, startApi } from './harness.ts';

const READER = 'a-token-that-only-reads';
const PATH = '/v2/internals/srt';
let api: ApiHarness;

beforeAll(async () => {
  api = await startApi({ accessTokens: [{ name: 'dashboard', value: READER, mayWrite: false }] });
});
afterAll(() => api.close());

test('a server without SRT ports returns an empty list', async () => {
  const { status, body } = await api.send({ path: `${PATH}?host=127.0.0.1` });
  expect([status, JSON.parse(body).response]).toEqual([200, []]);
});

test('a host may be given with a writing token only, in at most 253 characters', async () => {
  const refused = async (path: string, headers = {}) => {
    const { status, body } = await api.send({ path, headers });
    return [status, JSON.parse(body).message];
  };
  expect(await refused(`${PATH}?host=127.0.0.1`, { Authorization: `Bearer ${READER}` })).toEqual([
    400,
    '[HTTP] Invalid [host] parameter: it must be left out with a token that may only read (400)',
  ]);
  expect(await refused(`${PATH}?host=${'a'.repeat(300)}`)).toEqual([
    400,
    '[HTTP] Invalid [host] parameter: it must be at most 253 characters (400)',
  ]);
  expect((await api.send({ path: PATH, headers: { Authorization: `Bearer ${READER}` } })).status).toBe(200);
});
