import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, expectTypeOf, test } from 'vitest';
import { MillraceClient } from './client.ts';
import { MillraceError, UnreachableError } from './error.ts';
import type { components } from './openapi-types.ts';

let server: Server;
let url: string;
let asked: IncomingMessage | null;
let received: string;
/** The server's treatment of a request. */
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  asked = null;
  server = createServer(async (request, response) => {
    asked = request;
    received = (await request.toArray()).map(String).join('');
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function answers(status: number, body: unknown, headers: Record<string, string> = {}): void {
  answer = (response) => response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
}

const ok = (response?: unknown) => ({ message: 'OK', statusCode: 200, ...(response !== undefined && { response }) });

test('sends names, query, body and token, and opens the envelope', async () => {
  answers(200, ok(['a', 'b']));
  const client = new MillraceClient({ url, token: 's3cret' });
  const path = { vhost: 'default', app: 'größe', stream: 'a+b' };
  const sessions = await client.get('/v1/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions', { path, query: { protocol: 'all' } });
  expectTypeOf(sessions).toEqualTypeOf<string[]>();
  expect(sessions).toEqual(['a', 'b']);
  expect([asked?.method, asked?.url]).toEqual(['GET', '/v1/vhosts/default/apps/gr%C3%B6%C3%9Fe/streams/a+b/sessions?protocol=all']);
  expect(asked?.headers).toMatchObject({ authorization: 'Bearer s3cret', accept: 'application/json' });
  expect(asked?.headers).not.toHaveProperty('content-type');

  answers(200, ok({ id: 'r1' }));
  const task = await client.post('/v1/vhosts/{vhost}/apps/{app}:stopRecord', { path: { vhost: 'v', app: 'a' }, body: { id: 'r1' } });
  expectTypeOf(task).toEqualTypeOf<components['schemas']['RecordTask']>();
  expect([asked?.method, asked?.url, asked?.headers['content-type'], received]).toEqual([
    'POST',
    '/v1/vhosts/v/apps/a:stopRecord',
    'application/json',
    '{"id":"r1"}',
  ]);
});

test('a response without an envelope is returned whole, a response without content is undefined', async () => {
  const client = new MillraceClient({ url });
  answers(200, { status: 'ok' });
  const health = await client.get('/health');
  expectTypeOf(health).toEqualTypeOf<components['schemas']['Health']>();
  expect(health).toEqual({ status: 'ok' });
  expect(asked?.headers).not.toHaveProperty('authorization');
  answers(200, ok());
  const nothing = await client.delete('/v1/vhosts/{vhost}', { path: { vhost: 'v' } });
  expectTypeOf(nothing).toEqualTypeOf<undefined>();
  expect(nothing).toBeUndefined();
});

test('a successful batch returns the created objects', async () => {
  answers(200, [ok({ name: 'a', type: 'live' }), ok({ name: 'b', type: 'live' })]);
  const made = await new MillraceClient({ url }).post('/v1/vhosts/{vhost}/apps', { path: { vhost: 'v' }, body: [] });
  expectTypeOf(made).toEqualTypeOf<components['schemas']['Application'][]>();
  expect(made.map(({ name }) => name)).toEqual(['a', 'b']);
});

test.each([
  [207, [ok({ name: 'a' }), { message: 'Conflict', statusCode: 409 }], 'Conflict'],
  [409, [{ message: 'Conflict', statusCode: 409 }], 'Conflict'],
])('a batch answered with %i rejects with the answer to each item', async (status, items, message) => {
  answers(status, items);
  const call = new MillraceClient({ url }).post('/v1/vhosts/{vhost}/apps', { path: { vhost: 'v' }, body: [] });
  const error = await call.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(MillraceError);
  expect(error).toMatchObject({ status, message, items });
});

test('a failure has the message of the server, its status and its reason', async () => {
  const body = { message: '[HTTP] Could not find the virtual host: [nope] (404)', statusCode: 404 };
  answers(404, body, { 'Millrace-Reason': 'nobody made it' });
  const error = await new MillraceClient({ url }).get('/v1/vhosts/{vhost}', { path: { vhost: 'nope' } }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'MillraceError', status: 404, message: body.message, reason: 'nobody made it', items: [], body });
});

test.each([
  [502, '<html>Bad Gateway</html>'],
  [503, { status: 'starting' }],
  [500, { message: 7 }],
])('a failure without an envelope (%i) is a MillraceError, too', async (status, body) => {
  answers(status, body);
  const error = await new MillraceClient({ url }).get('/v1/vhosts').catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'MillraceError', status, message: `HTTP status ${status}`, reason: null, body });
});

test('returns the ineffective settings', async () => {
  answers(200, ok({}), { 'Millrace-Ineffective': 'providers.rtsp, publishers.webrtc.jitterBuffer' });
  const { ineffective } = await new MillraceClient({ url }).request('get', '/v1/vhosts/v');
  expect(ineffective).toEqual(['providers.rtsp', 'publishers.webrtc.jitterBuffer']);
});

test('a path in the base URL precedes the paths of the API', async () => {
  answers(200, ok([]));
  await new MillraceClient({ url: `${url}/millrace/` }).get('/v1/vhosts');
  expect(asked?.url).toBe('/millrace/v1/vhosts');
});

test('an address without HTTP is refused', () => {
  expect(() => new MillraceClient({ url: 'ftp://127.0.0.1' })).toThrow(TypeError);
  expect(() => new MillraceClient({ url: '127.0.0.1:8081' })).toThrow(TypeError);
});

test('a refused connection is an UnreachableError with its code', async () => {
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const error = await new MillraceClient({ url: `http://127.0.0.1:${port}` }).get('/v1/vhosts').catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UnreachableError);
  expect(error).toMatchObject({ message: `no answer from http://127.0.0.1:${port} (ECONNREFUSED)` });
});

test.each([
  ['is silent', () => {}],
  ['stops in the middle', (response: ServerResponse) => void response.writeHead(200, { 'Content-Length': 100 }).write('{')],
])('a server that %s is awaited up to the timeout of the call, or of the client', async (_what, behaviour) => {
  answer = behaviour;
  await expect(new MillraceClient({ url }).get('/v1/vhosts', { timeout: 50 })).rejects.toThrow(`no answer from ${url} within 50 ms`);
  await expect(new MillraceClient({ url, timeout: 60 }).get('/v1/vhosts')).rejects.toThrow(UnreachableError);
});

test('a broken connection is an UnreachableError', async () => {
  answer = (response) => response.socket?.destroy();
  await expect(new MillraceClient({ url }).get('/v1/vhosts')).rejects.toThrow(UnreachableError);
});

test('the signal of the caller ends a call with its own reason', async () => {
  const abort = new AbortController();
  const reason = new Error('the user went away');
  answer = () => abort.abort(reason);
  await expect(new MillraceClient({ url }).get('/v1/vhosts', { signal: abort.signal })).rejects.toBe(reason);
});

test('required parameters and bodies are checked by the types', () => {
  const client = new MillraceClient({ url });
  const calls = [
    // @ts-expect-error: there is no such path
    () => client.get('/v1/nothing'),
    // @ts-expect-error: nobody deletes this
    () => client.delete('/v1/version'),
    // @ts-expect-error: the name of the virtual host is missing
    () => client.get('/v1/vhosts/{vhost}'),
    // @ts-expect-error: the name of the application is missing
    () => client.get('/v1/vhosts/{vhost}/apps/{app}', { path: { vhost: 'v' } }),
    // @ts-expect-error: the body is missing
    () => client.post('/v1/vhosts'),
    // @ts-expect-error: a virtual host needs its host
    () => client.post('/v1/vhosts', { body: [{ name: 'v' }] }),
    () => client.post('/v1/vhosts', { body: [{ name: 'v', host: { names: ['*'] } }] }),
    // This one may be left out.
    () => client.post('/v1/vhosts/{vhost}/apps/{app}:records', { path: { vhost: 'v', app: 'a' } }),
  ];
  expect(calls).toHaveLength(8);
});
