/** Lines of the log for followers of `GET /v2/logs`. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EventReader } from '../support/event-reader.ts';
import { type ApiHarness, AUTHORIZATION, startApi, TOKEN } from './harness.ts';

const READER = 'a-token-that-only-reads';

let api: ApiHarness;
let readers: EventReader[];

beforeEach(async () => {
  api = await startApi({ accessTokens: [{ name: 'dashboard', value: READER, mayWrite: false }] });
  readers = [];
});
afterEach(async () => {
  for (const reader of readers) reader.close();
  await api.close();
});

async function follow(query = '', headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
  const reader = await EventReader.open(`http://127.0.0.1:${api.port}/v2/logs${query}`, { authorization: AUTHORIZATION, ...headers });
  readers.push(reader);
  return reader;
}

const messages = (reader: EventReader): unknown[] =>
  reader.events.filter(({ event }) => event === 'log').map(({ data }) => data['message']);

test('the newest lines come first, then each new line, filtered by level', async () => {
  for (let n = 0; n < 5; n += 1) api.tail.add(n % 2 === 0 ? 'info' : 'warn', { part: 'rtmp', bytes: n }, `line ${n}`);
  const [all, warnings] = [await follow('?lines=2'), await follow('?level=warn')];
  api.tail.add('info', {}, 'quiet');
  api.tail.add('error', { err: new Error('broken') }, 'the last');
  for (const reader of [all, warnings]) await reader.of('log', ({ message }) => message === 'the last');
  expect(messages(all)).toEqual(['line 3', 'line 4', 'quiet', 'the last']);
  expect(messages(warnings)).toEqual(['line 1', 'line 3', 'the last']);
  const [, third, , , last] = all.events.map(({ data }) => data);
  expect(third).toMatchObject({ level: 'warn', fields: { part: 'rtmp', bytes: 3 } });
  expect(last.fields.err).toContain('Error: broken');
});

test('debug lines are collected only while a client asks for them', async () => {
  api.tail.add('debug', {}, 'before');
  const reader = await follow('?level=debug');
  api.tail.add('debug', {}, 'while');
  await reader.of('log', ({ message }) => message === 'while');
  expect(messages(reader)).toEqual(['while']);
  reader.close();
  await expect
    .poll(() => {
      const { newest } = api.tail;
      api.tail.add('debug', {}, 'after');
      return api.tail.newest - newest;
    })
    .toBe(0);
});

test('a returning follower continues at its position', async () => {
  api.tail.add('info', {}, 'first');
  const id = api.tail.idOf(api.tail.newest);
  api.tail.add('info', {}, 'second');
  const reader = await follow('', { 'last-event-id': id });
  await reader.of('log');
  expect(messages(reader)).toEqual(['second']);
});

test('secrets are removed from each line', async () => {
  api.secrets.learn(['S3CRET-"quoted', 'short']);
  const lines = [
    [{ target: '/v2/x?token=12-S3CRET' }, 'asked for /app/s?key=S3CRET&x=1 by S3CRET-"quoted'],
    [{ url: 'rtsp://me:S3CRET@cam.test/x?pin=S3CRET' }, 'pulls rtsp://me:S3CRET@cam.test/x and is not shortened'],
    [{ body: { streamKey: 'S3CRET', secretKey: 'S3CRET' }, url: 'rtmp://to.test/live/S3CRET' }, 'pushes'],
  ] as const;
  for (const [fields, message] of lines) api.tail.add('info', fields, message);
  const reader = await follow();
  await reader.of('log', ({ message }) => message === 'pushes');
  expect(reader.events.filter(({ data }) => JSON.stringify(data).includes('S3CRET'))).toEqual([]);
  expect(messages(reader)[0]).toBe('asked for /app/s?key=***&x=1 by ***');
  expect(messages(reader)[1]).toBe('pulls rtsp://***@cam.test/x and is not shortened');
});

test('a read-only token is refused with the reason, and an invalid query is refused with its parameter', async () => {
  const refused = await api.send({ path: '/v2/logs', headers: { Authorization: `Bearer ${READER}` } });
  expect([refused.status, JSON.parse(refused.body).message]).toEqual([
    403,
    expect.stringContaining('The access token [dashboard] may only read: GET /v2/logs is not allowed'),
  ]);
  for (const [query, member] of [
    ['level=silent', 'level'],
    ['lines=1001', 'lines'],
    ['lines=-1', 'lines'],
    ['lines=1e2', 'lines'],
  ]) {
    const { status, body } = await api.send({ path: `/v2/logs?${query}`, headers: { Authorization: AUTHORIZATION } });
    expect([query, status, JSON.parse(body).message]).toEqual([query, 400, expect.stringContaining(member ?? '')]);
  }
});

test('a client beyond the limit is answered 503', async () => {
  await follow();
  await follow();
  const { status, body } = await api.send({ path: '/v2/logs', headers: { Authorization: AUTHORIZATION } });
  expect([status, JSON.parse(body).message]).toEqual([503, expect.stringContaining('Too many clients follow the log')]);
});

test('GET /v1/server returns whether the token may write', async () => {
  const asked = async (token: string) => {
    const { body } = await api.send({ path: '/v1/server', headers: { Authorization: `Bearer ${token}` } });
    return JSON.parse(body).response.mayWrite as boolean;
  };
  expect([await asked(READER), await asked(TOKEN)]).toEqual([false, true]);
});
