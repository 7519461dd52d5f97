/** The examples of the OpenAPI document are accepted unchanged; they only name objects that they make themselves. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { REQUEST_EXAMPLES } from '../../src/api/openapi-examples.ts';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
});
afterEach(() => api.close());

const NAMES: Readonly<Record<string, string>> = { vhost: 'mine', app: 'show', profile: 'ladder' };
const APP = '/v1/vhosts/{vhost}/apps/{app}';

test('each example, sent in order, gets its documented status', async () => {
  const statuses: [string, number][] = [];
  for (const [operation, expected] of ORDER) {
    const [method = '', pattern = ''] = operation.split(' ');
    const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => NAMES[name] ?? name);
    const { status, json } = await api.call(method, path, REQUEST_EXAMPLES[operation]);
    statuses.push([operation, status]);
    expect(status, `${operation}: ${JSON.stringify(json)}`).toBe(expected);
  }
  expect(statuses).toEqual(ORDER);
});

const ORDER: readonly [string, number][] = [
  ['POST /v1/vhosts', 200],
  ['POST /v1/vhosts/{vhost}/apps', 200],
  [`PATCH ${APP}`, 200],
  [`POST ${APP}/outputProfiles`, 200],
  [`PATCH ${APP}/outputProfiles/{profile}`, 200],
  [`POST ${APP}/publishKeys`, 201],
  [`POST ${APP}/playTokens`, 201],
  [`POST ${APP}:startRecord`, 200],
  [`POST ${APP}:records`, 200],
  [`POST ${APP}:stopRecord`, 200],
  [`POST ${APP}:startPush`, 200],
  [`POST ${APP}:pushes`, 200],
  [`POST ${APP}:stopPush`, 200],
  ['PATCH /v2/internals/log', 200],
];
