/** Calls whose successful answers are checked against the schema of their route, and the expected answers of tests. */
import { Value } from '@sinclair/typebox/value';
import { expect } from 'vitest';
import { RouteTable } from '../../src/api/route.ts';
import { routes } from '../../src/api/routes.ts';
import type { ApiHarness } from './harness.ts';

/** A virtual host for tests to create, an application in it, and the application declared in the file. */
export const VHOST = { name: 'v', host: { names: ['v.example'] } };
export const APP = '/v1/vhosts/v/apps/a';
export const FILE_APP = '/v1/vhosts/default/apps/app';

// biome-ignore lint/suspicious/noExplicitAny: answers are JSON of any form; what they must hold is asserted
export type Answer = any;

interface CheckedCalls {
  /** As `api.call`, with the check. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; json: Answer }>;
  /** Creates `VHOST` and `APP`. */
  createApp(): Promise<void>;
}

const table = new RouteTable(routes);

/** `api`: returns the server of the running test. */
export function checkedCalls(api: () => ApiHarness): CheckedCalls {
  const call: CheckedCalls['call'] = async (method, path, body) => {
    const answer = await api().call(method, path, body);
    const route = table.find(method, path)?.route;
    const envelopes = Array.isArray(answer.json) ? answer.json : [answer.json];
    for (const envelope of envelopes) {
      if (envelope.statusCode === 200 && route?.response !== undefined) {
        expect([...Value.Errors(route.response, envelope.response)], `${method} ${path}`).toEqual([]);
      }
    }
    return { status: answer.status, json: answer.json };
  };
  const createApp = async (): Promise<void> => {
    expect((await call('POST', '/v1/vhosts', [VHOST])).status).toBe(200);
    expect((await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live' }])).status).toBe(200);
  };
  return { call, createApp };
}

export const error = (statusCode: number, text: string) => ({
  status: statusCode,
  json: { message: `[HTTP] ${text} (${statusCode})`, statusCode },
});
export const done = { status: 200, json: { message: 'OK', statusCode: 200 } };
export const found = (response: unknown) => ({ status: 200, json: { message: 'OK', response, statusCode: 200 } });
