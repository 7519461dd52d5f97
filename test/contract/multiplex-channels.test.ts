/** Multiplex channels beyond the recorded requests: refusals, reports, and faults of the disk. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { APP, checkedCalls, done, error, FILE_APP, found } from './checked-calls.ts';
import { type ApiHarness, startApi } from './harness.ts';

let api: ApiHarness;
const { call, createApp } = checkedCalls(() => api);
beforeAll(async () => {
  api = await startApi();
  await createApp();
});
afterAll(() => api.close());

const CHANNELS = `${FILE_APP}/multiplexChannels`;
const MADE = { status: 201, json: { message: 'Created', statusCode: 201 } };
const NONE = { status: 404, json: { message: 'Could not find the application or stream (404)', statusCode: 404 } };

function definition(name: string, stream = 'nobody'): object {
  const trackMap = [{ sourceTrackName: 'bypass_video', newTrackName: 'v', bitrateConf: 1_000_000, framerateConf: 29.97 }];
  return { outputStream: { name }, sourceStreams: [{ name: 'in', url: `stream://default/app/${stream}`, trackMap }] };
}

test('an application without the provider has no channels, and refuses to create one', async () => {
  const forbidden = { status: 403, json: { message: 'Forbidden', statusCode: 403 } };
  const noApplication = error(404, 'Could not get the multiplex application');
  expect(await call('GET', `${APP}/multiplexChannels`)).toEqual(noApplication);
  expect(await call('GET', `${APP}/multiplexChannels/ch`)).toEqual(noApplication);
  expect(await call('POST', `${APP}/multiplexChannels`, [])).toEqual(forbidden);
  expect(await call('DELETE', `${APP}/multiplexChannels/ch`)).toEqual(forbidden);
  const { headers } = await api.send({ method: 'POST', path: `${APP}/multiplexChannels`, body: '[]' });
  expect(headers.get('millrace-reason')).toBe("the application 'a' has no Providers/Multiplex");
});

test('a channel without a name, or that does not exist', async () => {
  expect(await call('GET', `${CHANNELS}/`)).toEqual(error(400, 'Invalid stream name'));
  expect(await call('DELETE', `${CHANNELS}/`)).toEqual(error(400, 'Invalid stream name'));
  expect(await call('GET', `${CHANNELS}/none`)).toEqual(NONE);
  expect(await call('DELETE', `${CHANNELS}/none`)).toEqual(error(404, 'Could not get the multiplex stream <none>'));
});

test.each([
  [[], 'Invalid request body'],
  [null, 'Invalid request body'],
  [{ ...definition('../../etc/x') }, 'outputStream/name must not be empty, too long or contain / : ? # or white space: "../../etc/x"'],
  [{ ...definition('ch'), OutputStream: {} }, 'Unknown parameter [OutputStream]: did you mean [outputStream]?'],
  [definition('self', 'self'), 'sourceStreams/url: the channel would be made of itself: default/app/self <- default/app/self'],
])('%j is refused: %s', async (body, message) => {
  expect(await call('POST', CHANNELS, body)).toEqual(error(400, message));
  expect(await call('GET', CHANNELS)).toEqual(found([]));
});

test('a channel is created, shown, replaced while it waits, and deleted with its file', async () => {
  expect(await call('POST', CHANNELS, definition('ch'))).toEqual(MADE);
  const { json } = await call('GET', `${CHANNELS}/ch`);
  expect(json.response).toEqual({
    outputStream: { bypassTranscoder: true, name: 'ch' },
    pullingMessage: 'Multiplex Channel : #default#app/ch: Wait for stream nobody',
    sourceStreams: (definition('ch') as { sourceStreams: unknown }).sourceStreams,
    state: 'Pulling',
  });
  expect(await call('POST', CHANNELS, definition('ch', 'another'))).toEqual(MADE);
  expect((await call('GET', `${CHANNELS}/ch`)).json.response.pullingMessage).toContain('Wait for stream another');
  const file = join(api.folder, 'mux', 'ch.mux');
  expect(existsSync(file)).toBe(true);
  expect(await call('DELETE', `${CHANNELS}/ch`)).toEqual(done);
  expect(existsSync(file)).toBe(false);
  expect(await call('DELETE', `${CHANNELS}/ch`)).toEqual(error(404, 'Could not get the multiplex stream <ch>'));
});

test('a channel too large for its file is refused and not created', async () => {
  const large = definition('large') as { sourceStreams: object[] };
  const body = { ...large, sourceStreams: [{ ...large.sourceStreams[0], name: '&'.repeat(500_000) }] };
  const { status, json } = await call('POST', CHANNELS, body);
  expect([status, json.message]).toEqual([400, expect.stringMatching(/it takes 25\d{5} bytes as a file, at most 2097152 are taken/)]);
  expect(await call('GET', `${CHANNELS}/large`)).toEqual(NONE);
});

test('the name of an inbound stream is refused', async () => {
  await api.publish('default', 'app', 'live');
  expect(await call('POST', CHANNELS, definition('live'))).toEqual(error(409, "Stream 'live' already exists"));
  expect(await call('POST', CHANNELS, definition('copy', 'live'))).toEqual(MADE);
  expect((await call('GET', `${CHANNELS}/copy`)).json.response.state).toBe('Playing');
  await api.feed('default', 'app', 'live', 2);
  expect((await call('GET', `${FILE_APP}/streams`)).json.response).toEqual(['live', 'copy']);
  expect((await call('GET', `${FILE_APP}/streams/copy`)).json.response.input).toMatchObject({
    sourceType: 'Multiplex',
    tracks: [{ name: 'v' }, {}],
  });
  expect((await call('GET', '/v2/stats/current/vhosts/default/apps/app')).json.response.providers.connections.multiplex).toBe(1);
  expect(await call('POST', CHANNELS, definition('copy', 'live'))).toEqual(error(409, "Stream 'copy' already exists"));
  expect(await call('DELETE', `${CHANNELS}/copy`)).toEqual(done);
  expect((await call('GET', `${FILE_APP}/streams`)).json.response).toEqual(['live']);
});

test('an application is refused with its channel folder outside of the allowed folders', async () => {
  const guarded = await startApi({}, 'in-own-folder');
  try {
    const application = { name: 'out', type: 'live', providers: { multiplex: { muxFilesDir: '/etc/cron.d' } } };
    await guarded.call('POST', '/v1/vhosts', [{ name: 'v', host: { names: ['v.example'] } }]);
    const { status, json } = await guarded.call('POST', '/v1/vhosts/v/apps', [application]);
    expect(status).toBe(400);
    expect(JSON.stringify(json)).toContain('application.providers.multiplex.muxFilesDir: \\"/etc/cron.d\\" is outside of the folders');
  } finally {
    await guarded.close();
  }
});

test('channels of files exist from the first request after their application was created', async () => {
  const folder = join(api.folder, 'early');
  mkdirSync(folder);
  const tracks = '<TrackMap><Track><SourceTrackName>a</SourceTrackName><NewTrackName>b</NewTrackName></Track></TrackMap>';
  const source = `<SourceStream><Name>in</Name><Url>stream://default/app/nobody</Url>${tracks}</SourceStream>`;
  const text = `<Multiplex><OutputStream><Name>old</Name></OutputStream><SourceStreams>${source}</SourceStreams></Multiplex>`;
  writeFileSync(join(folder, 'old.mux'), text);
  const application = { name: 'early', type: 'live', providers: { multiplex: { muxFilesDir: folder } } };
  expect((await call('POST', '/v1/vhosts/v/apps', [application])).status).toBe(200);
  const channels = '/v1/vhosts/v/apps/early/multiplexChannels';
  const answers = await Promise.all([call('GET', channels), call('GET', `${channels}/old`), call('DELETE', `${channels}/old`)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(answers[0].json.response).toEqual(['old']);
  expect(await call('GET', channels)).toEqual(found([]));
});

test('a disk error changes nothing', async () => {
  const folder = join(api.folder, 'mux');
  expect(await call('POST', CHANNELS, definition('kept'))).toEqual(MADE);
  rmSync(folder, { recursive: true });
  // A file in place of the folder prevents the write.
  writeFileSync(folder, '');
  expect(await call('POST', CHANNELS, definition('full'))).toEqual(error(500, 'Internal Server Error'));
  expect(await call('DELETE', `${CHANNELS}/kept`)).toEqual(error(500, 'Internal Server Error'));
  expect((await call('GET', CHANNELS)).json.response).toEqual(['kept']);
  rmSync(folder);
  mkdirSync(folder);
  expect(await call('DELETE', `${CHANNELS}/kept`)).toEqual(done);
});
