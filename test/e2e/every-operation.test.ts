/**
 * Every operation of the OpenAPI document, driven through the typed client against the real server: requests and responses match the
 * document.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import type { LiveEvent, MillraceClient } from '../../src/client/index.ts';
import { JudgedClient } from '../harness/judged-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { ACCESS_TOKEN } from '../harness/server-xml.ts';
import { openSession } from '../harness/viewer.ts';

/** A name that needs escapes in URLs. */
const VHOST = 'größe';
const vhost = { path: { vhost: VHOST } };
const app = { path: { vhost: VHOST, app: 'tv+1' } };
const stream = { path: { ...app.path, stream: 'live' } };

let folder: string;
let server: TestServer;
let judge: JudgedClient;
let client: MillraceClient;
let encoder: FfmpegPublisher | null = null;
let following: Promise<void>;
const stop = new AbortController();

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-operations-'));
  mkdirSync(path.join(folder, 'media'));
  const source = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=30', '-f', 'lavfi', '-i', 'sine=sample_rate=48000', '-t', '3'];
  const encode = [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-g',
    '30',
    '-c:a',
    'aac',
    '-threads',
    '1',
    path.join(folder, 'media/film.mp4'),
  ];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...source, ...encode]);
  const certificate = path.join(ROOT, 'test/fixtures/tls');
  const tls = `<TLS><CertPath>${certificate}/cert.pem</CertPath><KeyPath>${certificate}/key.pem</KeyPath></TLS>`;
  const [rtmp = 0, http = 0, api = 0] = await freePorts(3);
  server = await startServer({
    hostNames: ['file.test'],
    head: `<Storage><AllowedRoots><Path>${folder}</Path></AllowedRoots></Storage>`,
    tls: { rtmp, http, api, host: tls, apiHost: tls },
  });
  judge = await JudgedClient.start(server.api.base, ACCESS_TOKEN);
  client = judge.client;
});

afterAll(async () => {
  stop.abort();
  await encoder?.stop();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const profile = (name: string, suffix = '') => ({
  name,
  outputStreamName: `\${OriginStreamName}${suffix}`,
  encodes: { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] },
});

/** Events during the test. */
const heard: LiveEvent[] = [];

test('the server itself', async () => {
  // Until the end of this file: every event is checked.
  following = (async () => {
    for await (const event of client.events({ signal: stop.signal })) heard.push(event);
  })();
  await until('the first event', () => heard.length > 0);

  expect(await client.get('/v1/version')).toHaveProperty('version');
  expect((await client.get('/health')).status).toBe('ok');
  expect(await client.get('/metrics')).toContain('# TYPE millrace_');
  expect(await client.get('/openapi.json')).toHaveProperty('openapi', '3.1.0');
  await client.get('/v1/stats/current');
  await client.get('/v1/stats/current/internals');
  await client.get('/v1/stats/current/internals/queues');
  await client.get('/v2/internals/queues');
  await client.get('/v2/internals/codecs');
  await client.get('/v2/internals/srt', { query: { host: '127.0.0.1' } });
  await client.get('/v2/internals/history');
  expect(await client.get('/v1/server')).toMatchObject({ readOnlyVirtualHosts: ['default'] });
  expect(await client.post('/v1/server:drain')).toEqual({ draining: true, publishers: 0, sessions: 0 });
  expect(await client.post('/v1/server:resume')).toMatchObject({ draining: false });
  const { level } = await client.get('/v2/internals/log');
  for await (const line of client.logs({ lines: 1 })) {
    judge.judgeEvent('/v2/logs', line);
    if (line.type === 'log') break;
  }
  expect(await client.patch('/v2/internals/log', { body: { level } })).toEqual({ level });
});

test('certificates', async () => {
  await client.post('/v1/vhosts:reloadAllCertificates');
  await client.post('/v1/vhosts/{vhost}:reloadCertificate', { path: { vhost: 'default' } });
  await client.post('/v1/managers/api:reloadCertificate');
});

test('virtual hosts, applications, output profiles and keys are made, shown and changed', async () => {
  const [made] = await client.post('/v1/vhosts', { body: [{ name: VHOST, host: { names: ['127.0.0.1'] } }] });
  expect(made?.name).toBe(VHOST);
  const again = client.post('/v1/vhosts', {
    body: [
      { name: VHOST, host: { names: ['x'] } },
      { name: 'other', host: { names: ['y'] } },
    ],
  });
  await expect(again).rejects.toMatchObject({ status: 207, items: [{ statusCode: 409 }, { statusCode: 200 }] });
  expect(await client.get('/v1/vhosts')).toEqual(['default', VHOST, 'other']);
  expect(await client.get('/v1/vhosts/{vhost}', vhost)).toMatchObject({ name: VHOST, host: { names: ['127.0.0.1'] } });

  const providers = {
    rtmp: {},
    file: { rootPath: path.join(folder, 'media') },
    schedule: { mediaRootDir: path.join(folder, 'media'), scheduleFilesDir: path.join(folder, 'schedules') },
    multiplex: { muxFilesDir: path.join(folder, 'channels') },
  };
  const publishers = { llhls: { segmentDuration: 1 }, file: { rootPath: path.join(folder, 'recordings') }, push: {} };
  const mediaOptions = { subtitles: { enable: true, defaultLabel: 'English', rendition: [{ language: 'en', label: 'English' }] } };
  const outputProfiles = { mediaOptions, outputProfile: [profile('bypass')] };
  const body = [{ name: app.path.app, type: 'live' as const, providers, publishers, outputProfiles }];
  const [created] = await client.post('/v1/vhosts/{vhost}/apps', { ...vhost, body });
  expect(created).toMatchObject({ name: 'tv+1', dynamic: false });
  expect(await client.get('/v1/vhosts/{vhost}/apps', vhost)).toEqual(['tv+1']);
  expect(await client.get('/v1/vhosts/{vhost}/apps/{app}', app)).toMatchObject({ name: 'tv+1' });
  const patched = await client.patch('/v1/vhosts/{vhost}/apps/{app}', { ...app, body: { publishers: { llhls: { segmentCount: 6 } } } });
  expect(patched.publishers).toMatchObject({ llhls: { segmentDuration: 1, segmentCount: 6 } });

  const profiles = '/v1/vhosts/{vhost}/apps/{app}/outputProfiles';
  await client.post(profiles, { ...app, body: [profile('second', '_2')] });
  expect(await client.get(profiles, app)).toEqual(['bypass', 'second']);
  const second = { path: { ...app.path, profile: 'second' } };
  const { name: _, ...replacement } = profile('second', '_two');
  const changed = await client.patch(`${profiles}/{profile}`, { ...second, body: replacement });
  expect(changed.outputStreamName).toBe('${OriginStreamName}_two');
  expect(await client.get(`${profiles}/{profile}`, second)).toEqual(changed);
  await client.delete(`${profiles}/{profile}`, second);

  // An application that has had keys admits no client without a key.
  await client.post('/v1/vhosts/{vhost}/apps', { ...vhost, body: [{ name: 'locked', type: 'live' }] });
  const locked = { path: { ...vhost.path, app: 'locked' } };
  for (const list of ['/v1/vhosts/{vhost}/apps/{app}/publishKeys', '/v1/vhosts/{vhost}/apps/{app}/playTokens'] as const) {
    expect(await client.post(list, { ...locked, body: { name: 'k1' } })).toMatchObject({ name: 'k1' });
    expect(await client.get(list, locked)).toMatchObject([{ name: 'k1' }]);
    await client.delete(`${list}/{key}`, { path: { ...locked.path, key: 'k1' } });
    expect(await client.get(list, locked)).toEqual([]);
  }
});

test('streams, with their operations', async () => {
  encoder = publish({ url: server.rtmp('live', app.path.app), width: 320, height: 180, videoKbps: 200 });
  await encoder.sent(30);
  const streams = '/v1/vhosts/{vhost}/apps/{app}/streams';
  await until('the stream', async () => (await client.get(streams, app)).includes('live'));
  const { input, outputs } = await until('four tracks of the stream', async () => {
    const information = await client.get(`${streams}/{stream}`, stream);
    return information.outputs[0]?.tracks.length === 4 || information.input.tracks.length >= 2 ? information : null;
  });
  expect([input.sourceType, outputs[0]?.name]).toEqual(['Rtmp', 'live']);

  await client.post(streams, { ...app, body: { name: 'film', urls: ['file:///film.mp4'] } });
  const film = { path: { ...app.path, stream: 'film' } };
  expect((await client.get(`${streams}/{stream}`, film)).input.sourceType).toBe('File');
  await client.delete(`${streams}/{stream}`, film);

  const playlist = server.http('live', 'llhls.m3u8', app.path.app);
  await until('a playlist', () => openSession(playlist));
  const query = { protocol: 'llhls' };
  const name = await until(
    'the viewer of the stream',
    async () => (await client.get(`${streams}/{stream}/sessions`, { ...stream, query }))[0],
  );
  const session = { path: { ...stream.path, session: name }, query };
  expect(await client.get('/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions/{session}', session)).toHaveProperty(
    'totalBytesOut',
  );
  expect((await client.get('/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/history', stream)).intervalMs).toBe(10_000);
  const viewers = await client.get('/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions', { ...stream, query });
  expect(viewers).toMatchObject({ total: 1, sessions: [{ session: name, protocol: 'llhls', client: '127.0.0.1' }] });
  await client.delete(`${streams}/{stream}/sessions/{session}`, session);

  const event = { eventFormat: 'id3v2', events: [{ frameType: 'TXXX', info: 'a', data: 'b' }] };
  await client.post(`${streams}/{stream}:sendEvent`, { ...stream, body: event });
  await client.post(`${streams}/{stream}:sendEvents`, { ...stream, body: [event, event] });
  const data = [{ label: 'English', subtitles: [{ text: 'hello' }] }];
  await client.post(`${streams}/{stream}:sendSubtitles`, { ...stream, body: { format: 'webvtt', data } });

  const dump = { id: 'd1', outputStreamName: 'live', outputPath: path.join(folder, 'dump') };
  expect(await client.post(`${streams}/{stream}:startHlsDump`, { ...stream, body: dump })).toEqual(['live']);
  expect(await client.post(`${streams}/{stream}:hlsDumps`, { ...stream, body: { outputStreamName: 'live' } })).toMatchObject([
    { id: 'd1' },
  ]);
  await client.post(`${streams}/{stream}:stopHlsDump`, { ...stream, body: { outputStreamName: 'live', id: 'd1' } });

  const many = await client.get('/v2/vhosts/{vhost}/apps/{app}/streams', { ...app, query: { names: 'live' } });
  expect(many.map(({ information, statistics }) => [information.name, Number(statistics?.totalBytesIn) > 0])).toEqual([['live', true]]);

  for (const version of ['/v1/stats', '/v2/stats'] as const) {
    await client.get(`${version}/current/vhosts/{vhost}`, vhost);
    await client.get(`${version}/current/vhosts/{vhost}/apps/{app}`, app);
    await client.get(`${version}/current/vhosts/{vhost}/apps/{app}/streams/{stream}`, stream);
  }
});

test('recordings and pushes in every state', async () => {
  const at = '/v1/vhosts/{vhost}/apps/{app}';
  const request = { id: 't1', stream: { name: 'live' } };
  expect((await client.post(`${at}:startRecord`, { ...app, body: { id: 't0', stream: { name: 'later' } } })).state).toBe('ready');
  await client.post(`${at}:startRecord`, { ...app, body: request });
  await until('the recording', async () => (await client.get(`${at}:records`, app)).some(({ state }) => state === 'recording'));
  await until('media in its file', async () => (await client.get(`${at}:records`, app)).some(({ recordBytes }) => Number(recordBytes) > 0));
  expect(await client.post(`${at}:records`, { ...app, body: { id: 't1' } })).toHaveLength(1);
  expect(await client.post(`${at}:records`, app)).toHaveLength(2);
  await client.post(`${at}:stopRecord`, { ...app, body: { id: 't1' } });
  const recordings = '/v2/vhosts/{vhost}/apps/{app}/recordings';
  const { id, container } = await until('the recorded file', async () => (await client.get(recordings, app)).recordings[0]);
  expect(await client.get(`${recordings}/playlist.m3u8`, { ...app, query: { stream: 'live' } })).toMatch(/^#EXTM3U/);
  const recording = { path: { ...app.path, recording: id, file: `file.${container}` } };
  expect(await client.get(`${recordings}/{recording}/{file}`, recording)).toHaveProperty('length');

  const [nobody = 0] = await freePorts(1);
  const destination = { protocol: 'rtmp', url: `rtmp://127.0.0.1:${nobody}/app`, streamKey: 'key' };
  await client.post(`${at}:startPush`, { ...app, body: { ...request, ...destination } });
  await client.post(`${at}:startPush`, {
    ...app,
    body: { id: 't2', stream: request.stream, protocol: 'rtmp', url: server.rtmp('', app.path.app).replace(/\/$/, ''), streamKey: 'copy' },
  });
  await until('the push', async () => (await client.get(`${at}:pushes`, app)).some(({ state }) => state === 'pushing'));
  expect(await client.post(`${at}:pushes`, { ...app, body: { id: 't2' } })).toHaveLength(1);
  expect(await client.post(`${at}:pushes`, app)).toHaveLength(2);
  for (const id of ['t1', 't2']) await client.post(`${at}:stopPush`, { ...app, body: { id } });
});

test('channels', async () => {
  const schedules = '/v1/vhosts/{vhost}/apps/{app}/scheduledChannels';
  const channel = { path: { ...app.path, channel: 'channel-4' } };
  const programs = [{ name: 'all day', scheduled: '2025-12-01T00:00:00Z', repeat: true, items: [{ url: 'file://film.mp4' }] }];
  await client.post(schedules, { ...app, body: { stream: { name: channel.path.channel }, programs } });
  expect(await client.get(schedules, app)).toEqual(['channel-4']);
  const onAir = await until('the film', async () => {
    const shown = await client.get(`${schedules}/{channel}`, channel);
    return shown.currentProgram.state === 'onair' ? shown : null;
  });
  expect(onAir.currentProgram.name).toBe('all day');
  await client.patch(`${schedules}/{channel}`, { ...channel, body: { fallbackProgram: { items: [{ url: 'file://film.mp4' }] } } });
  await client.delete(`${schedules}/{channel}`, channel);

  const multiplexes = '/v1/vhosts/{vhost}/apps/{app}/multiplexChannels';
  const both = { path: { ...app.path, channel: 'both' } };
  const trackMap = [
    { sourceTrackName: 'video', newTrackName: 'v', bitrateConf: 200_000, framerateConf: 30 },
    { sourceTrackName: 'audio', newTrackName: 'a' },
  ];
  const sourceStreams = [{ name: 'in', url: `stream://${VHOST}/${app.path.app}/live`, trackMap }];
  const playlists = [{ name: 'all', fileName: 'all', renditions: [{ name: 'only', video: 'v', audio: 'a' }] }];
  await client.post(multiplexes, { ...app, body: { outputStream: { name: 'both' }, sourceStreams, playlists } });
  expect(await client.get(multiplexes, app)).toEqual(['both']);
  await until('the channel plays', async () => (await client.get(`${multiplexes}/{channel}`, both)).state === 'Playing');
  await client.delete(`${multiplexes}/{channel}`, both);
});

test('deletion of all objects', async () => {
  await client.post('/v1/vhosts/{vhost}/apps/{app}/streams/{stream}:concludeHlsLive', stream);
  await client.delete('/v1/vhosts/{vhost}/apps/{app}', app);
  await client.delete('/v1/vhosts/{vhost}', vhost);
  await expect(client.get('/v1/vhosts/{vhost}', vhost)).rejects.toMatchObject({ status: 404 });
});

test('events match the document', async () => {
  await until('the end of the virtual host', () => heard.some(({ type, vhost: name }) => type === 'vhost.deleted' && name === VHOST));
  stop.abort(new Error('enough'));
  await expect(following).rejects.toThrow('enough');
  for (const event of heard) judge.judgeEvent('/v1/events', event);
  for (const type of ['hello', 'app.created', 'stream.ready', 'session.ended', 'task.changed', 'channel.deleted']) {
    expect(heard.map((event) => event.type)).toContain(type);
  }
});

test('refusals of every operation match the document', async () => {
  const before = judge.faults.length;
  for (const operation of judge.all) {
    const [method = '', pattern = ''] = operation.split(' ');
    if (!pattern.includes('{')) continue;
    const body = method === 'post' || method === 'patch' ? { body: {} } : {};
    await expect(client.request(method, pattern.replace(/\{\w+\}/g, 'nope'), body), operation).rejects.toMatchObject({ status: 404 });
  }
  expect(judge.faults.slice(before)).toEqual([]);
});

test('every operation succeeded, and every answer matched the document', () => {
  expect(judge.faults).toEqual([]);
  expect(judge.all.filter((operation) => !judge.succeeded.has(operation))).toEqual([]);
  expect(judge.all.length).toBeGreaterThan(60);
});
