/** Publish keys and play tokens at the real server, over every protocol, with real clients. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';
import { encodeSrt } from '../harness/srt-encoder.ts';
import { whepOffer } from '../harness/whep-offer.ts';
import { publishWhip } from '../harness/whip-encoder.ts';

/** Name of the virtual host with keys; the virtual host of the file is reached by its address. */
const HOST = 'localhost';
const SMALL = { width: 320, height: 180, videoKbps: 300 } as const;
const PROFILE = {
  name: 'all',
  outputStreamName: '${OriginStreamName}',
  encodes: {
    videos: [{ name: 'video', bypass: true }],
    audios: [{ name: 'audio', bypass: true }],
    images: [{ name: 'image', codec: 'jpeg', width: 160, height: 90, framerate: 1 }],
  },
};
const APP = apiPath.app('keyed', 'app');
const EXPIRED = 'an-expired-key-or-token';
const ELSEWHERE = 'a-key-of-another-application';
const CHOSEN = 'a-key-of-somebodys-choice';
type List = 'publishKeys' | 'playTokens';

let server: TestServer;
let srt: { ingest: number; egress: number };
/** Keys from the server, valid in the whole application. */
const good: Record<List, string> = { publishKeys: '', playTokens: '' };
/** Publishes `live` during all tests. */
let encoder: FfmpegPublisher;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Adds a key and returns it. */
async function add(list: List, name: string, more: object = {}, app = APP): Promise<string> {
  const { status, body } = await server.api.call('POST', `${app}/${list}`, { name, ...more });
  expect(status).toBe(201);
  const { key, token } = (body as { response: { key?: string; token?: string } }).response;
  return key ?? token ?? '';
}
const remove = async (list: List, name: string): Promise<void> => {
  expect((await server.api.call('DELETE', `${APP}/${list}/${name}`)).status).toBe(200);
};

beforeAll(async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  srt = { ingest, egress };
  server = await startServer({ segmentDuration: 1, hostNames: ['127.0.0.1'], webrtc: {}, srt });
  await server.api.create('/v1/vhosts', [{ name: 'keyed', host: { names: [HOST] } }]);
  const publishers = {
    ...{ llhls: { chunkDuration: 0.5, segmentDuration: 1 }, hls: { segmentDuration: 1 } },
    ...{ thumbnail: {}, webrtc: {}, srt: {} },
  };
  const providers = { rtmp: {}, srt: {}, webrtc: {} };
  const application = { type: 'live', providers, publishers, outputProfiles: { outputProfile: [PROFILE] } };
  const lists = { publishKeys: [{ name: 'mine', key: CHOSEN }], playTokens: [{ name: 'shows', token: CHOSEN, streams: 'show-*' }] };
  await server.api.create(`${apiPath.vhost('keyed')}/apps`, [
    { ...application, name: 'app', ...lists },
    { ...application, name: 'other' },
  ]);
  for (const list of ['publishKeys', 'playTokens'] as const) {
    good[list] = await add(list, 'good');
    await add(list, 'expired', { key: EXPIRED, expires: '2020-01-31T18:00:00Z' });
    await add(list, 'elsewhere', { key: ELSEWHERE }, apiPath.app('keyed', 'other'));
  }
  encoder = publish({ url: rtmp('live', good.publishKeys), ...SMALL });
  await encoder.sent(90);
});

afterAll(async () => {
  await encoder?.stop();
  await server?.close();
});

const query = (name: string, value: string | null, first = '?'): string => (value === null ? '' : `${first}${name}=${value}`);
const rtmp = (stream: string, key: string | null): string => `${server.rtmp(stream, 'app', HOST)}${query('key', key)}`;
const http = (stream: string, file: string, token: string | null): string =>
  `${server.http(stream, file, 'app', HOST)}${query('token', token)}`;
const signalling = (scheme: 'ws' | 'http', stream: string, rest = ''): string =>
  `${scheme}://${HOST}:${server.ports.http}/app/${stream}${rest}`;
const srtCall = (port: number, streamId: string): string =>
  `srt://127.0.0.1:${port}?streamid=${encodeURIComponent(streamId)}&latency=200000`;

/** Inputs that are refused, with the code in the log. */
const BAD: readonly (readonly [what: string, key: string | null, reason: string])[] = [
  ['missing', null, 'in the request'],
  ['wrong', 'no-key-of-this-application', 'none of this application'],
  ['expired', EXPIRED, 'has expired'],
  ["another application's", ELSEWHERE, 'none of this application'],
];

const streams = (): Promise<readonly string[]> => server.api.get(`${APP}/streams`);

async function streamIs(name: string): Promise<StreamInformation> {
  return await until(`stream ${name}`, async () => {
    const { status, body } = await server.api.call('GET', apiPath.stream(name, 'app', 'keyed'));
    const information = (body as { response?: StreamInformation } | null)?.response;
    return status === 200 && information?.input.tracks.some(({ type }) => type === 'Video') ? information : null;
  });
}

/** The server's first message after a player or encoder requests an offer. */
function firstWord(url: string): Promise<{ command?: string; code?: number; error?: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ command?: string; code?: number; error?: string }>();
  const socket = new WebSocket(url);
  cleanups.push(() => socket.close());
  socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
  socket.onerror = () => reject(new Error(`no connection to ${url}`));
  socket.onmessage = ({ data }) => resolve(JSON.parse(`${data}`) as object);
  return promise;
}

async function post(url: string, { bearer, body = 'v=0' }: { bearer?: string | null; body?: string } = {}) {
  const headers = { 'Content-Type': 'application/sdp', ...(typeof bearer === 'string' && { Authorization: `Bearer ${bearer}` }) };
  const response = await fetch(url, { method: 'POST', headers, body });
  return { status: response.status, challenge: response.headers.get('www-authenticate') };
}

/** An offer of a player that receives. */
async function offer(): Promise<string> {
  const { sdp, close } = await whepOffer();
  cleanups.push(close);
  return sdp;
}

function ffmpegSrt(url: string): Child {
  const child = encodeSrt(url);
  cleanups.push(() => child.kill());
  return child;
}

const DENIED = { status: 401, challenge: 'Bearer' };
const NO_OFFER = { code: 404, error: 'Cannot create offer' };

describe('publishing', () => {
  test('by RTMP requires a key after the stream name, and ffmpeg shows the reason of a refusal', async () => {
    for (const [what, key, reason] of BAD) {
      const refused = publish({ url: rtmp('a', key), ...SMALL });
      cleanups.push(() => refused.kill());
      expect([what, (await refused.child.ended(20_000)).code === 0]).toEqual([what, false]);
      expect([what, refused.child.stderr]).toEqual([what, expect.stringMatching(`Server error: Access denied: .* ${reason}`)]);
      expect(server.log).toMatch(new RegExp(`publisher refused: .* ${reason}`));
    }
    expect(await streams()).toEqual(['live']);
    for (const [stream, key] of [
      ['a', good.publishKeys],
      ['b', CHOSEN],
    ] as const) {
      const admitted = publish({ url: rtmp(stream, key), ...SMALL });
      cleanups.push(() => admitted.stop());
      await admitted.sent(30);
    }
    expect(await streams()).toEqual(['live', 'a', 'b']);
    // As in OBS: the key is part of the stream key, and the server has its own field.
    expect((await streamIs('a')).input.sourceUrl).toMatch(/^TCP:\/\/127\.0\.0\.1:\d+$/);
  });

  test('by SRT needs a key in the stream id, in each of its forms', async () => {
    for (const [what, key] of BAD) {
      const refused = ffmpegSrt(srtCall(srt.ingest, `keyed/app/s0${query('key', key)}`));
      expect([what, (await refused.ended(20_000)).code === 0]).toEqual([what, false]);
      expect([what, refused.stderr]).toEqual([what, expect.stringMatching(/1401|rejected|Input\/output error/)]);
    }
    expect((await streams()).filter((name) => name.startsWith('s'))).toEqual([]);
    const key = good.publishKeys;
    const forms = [`keyed/app/s1?key=${key}`, `#!::h=keyed,r=app/s2?key=${key},m=publish`, `#!::u=keyed/app/s3,s=${key},m=publish`];
    for (const form of forms) ffmpegSrt(srtCall(srt.ingest, form));
    for (const name of ['s1', 's2', 's3']) expect((await streamIs(name)).input.sourceUrl).toMatch(/^SRT:\/\/127\.0\.0\.1:\d+$/);
  });

  test('by WHIP needs a bearer token or a query, by WebSocket a query', async () => {
    const whip = signalling('http', 'w', '?direction=whip');
    for (const [what, key] of BAD) {
      expect([what, await post(whip, { bearer: key })]).toEqual([what, DENIED]);
      expect([what, await post(`${whip}${query('key', key, '&')}`)]).toEqual([what, DENIED]);
      expect([what, await firstWord(signalling('ws', 'w', `?direction=send${query('key', key, '&')}`))]).toEqual([what, NO_OFFER]);
    }
    // A client that may play may not publish.
    expect(await post(whip, { bearer: good.playTokens })).toEqual(DENIED);
    expect((await firstWord(signalling('ws', 'w', `?direction=send&key=${good.publishKeys}`))).command).toBe('offer');
    expect((await post(`${whip}&key=${good.publishKeys}`)).status).not.toBe(401);
    const whipEncoder = await publishWhip({ url: whip, bearer: good.publishKeys });
    cleanups.push(() => whipEncoder.close());
    expect(whipEncoder.status).toBe(201);
    expect((await streamIs('w')).input.sourceType).toBe('WebRTC');
  });

  test('to an application without keys is open as ever', async () => {
    const open = publish({ url: server.rtmp('open'), ...SMALL });
    cleanups.push(() => open.stop());
    await open.sent(60);
    expect((await probe(server.http('open', 'llhls.m3u8'))).video?.width).toBe(SMALL.width);
  });
});

describe('playing', () => {
  test.each([
    ['LL-HLS', 'llhls.m3u8'],
    ['HLS', 'ts:playlist.m3u8'],
  ])('by %s starts with a token and continues with the session of its playlist', async (_name, file) => {
    for (const [what, token] of [...BAD, ['for other streams', CHOSEN] as const]) {
      expect([what, (await fetch(http('live', file, token))).status]).toEqual([what, 401]);
    }
    const url = http('live', file, good.playTokens);
    const master = await until('the playlist', async () => {
      const response = await fetch(url);
      const text = await response.text();
      return response.status === 200 && text.includes('session=') ? text : null;
    });
    expect(master).not.toContain(good.playTokens);
    const uri = new URL(/^[^#\s]\S*m3u8\S*$/m.exec(master)?.[0] ?? '', url);
    expect((await fetch(uri)).status).toBe(200);
    uri.searchParams.delete('session');
    expect((await fetch(uri)).status).toBe(401);
    const headers = { Authorization: `Bearer ${good.playTokens}` };
    expect((await fetch(http('live', file, null), { headers })).status).toBe(200);
    expect((await probe(url)).video?.width).toBe(SMALL.width);
  });

  test('a thumbnail needs a token, each time', async () => {
    for (const [what, token] of BAD) expect([what, (await fetch(http('live', 'thumb.jpg', token))).status]).toEqual([what, 401]);
    const image = await until('the image', async () => {
      const response = await fetch(http('live', 'thumb.jpg', good.playTokens));
      return response.status === 200 ? response : null;
    });
    expect(image.headers.get('content-type')).toBe('image/jpeg');
  });

  test('by WebRTC needs a token, over WebSocket and WHEP', async () => {
    const whep = signalling('http', 'live', '?direction=whep');
    for (const [what, token] of BAD) {
      expect([what, await firstWord(signalling('ws', 'live', query('token', token)))]).toEqual([what, NO_OFFER]);
      expect([what, await post(whep, { bearer: token })]).toEqual([what, DENIED]);
    }
    expect((await post(whep, { bearer: good.playTokens, body: await offer() })).status).toBe(201);
    expect((await post(`${whep}&token=${good.playTokens}`, { body: await offer() })).status).toBe(201);
    const viewer = new SocketViewer();
    cleanups.push(() => viewer.close());
    await viewer.play(signalling('ws', 'live', `?token=${good.playTokens}`));
    await until('packets', () => viewer.received > 50);
  });

  test('by SRT needs a token in the stream id', async () => {
    for (const [what, token] of BAD) {
      await expect(probe(srtCall(srt.egress, `keyed/app/live${query('token', token)}`)), what).rejects.toThrow('ffprobe');
    }
    expect((await probe(srtCall(srt.egress, `keyed/app/live?token=${good.playTokens}`))).video?.width).toBe(SMALL.width);
    expect((await probe(srtCall(srt.egress, `#!::h=keyed,r=app/live,s=${good.playTokens}`))).video?.width).toBe(SMALL.width);
  });
});

describe('a removed key', () => {
  const closings = (what: string): number =>
    server.log.split('\n').filter((line) => line.includes(what) && line.includes('was removed')).length;

  const viewers = (): number => server.log.split('SRT viewer connected').length;

  test('ends its publishers over RTMP, SRT and WHIP, and no other publisher', async () => {
    const key = await add('publishKeys', 'soon-gone');
    const byRtmp = publish({ url: rtmp('r', key), ...SMALL });
    cleanups.push(() => byRtmp.kill());
    const bySrt = ffmpegSrt(srtCall(srt.ingest, `keyed/app/s?key=${key}`));
    const byWhip = await publishWhip({ url: signalling('http', 'p', '?direction=whip'), bearer: key });
    cleanups.push(() => byWhip.close());
    for (const name of ['r', 's', 'p']) await streamIs(name);
    await remove('publishKeys', 'soon-gone');
    await until('the end of the three publications', async () => (await streams()).every((name) => !['r', 's', 'p'].includes(name)));
    expect(await streams()).toContain('live');
    expect((await byRtmp.child.ended(20_000)).code).not.toBe(0);
    expect((await bySrt.ended(20_000)).code).not.toBe(0);
    const told = ['RTMP connection closed', 'SRT connection closed', 'WebRTC publication closed'];
    await until('the log', () => told.every((what) => closings(what) > 0));
    await encoder.sent(10);
  });

  test('ends its players over WebSocket, SRT and LL-HLS', async () => {
    const token = await add('playTokens', 'soon-gone');
    const socket = new WebSocket(signalling('ws', 'live', `?token=${token}`));
    cleanups.push(() => socket.close());
    const offered = Promise.withResolvers<void>();
    const closed = new Promise<string>((resolve) => {
      socket.onclose = ({ reason }) => resolve(reason);
    });
    socket.onmessage = () => offered.resolve();
    socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
    const viewersBefore = viewers();
    const player = new Child(requireProgram('ffmpeg'), [
      ...['-v', 'error', '-nostdin', '-i', srtCall(srt.egress, `keyed/app/live?token=${token}`), '-f', 'null', '-'],
    ]);
    cleanups.push(() => player.kill());
    const playlistOf = async (shown: string): Promise<URL> => {
      const url = http('live', 'llhls.m3u8', shown);
      // Delivery threads learn of a token after the API has answered.
      const master = await until('the playlist', async () => {
        const response = await fetch(url);
        const text = await response.text();
        return response.status === 200 && text.includes('session=') ? text : null;
      });
      return new URL(/^[^#\s]\S*m3u8\S*$/m.exec(master)?.[0] ?? '', url);
    };
    const [mine, others] = [await playlistOf(token), await playlistOf(good.playTokens)];
    expect([(await fetch(mine)).status, (await fetch(others)).status]).toEqual([200, 200]);
    await offered.promise;
    await until('the SRT viewer', () => viewers() > viewersBefore);
    await remove('playTokens', 'soon-gone');
    expect(await closed).toContain('was removed');
    await player.ended(20_000);
    await until('the end of the session', async () => (await fetch(mine)).status === 401);
    expect((await fetch(others)).status).toBe(200);
    await until('the log', () => closings('SRT viewer left') > 0 && closings('viewer session closed') > 0);
  });
});

describe('a removed token', () => {
  test('ends its players over WHEP', async () => {
    const token = await add('playTokens', 'whep');
    const { sdp, accept, received, close } = await whepOffer();
    cleanups.push(close);
    const url = signalling('http', 'live', '?direction=whep');
    const headers = { 'Content-Type': 'application/sdp', Authorization: `Bearer ${token}` };
    const response = await fetch(url, { method: 'POST', headers, body: sdp });
    expect(response.status).toBe(201);
    accept(await response.text());
    await until('packets', () => received() > 50);
    const session = new URL(response.headers.get('location') ?? '', url);
    const viewers = (): Promise<string[]> => server.api.get(`${APP}/streams/live/sessions`);
    expect(await viewers()).toHaveLength(1);
    await remove('playTokens', 'whep');
    await until('the end of the viewer', async () => (await viewers()).length === 0);
    await until('the log', () => /viewer session closed: the key that it came with was removed/.test(server.log));
    expect((await fetch(session, { method: 'DELETE' })).status).toBe(404);
    const before = received();
    await encoder.sent(30);
    // Only data in transit may arrive; a second of the stream would be more.
    expect(received() - before).toBeLessThan(20);
  });

  test.each([
    ['HLS', 'ts:playlist.m3u8'],
    ['LL-HLS', 'llhls.m3u8'],
  ])('ends its sessions of %s, with playlists and segments', async (name, file) => {
    const token = await add('playTokens', name);
    /** A player's requests: a media playlist and a segment. */
    const open = async (shown: string): Promise<{ playlist: URL; segment: URL }> => {
      const url = http('live', file, shown);
      // Delivery threads learn of a token after the API has answered.
      const text = async (from: URL | string): Promise<string | null> => {
        const response = await fetch(from);
        const body = await response.text();
        return response.status === 200 ? body : null;
      };
      const first = (body: string | null, pattern: RegExp): string | undefined => pattern.exec(body ?? '')?.[0];
      const playlist = await until('the playlist', async () => first(await text(url), /^[^#\s]\S*m3u8\S*$/m) ?? null);
      const from = new URL(playlist, url);
      const segment = await until('a segment', async () => first(await text(from), /^[^#\s]\S*\.(?:ts|m4s)\S*$/m) ?? null);
      return { playlist: from, segment: new URL(segment, from) };
    };
    const [mine, others] = [await open(token), await open(good.playTokens)];
    const statuses = async ({ playlist, segment }: typeof mine): Promise<number[]> => [
      (await fetch(playlist)).status,
      (await fetch(segment, { method: 'HEAD' })).status,
    ];
    expect(await statuses(mine)).toEqual([200, 200]);
    await remove('playTokens', name);
    await until('the end of the session', async () => (await fetch(mine.playlist)).status === 401);
    await until('the end of its segments', async () => (await fetch(mine.segment, { method: 'HEAD' })).status === 401);
    expect((await fetch(http('live', file, token))).status).toBe(401);
    expect((await statuses(others))[0]).toBe(200);
  });
});

test('keys survive a restart, are listed with their last use, and appear in no file and no log', async () => {
  const before = await server.api.get<{ name: string; lastUsed?: string }[]>(`${APP}/publishKeys`);
  expect(before.map(({ name, lastUsed }) => [name, lastUsed !== undefined])).toEqual([
    ['mine', true],
    ['good', true],
    ['expired', false],
  ]);
  await until('the use of the token', async () => {
    const tokens = await server.api.get<{ name: string; lastUsed?: string }[]>(`${APP}/playTokens`);
    return tokens.some(({ name, lastUsed }) => name === 'good' && lastUsed !== undefined);
  });
  const used = await server.api.get(`${APP}/publishKeys`);
  const { log } = server;
  await server.restart();
  expect(await server.api.get(`${APP}/publishKeys`)).toEqual(used);
  const folder = path.join(server.state, 'vhosts');
  const files = readdirSync(folder).map((file) => readFileSync(path.join(folder, file), 'utf8'));
  expect(files.join('')).toContain('sha256:');
  for (const secret of [good.publishKeys, good.playTokens, EXPIRED, ELSEWHERE, CHOSEN, 'no-key-of-this-application']) {
    for (const text of [log, server.log, ...files]) expect(text.includes(secret), secret).toBe(false);
  }
  expect((await post(signalling('http', 'w', '?direction=whip'))).status).toBe(401);
  expect((await post(signalling('http', 'w', '?direction=whip'), { bearer: good.publishKeys })).status).not.toBe(401);
});

test('keys of a file are shown by name and read-only in the API', async () => {
  const application = `<PublishKeys><PublishKey><Name>studio</Name><Key>\${env:STUDIO_KEY}</Key></PublishKey></PublishKeys>
    <PlayTokens><PlayToken><Name>site</Name><Token>${CHOSEN}</Token></PlayToken></PlayTokens>`;
  const declared = await startServer({ webrtc: {}, application, env: { STUDIO_KEY: ELSEWHERE } });
  cleanups.push(() => declared.close());
  const app = apiPath.app('default', 'app');
  expect(await declared.api.get(`${app}/publishKeys`)).toEqual([{ name: 'studio' }]);
  const whole = await declared.api.get<object>(app);
  expect(whole).toMatchObject({ publishKeys: [{ name: 'studio' }], playTokens: [{ name: 'site' }] });
  expect(JSON.stringify(whole)).not.toMatch(/sha256|STUDIO_KEY/);
  expect((await declared.api.call('POST', `${app}/playTokens`, { name: 'more' })).status).toBe(403);
  const status = async (query: string): Promise<number> => (await fetch(`${declared.http('none', 'llhls.m3u8')}${query}`)).status;
  expect([await status(''), await status(`?token=${ELSEWHERE}`), await status(`?token=${CHOSEN}`)]).toEqual([401, 401, 404]);
  const encoder = publish({ url: `${declared.rtmp('live')}?key=${ELSEWHERE}`, ...SMALL });
  cleanups.push(() => encoder.stop());
  await encoder.sent(30);
  const refused = publish({ url: declared.rtmp('another'), ...SMALL });
  cleanups.push(() => refused.kill());
  expect((await refused.child.ended(20_000)).code).not.toBe(0);
});
