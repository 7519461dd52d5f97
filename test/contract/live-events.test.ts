/** The server's events for followers of `GET /v1/events`. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LiveEventSchema } from '../../src/api/v1/live-events.ts';
import { jsonSchemaOf } from '../../src/config/index.ts';
import { IngestRefused } from '../../src/core/ingest.ts';
import { EventReader } from '../support/event-reader.ts';
import { type ApiHarness, AUTHORIZATION, startApi } from './harness.ts';

const READER = 'a-token-that-only-reads';
const DYNAMIC = { name: 'v', host: { names: ['g'] } };
const APP = {
  name: 'a',
  type: 'live',
  providers: { rtmp: {} },
  publishers: { llhls: {}, push: {}, file: {} },
  outputProfiles: {
    outputProfile: [
      { name: 'bypass', outputStreamName: 'out_${OriginStreamName}', encodes: { videos: [{ bypass: true }], audios: [{ bypass: true }] } },
    ],
  },
};

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
  const reader = await EventReader.open(`http://127.0.0.1:${api.port}/v1/events${query}`, { authorization: AUTHORIZATION, ...headers });
  readers.push(reader);
  return reader;
}

/** Types of the events that `act` causes. */
async function told(reader: EventReader, act: () => Promise<unknown>): Promise<string[]> {
  await reader.of('hello');
  const before = reader.events.length;
  await act();
  api.notices.post({ type: 'vhost.deleted', vhost: 'mark' });
  await reader.of('vhost.deleted', ({ id }) => id === api.notices.idOf(api.notices.newest));
  return reader.types.slice(before, -1);
}

test('the answer is an uncached event stream, and starts with the current position', async () => {
  const reader = await follow();
  const { statusCode, headers } = reader.response;
  expect(statusCode).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    server: 'Millrace',
  });
  expect(headers).not.toHaveProperty('content-length');
  expect(await reader.of('hello')).toMatchObject({ id: api.notices.idOf(api.notices.newest), data: { type: 'hello' } });
  expect(reader.retry).toBe(2000);
});

test('HEAD has the headers alone', async () => {
  const answer = await api.send({ method: 'HEAD', path: '/v1/events' });
  expect([answer.status, answer.headers.get('content-type'), answer.body]).toEqual([200, 'text/event-stream; charset=utf-8', '']);
  expect(api.live.size).toBe(0);
});

test('virtual hosts, applications, output profiles and keys when they are created, changed and deleted', async () => {
  const reader = await follow();
  const call = async (method: string, path: string, body?: unknown) => expect((await api.call(method, path, body)).status).toBe(200);
  expect(await told(reader, () => call('POST', '/v1/vhosts', [DYNAMIC]))).toEqual(['vhost.created']);
  expect(await told(reader, () => call('POST', '/v1/vhosts/v/apps', [APP]))).toEqual(['app.created']);
  const profiles = '/v1/vhosts/v/apps/a/outputProfiles';
  const second = { ...APP.outputProfiles.outputProfile[0], name: 'second', outputStreamName: 'second_${OriginStreamName}' };
  expect(await told(reader, () => call('POST', profiles, [second]))).toEqual(['app.changed', 'outputProfile.created']);
  const changed = { outputStreamName: 'other_${OriginStreamName}', encodes: second.encodes };
  expect(await told(reader, () => call('PATCH', `${profiles}/second`, changed))).toEqual(['app.changed', 'outputProfile.changed']);
  expect(await told(reader, () => call('DELETE', `${profiles}/second`))).toEqual(['app.changed', 'outputProfile.deleted']);
  expect(await told(reader, () => api.call('POST', '/v1/vhosts/v/apps/a/publishKeys', { name: 'k' }))).toEqual(['keys.changed']);
  expect(await told(reader, () => call('DELETE', '/v1/vhosts/v/apps/a'))).toEqual(['app.deleted']);
  expect(await told(reader, () => call('DELETE', '/v1/vhosts/v'))).toEqual(['vhost.deleted']);
  expect((await reader.of('outputProfile.changed')).data).toMatchObject({ vhost: 'v', app: 'a', profile: 'second' });
});

test('a stream with its source, its playlists, and the reason of its end', async () => {
  const reader = await follow('?types=streams');
  await api.publish('default', 'app', 'live');
  await reader.of('stream.ready');
  api.orchestrator.application('default', 'app')?.stream('live')?.terminate({ code: 'deleted', detail: 'enough' });
  const ended = await reader.of('stream.ended');
  expect(reader.types).toEqual(['hello', 'stream.created', 'stream.ready', 'stream.ended']);
  const place = { vhost: 'default', app: 'app', stream: 'live' };
  expect((await reader.of('stream.created')).data).toMatchObject({ ...place, sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.7:50412' });
  expect(ended.data).toMatchObject({ ...place, reason: 'deleted', detail: 'enough' });
  expect(ended.data.time).toMatch(/^\d{4}-\d\d-\d\dT/);
});

test('viewers with the reason that ended them', async () => {
  const reader = await follow('?types=session.started,session.ended');
  await api.publish('default', 'app', 'live');
  const stream = api.orchestrator.application('default', 'app')?.stream('live');
  stream?.sessions.open({ kind: 'webrtc', id: 'one', onTerminate: () => undefined });
  const session = stream?.sessions.open({ kind: 'llhls', id: 'two', onTerminate: () => undefined });
  session?.countBytes(500);
  api.clock.advance(3000);
  api.keepAlive();
  session?.close('the player went away');
  expect((await api.call('DELETE', '/v1/vhosts/default/apps/app/streams/live/sessions/one')).status).toBe(200);
  await reader.of('session.ended', ({ session: id }) => id === 'one');
  expect(
    reader.events
      .slice(1)
      .map(({ data: { type, session: id, publisher, reason, seconds, bytes } }) => ({ type, id, publisher, reason, seconds, bytes })),
  ).toEqual([
    { type: 'session.started', id: 'one', publisher: 'webrtc' },
    { type: 'session.started', id: 'two', publisher: 'llhls' },
    { type: 'session.ended', id: 'two', publisher: 'llhls', reason: 'the player went away', seconds: 3, bytes: 500 },
    { type: 'session.ended', id: 'one', publisher: 'webrtc', reason: 'terminated through the API', seconds: 3, bytes: 0 },
  ]);
});

test('recordings, pushes and dumps with their states, without their secrets', async () => {
  const reader = await follow('?types=tasks');
  await api.call('POST', '/v1/vhosts', [DYNAMIC]);
  await api.call('POST', '/v1/vhosts/v/apps', [APP]);
  const app = '/v1/vhosts/v/apps/a';
  const push = { id: 'p', stream: { name: 'out_live' }, protocol: 'rtmp', url: 'rtmp://to.test/live', streamKey: 'SECRET-KEY' };
  expect((await api.call('POST', `${app}:startPush`, push)).status).toBe(200);
  expect((await api.call('POST', `${app}:startRecord`, { id: 'r', stream: { name: 'out_live' } })).status).toBe(200);
  await api.publish('v', 'a', 'live');
  await reader.of('task.changed', ({ task, state }) => task === 'recording' && state === 'recording');
  await reader.of('task.changed', ({ task, state }) => task === 'push' && state === 'pushing');
  const dump = { id: 'd', outputPath: `${api.folder}/dump`, outputStreamName: 'out_live' };
  await api.feed('v', 'a', 'live', 60);
  expect((await api.call('POST', `${app}/streams/live:startHlsDump`, dump)).json).toMatchObject({ statusCode: 200 });
  await reader.of('task.changed', ({ task, state }) => task === 'dump' && state === 'running');
  expect((await api.call('POST', `${app}:stopRecord`, { id: 'r' })).status).toBe(200);
  expect((await api.call('POST', `${app}:stopPush`, { id: 'p' })).status).toBe(200);
  await reader.of('task.changed', ({ task, state }) => task === 'recording' && state === 'stopped');
  await reader.of('task.changed', ({ task, state }) => task === 'push' && state === 'stopped');
  api.orchestrator.application('v', 'a')?.stream('live')?.terminate({ code: 'deleted', detail: 'enough' });
  const { data } = await reader.of('task.changed', ({ task, state }) => task === 'dump' && state === 'completed');
  expect(data).toMatchObject({ vhost: 'v', app: 'a', stream: 'out_live', id: 'd' });
  const states = (kind: string) => reader.events.filter((each) => each.data.task === kind).map((each) => each.data.state);
  expect(states('recording')).toEqual(['ready', 'recording', 'stopping', 'stopped']);
  expect(states('push')).toEqual(['ready', 'connecting', 'pushing', 'stopping', 'stopped']);
  expect(JSON.stringify(reader.events)).not.toContain('SECRET');
});

test('refused publishers with the reason', async () => {
  const reader = await follow('?types=refusals');
  await api.publish('default', 'app', 'live');
  const request = (streamName: string) => ({
    ...({ streamName, provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.8:1', onClose: () => undefined } as const),
  });
  const refuse = (app: string, streamName: string) =>
    expect(() => api.orchestrator.openIngest({ host: '127.0.0.1', app }, request(streamName))).toThrow(IngestRefused);
  refuse('app', 'live');
  refuse('nope', 'x');
  refuse('app', 'bad name?key=SECRET');
  await reader.of('refusal.counted', ({ reason }) => reason === 'invalid-name');
  expect(
    reader.events.slice(1).map(({ data: { vhost, app, stream, reason, direction, protocol, count } }) => ({
      vhost,
      app,
      stream,
      reason,
      direction,
      protocol,
      count,
    })),
  ).toEqual([
    { vhost: 'default', app: 'app', stream: 'live', reason: 'duplicate-name', direction: 'incoming', protocol: 'rtmp', count: 1 },
    { vhost: 'default', app: 'nope', stream: 'x', reason: 'no-application', direction: 'incoming', protocol: 'rtmp', count: 1 },
    { vhost: 'default', app: 'app', stream: undefined, reason: 'invalid-name', direction: 'incoming', protocol: 'rtmp', count: 1 },
  ]);
  expect(JSON.stringify(reader.events)).not.toContain('SECRET');
});

test('channels when they are created, changed and removed', async () => {
  const reader = await follow('?types=channel.created,channel.changed,channel.deleted');
  const apps = '/v1/vhosts/default/apps';
  const names = (await api.call('GET', apps)).json as { response: string[] };
  const ofKind = (key: 'schedule' | 'multiplex') =>
    names.response.find((name) => api.orchestrator.application('default', name)?.definition.config.providers[key] !== undefined);
  const [scheduled, multiplex] = [ofKind('schedule'), ofKind('multiplex')];
  const schedule = { stream: { name: 'tv', videoTrack: true, audioTrack: true }, programs: [] };
  expect((await api.call('POST', `${apps}/${scheduled}/scheduledChannels`, schedule)).status).toBe(201);
  await reader.of('channel.created', ({ kind }) => kind === 'scheduled');
  const program = {
    name: 'p',
    scheduled: '2026-01-01T00:00:00.000+00:00',
    repeat: true,
    items: [{ url: 'file://a.mp4', start: 0, duration: -1 }],
  };
  expect((await api.call('PATCH', `${apps}/${scheduled}/scheduledChannels/tv`, { programs: [program] })).status).toBe(200);
  await reader.of('channel.changed', ({ kind }) => kind === 'scheduled');
  expect((await api.call('DELETE', `${apps}/${scheduled}/scheduledChannels/tv`)).status).toBe(200);
  await reader.of('channel.deleted', ({ kind }) => kind === 'scheduled');
  const mux = {
    outputStream: { name: 'wall' },
    sourceStreams: [{ name: 'in', url: 'stream://default/app/live', trackMap: [{ sourceTrackName: 'video', newTrackName: 'v' }] }],
    playlists: [{ name: 'main', fileName: 'main', renditions: [{ name: 'v', video: 'v' }] }],
  };
  expect((await api.call('POST', `${apps}/${multiplex}/multiplexChannels`, mux)).json).toMatchObject({ statusCode: 201 });
  await reader.of('channel.created', ({ kind }) => kind === 'multiplex');
  expect((await api.call('DELETE', `${apps}/${multiplex}/multiplexChannels/wall`)).status).toBe(200);
  const { data } = await reader.of('channel.deleted', ({ kind }) => kind === 'multiplex');
  expect(data).toMatchObject({ vhost: 'default', app: multiplex, stream: 'wall' });
});

test('a read-only token may follow events', async () => {
  const reader = await follow('', { authorization: `Bearer ${READER}` });
  expect(reader.response.statusCode).toBe(200);
  await api.publish('default', 'app', 'live');
  await reader.of('stream.created');
});

test('only the requested events', async () => {
  const [streams, other, none] = [
    await follow('?types=stream.created&vhost=default&app=app&stream=b'),
    await follow('?app=app2'),
    await follow('?vhost=nope'),
  ];
  await api.publish('default', 'app', 'a');
  await api.publish('default', 'app', 'b');
  api.notices.post({ type: 'session.summary', started: 7, ended: 0 });
  expect((await streams.of('stream.created')).data.stream).toBe('b');
  // A summary without an address passes every filter by address.
  await Promise.all([other, none].map((reader) => reader.of('session.summary')));
  expect([streams.types, other.types, none.types]).toEqual([
    ['hello', 'stream.created'],
    ['hello', 'session.summary'],
    ['hello', 'session.summary'],
  ]);
  const wrong = await api.call('GET', '/v1/events?types=stream');
  expect([wrong.status, (wrong.json as { message: string }).message]).toEqual([400, expect.stringContaining('Invalid [types] parameter')]);
});

test('a returning follower gets the events meanwhile', async () => {
  const first = await follow();
  api.notices.post({ type: 'vhost.created', vhost: 'a' });
  const { id = '' } = await first.of('vhost.created');
  first.close();
  api.notices.post({ type: 'vhost.created', vhost: 'b' });
  api.notices.post({ type: 'vhost.created', vhost: 'c' });
  const second = await follow('', { 'last-event-id': id });
  await second.of('vhost.created', ({ vhost }) => vhost === 'c');
  expect(second.events.map(({ data }) => data.vhost)).toEqual(['b', 'c']);
  const stranger = await follow('', { 'last-event-id': 'another-7' });
  expect((await stranger.of('gap')).data).toEqual({ type: 'gap', missed: null });
});

test('events dropped from the ring are reported as a gap with the position to continue at', async () => {
  for (let n = 0; n < 3; n += 1) api.notices.post({ type: 'vhost.created', vhost: `early${n}` });
  const before = api.notices.idOf(1);
  for (let n = 0; n < 5000; n += 1) api.notices.post({ type: 'vhost.created', vhost: `h${n}` });
  const reader = await follow('', { 'last-event-id': before });
  await reader.of('vhost.created', ({ vhost }) => vhost === 'h4999');
  const [gap, next] = reader.events;
  expect([gap?.event, gap?.data.missed]).toEqual(['gap', 5003 - 4096 - 1]);
  expect(api.notices.numberOf(next?.id ?? '')).toBe((api.notices.numberOf(gap?.id ?? '') ?? 0) + 1);
  expect(reader.events).toHaveLength(4097);
  expect(api.live.missed).toBe(5003 - 4096 - 1);
});

test('at most 64 clients follow the events', async () => {
  for (let n = 0; n < 64; n += 1) await follow();
  const answer = await api.call('GET', '/v1/events');
  expect(answer).toEqual({
    status: 503,
    json: { message: '[HTTP] Too many clients follow the events of the server (503)', statusCode: 503 },
  });
  const metrics = (await api.send({ path: '/metrics' })).body;
  expect(metrics).toContain('\nmillrace_event_followers 64\n');
  expect(metrics).toContain('\nmillrace_event_followers_refused_total 1\n');
  readers.pop()?.close();
  await api.until(() => api.live.size === 63);
  expect((await follow()).response.statusCode).toBe(200);
});

test('every event matches the schema of the OpenAPI document', async () => {
  const { properties } = jsonSchemaOf(LiveEventSchema) as { properties: Record<string, unknown> };
  const reader = await follow();
  await api.publish('default', 'app', 'live');
  api.orchestrator
    .application('default', 'app')
    ?.stream('live')
    ?.sessions.open({ kind: 'webrtc', id: 'one', onTerminate: () => undefined });
  await api.call('POST', '/v1/vhosts', [DYNAMIC]);
  await reader.of('vhost.created');
  expect(reader.events.flatMap(({ data }) => Object.keys(data)).filter((key) => !(key in properties))).toEqual([]);
});

test('the script of the guide follows events, and continues after a lost connection', async () => {
  const page = readFileSync(new URL('../../docs/guide/live-updates.md', import.meta.url), 'utf8');
  const script = /```js\n([\s\S]*?)\nfollow\(/.exec(page)?.[1] ?? '';
  const heard: string[] = [];
  let pauses = 0;
  let isOver = false;
  // Pauses end at once; the test uses them to end the endless loop.
  const pause = (next: () => void): unknown => {
    pauses += 1;
    return isOver ? undefined : setImmediate(next);
  };
  const cut = [new AbortController()];
  const breakable: typeof fetch = (url, init) => fetch(url, { ...init, signal: cut.at(-1)?.signal ?? null });
  const run = new Function('fetch', 'setTimeout', 'console', `${script}; return follow;`)(breakable, pause, { warn: () => undefined });
  void run(`http://127.0.0.1:${api.port}/v1/events?types=config`, READER, ({ type, vhost }: { type: string; vhost?: string }) => {
    heard.push(vhost === undefined ? type : `${type} ${vhost}`);
  });
  await api.until(() => heard.length === 1);
  api.notices.post({ type: 'vhost.created', vhost: 'a' });
  await api.until(() => heard.length === 2);
  cut.push(new AbortController());
  cut[0]?.abort();
  api.notices.post({ type: 'vhost.created', vhost: 'b' });
  await api.until(() => heard.length === 3);
  expect(heard).toEqual(['hello', 'vhost.created a', 'vhost.created b']);
  expect(pauses).toBeGreaterThan(0);
  isOver = true;
  cut.at(-1)?.abort();
});

test('the end of the server sends an event and ends the answer', async () => {
  const reader = await follow();
  await reader.of('hello');
  api.live.close();
  expect(await reader.ended()).toBe('end');
  expect(reader.types).toEqual(['hello', 'end']);
});

test('earlier events come first when the request asks for them, at most the requested count', async () => {
  for (let n = 0; n < 5; n += 1) {
    api.notices.post({ type: 'vhost.created', vhost: `v${n}` });
    api.notices.post({ type: 'vhost.deleted', vhost: `v${n}` });
  }
  const reader = await follow('?types=vhost.deleted&back=2');
  await reader.of('vhost.deleted', ({ vhost }) => vhost === 'v4');
  expect(reader.events.map(({ data }) => data.vhost)).toEqual([undefined, 'v3', 'v4']);
  for (const back of ['4097', '-1', 'x']) {
    const { status, body } = await api.send({ path: `/v1/events?back=${back}`, headers: { Authorization: AUTHORIZATION } });
    expect([status, JSON.parse(body).message]).toEqual([400, expect.stringContaining('back')]);
  }
});
