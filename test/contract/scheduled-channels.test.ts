/** Scheduled channels through the API, by the contract, and their files. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../harness/poll.ts';
import { checkedCalls, done, error, FILE_APP, found } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

const CHANNELS = `${FILE_APP}/scheduledChannels`;
const CREATED = { message: 'Created', statusCode: 201 };
const EITHER = { status: 404, json: { message: 'Could not find the application or stream (404)', statusCode: 404 } };
const PAST = '2025-12-01T00:00:00Z';

let api: ApiHarness;
beforeEach(async () => {
  api = await startApi();
  api.scheduled.media.set('file://a.mp4', { length: 60_000 });
  api.scheduled.media.set('file://b.mp4', { length: 30_000 });
});
afterEach(() => api.close());

const { call } = checkedCalls(() => api);

function tv(members: object = {}): object {
  return { stream: { name: 'tv' }, programs: [{ scheduled: PAST, repeat: true, items: [{ url: 'file://a.mp4' }] }], ...members };
}

function fileOf(name: string): string {
  return join(api.scheduled.folderOf({ vhost: 'default', app: 'app' }), `${name}.sch`);
}

test('a channel exists with its file and stream when its creation is answered, and is gone when its deletion is answered', async () => {
  expect(await call('GET', CHANNELS)).toEqual(found([]));
  expect(await call('POST', CHANNELS, tv())).toEqual({ status: 201, json: CREATED });
  expect(await call('GET', CHANNELS)).toEqual(found(['tv']));
  expect(readFileSync(fileOf('tv'), 'utf8')).toContain('<Item url="file://a.mp4" start="0" duration="-1" fallbackOnErr="true" />');
  await api.scheduled.advance(1000);
  expect(await call('GET', `${FILE_APP}/streams`)).toEqual(found(['tv']));
  const { json } = await call('GET', `${CHANNELS}/tv`);
  const position = (api.clock.now() - Date.parse(PAST)) % 60_000;
  expect(json.response.currentProgram).toEqual({
    ...{ state: 'onair', name: '', repeat: true, scheduled: '2025-12-01T00:00:00.000+00:00' },
    ...{ end: '2262-04-11T23:47:16.854+00:00', duration: -1 },
    currentItem: { url: 'file://a.mp4', start: 0, duration: -1, currentPosition: position },
  });
  const v2 = await call('GET', '/v2/stats/current/vhosts/default/apps/app');
  expect(v2.json.response.providers.connections.scheduled).toBe(1);
  expect(await call('DELETE', `${CHANNELS}/tv`)).toEqual(done);
  expect(existsSync(fileOf('tv'))).toBe(false);
  expect(await call('GET', CHANNELS)).toEqual(found([]));
  expect(await call('GET', `${FILE_APP}/streams`)).toEqual(found([]));
  expect(await call('GET', `${CHANNELS}/tv`)).toEqual(EITHER);
  expect((await call('DELETE', `${CHANNELS}/tv`)).status).toBe(404);
  expect((await call('PATCH', `${CHANNELS}/tv`, {})).status).toBe(404);
});

test('five simultaneous requests for one name create one channel', async () => {
  await api.publish('default', 'app', 'live');
  expect(await call('POST', CHANNELS, tv({ stream: { name: 'live' } }))).toEqual(error(409, "Stream 'live' already exists"));
  const answers = await Promise.all(Array.from({ length: 5 }, () => call('POST', CHANNELS, tv())));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
  expect((await call('POST', CHANNELS, tv())).status).toBe(409);
  expect(await call('GET', `${CHANNELS}/live`)).toEqual(error(404, 'Could not get the scheduled stream'));
  for (const method of ['PATCH', 'DELETE']) {
    expect(await call(method, `${CHANNELS}/live`, method === 'PATCH' ? {} : undefined)).toEqual(
      error(400, 'Stream is not a scheduled stream'),
    );
  }
});

test('a change is answered as in the contract, and simultaneous changes are all kept', async () => {
  await call('POST', CHANNELS, tv());
  const programs = [{ name: 'new', scheduled: PAST, items: [{ url: 'file://b.mp4', fallbackOnErr: false }] }];
  const fallbackProgram = { items: [{ url: 'file://a.mp4', start: 5000 }] };
  const answers = await Promise.all([{ programs }, { fallbackProgram }].map((change) => call('PATCH', `${CHANNELS}/tv`, change)));
  expect(answers).toEqual([0, 1].map(() => ({ status: 200, json: CREATED })));
  const { response } = (await call('GET', `${CHANNELS}/tv`)).json;
  expect(response.programs[0].items).toEqual([{ url: 'file://b.mp4', start: 0, duration: -1, fallbackOnErr: false }]);
  expect(response.fallbackProgram.items).toEqual([{ url: 'file://a.mp4', start: 5000, duration: -1 }]);
  expect(readFileSync(fileOf('tv'), 'utf8')).toContain('fallbackOnErr="false"');
});

test('an invalid change is refused with a reason, and changes nothing', async () => {
  await call('POST', CHANNELS, tv());
  const before = readFileSync(fileOf('tv'), 'utf8');
  expect(await call('PATCH', `${CHANNELS}/tv`, { stream: { name: 'x' } })).toEqual(error(400, 'Stream object could not be patched'));
  expect(await call('PATCH', `${CHANNELS}/tv`, [])).toEqual(error(400, 'Invalid request body'));
  const answer = await api.send({ method: 'PATCH', path: `${CHANNELS}/tv`, body: '{"programs":[{"name":"9"}]}' });
  expect([answer.status, JSON.parse(answer.body).message]).toEqual([400, '[HTTP] Could not patch the schedule (400)']);
  expect(answer.headers.get('millrace-reason')).toBe('Failed to find scheduled object, scheduled is required');
  expect(readFileSync(fileOf('tv'), 'utf8')).toBe(before);
});

test.each([
  ['x', 'Invalid request body'],
  [{}, 'Failed to find Stream object'],
  [tv({ programs: 5 }), 'programs must be an array'],
  [tv({ stream: { name: 'a b' } }), 'Stream name must not be empty or contain / : ? # or white space: [a b]'],
  [tv({ stream: { name: 'ä'.repeat(120) } }), `Stream name must not be empty or contain / : ? # or white space: [${'ä'.repeat(120)}]`],
])('%j makes no channel', async (body, message) => {
  expect(await call('POST', CHANNELS, body)).toEqual(error(400, message));
  expect(await call('GET', CHANNELS)).toEqual(found([]));
});

test('an application without the provider has no channels and refuses to create one', async () => {
  const bare = '/v1/vhosts/default/apps/bare/scheduledChannels';
  const forbidden = { status: 403, json: { message: 'Forbidden', statusCode: 403 } };
  expect(await call('GET', bare)).toEqual(found([]));
  expect(await call('GET', `${bare}/tv`)).toEqual(EITHER);
  expect(await call('POST', bare, tv())).toEqual(forbidden);
  expect(await call('PATCH', `${bare}/tv`, {})).toEqual(forbidden);
  expect(await call('DELETE', `${bare}/tv`)).toEqual(forbidden);
  const { headers } = await api.send({ method: 'POST', path: bare, body: JSON.stringify(tv()) });
  expect(headers.get('millrace-reason')).toBe("the application 'bare' has no Providers/Schedule");
});

test('past programs are neither kept nor shown', async () => {
  const programs = ['2024-01-01T00:00:00Z', PAST, '2026-06-01T02:00:00[Europe/Berlin]'].map((scheduled) => ({ scheduled }));
  await call('POST', CHANNELS, tv({ programs }));
  const { response } = (await call('GET', `${CHANNELS}/tv`)).json;
  expect(response.programs.map(({ scheduled }: { scheduled: string }) => scheduled)).toEqual([PAST, '2026-06-01T02:00:00[Europe/Berlin]']);
  const { end, duration } = response.currentProgram;
  expect([Date.parse(end), duration]).toEqual([Date.UTC(2026, 5, 1), Date.UTC(2026, 5, 1) - Date.parse(PAST)]);
});

test('an end beyond the range of timestamps is shown as the last timestamp', async () => {
  await call('POST', CHANNELS, tv({ programs: [{ scheduled: PAST }, { scheduled: '9999-12-31T23:59:59-23:00' }] }));
  const { end, duration } = (await call('GET', `${CHANNELS}/tv`)).json.response.currentProgram;
  expect([end, duration]).toEqual(['2262-04-11T23:47:16.854+00:00', Date.UTC(10_000, 0, 1, 22, 59, 59) - Date.parse(PAST)]);
});

test('an unwritable folder fails the change, and the channel stays', async () => {
  await call('POST', CHANNELS, tv());
  const folder = dirname(fileOf('tv'));
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  for (const [method, body] of [['POST', tv({ stream: { name: 'other' } })] as const, ['PATCH', { fallbackProgram: {} }] as const]) {
    const name = method === 'POST' ? 'other' : 'tv';
    const { status, json } = await call(method, method === 'POST' ? CHANNELS : `${CHANNELS}/tv`, body);
    expect([status, json.message]).toEqual([500, expect.stringMatching(`^\\[HTTP\\] Could not save the schedule file ${fileOf(name)}`)]);
  }
  const { status, json } = await call('DELETE', `${CHANNELS}/tv`);
  expect([status, json.message]).toEqual([500, expect.stringContaining(`Could not delete the schedule file ${fileOf('tv')}`)]);
  expect(await call('GET', CHANNELS)).toEqual(found(['tv']));
});

test('a channel too large for its file is refused, also by a change', async () => {
  const fallbackProgram = { items: Array.from({ length: 9000 }, (_, index) => ({ url: `file://${'&'.repeat(60)}${index}` })) };
  const { status, json } = await call('POST', CHANNELS, tv({ fallbackProgram }));
  expect([status, json.message]).toEqual([400, expect.stringMatching(/it takes \d+ bytes as a file, at most 2097152 are taken/)]);
  expect(existsSync(fileOf('tv'))).toBe(false);
  await call('POST', CHANNELS, tv());
  const before = readFileSync(fileOf('tv'), 'utf8');
  expect(await call('PATCH', `${CHANNELS}/tv`, { fallbackProgram })).toEqual(error(400, 'Could not patch the schedule'));
  expect(readFileSync(fileOf('tv'), 'utf8')).toBe(before);
});

test('a file written by hand is a channel like any other', async () => {
  mkdirSync(dirname(fileOf('by-hand')), { recursive: true });
  writeFileSync(fileOf('by-hand'), `<Schedule><Program scheduled="${PAST}"><Item url="file://a.mp4"/></Program></Schedule>`);
  await until('the channel in the list', async () => (await call('GET', CHANNELS)).json.response.includes('by-hand'));
  expect((await call('POST', CHANNELS, tv({ stream: { name: 'by-hand' } }))).status).toBe(409);
  expect((await call('DELETE', `${CHANNELS}/by-hand`)).status).toBe(200);
  expect(existsSync(fileOf('by-hand'))).toBe(false);
});

test('a channel survives a restart of its application, ends with its deletion, and leaves its file', async () => {
  const app = '/v1/vhosts/v/apps/a';
  const schedule = { mediaRootDir: api.folder, scheduleFilesDir: api.folder };
  await call('POST', '/v1/vhosts', [{ name: 'v', host: { names: ['v.test'] } }]);
  await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live', providers: { schedule } }]);
  expect((await call('POST', `${app}/scheduledChannels`, tv())).status).toBe(201);
  await api.scheduled.advance(1000);
  expect(await call('GET', `${app}/streams`)).toEqual(found(['tv']));
  expect((await call('PATCH', app, { type: 'live' })).status).toBe(200);
  expect(await call('GET', `${app}/scheduledChannels`)).toEqual(found(['tv']));
  await api.scheduled.advance(1000);
  expect((await call('GET', `${app}/scheduledChannels/tv`)).json.response.currentProgram.state).toBe('onair');
  // The provider is switched off, and on again.
  expect((await call('PATCH', app, { providers: { rtmp: {} } })).status).toBe(200);
  expect((await call('DELETE', app)).status).toBe(200);
  await api.scheduled.advance(2000);
  expect(api.scheduled.playouts.map(({ closed }) => closed)).toEqual(api.scheduled.playouts.map(() => true));
  expect(readdirSync(api.scheduled.folderOf({ vhost: 'v', app: 'a' }))).toEqual(['tv.sch']);
});

test('an application whose folders are not allowed is refused', async () => {
  await api.close();
  api = await startApi({}, 'in-own-folder');
  await call('POST', '/v1/vhosts', [{ name: 'v', host: { names: ['v.test'] } }]);
  for (const key of ['mediaRootDir', 'scheduleFilesDir']) {
    const schedule = { mediaRootDir: api.folder, scheduleFilesDir: api.folder, [key]: '/elsewhere' };
    const { status, json } = await call('POST', '/v1/vhosts/v/apps', [{ name: 'a', type: 'live', providers: { schedule } }]);
    expect([status, json[0].message]).toEqual([
      400,
      expect.stringContaining(`application.providers.schedule.${key}: "/elsewhere" is outside`),
    ]);
  }
});
