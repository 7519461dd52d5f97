import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { type ControlAnswer, ControlServer } from '../fakes/control-server.ts';
import { selfSigned } from '../fakes/self-signed.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';
import { whepOffer } from '../harness/whep-offer.ts';
import { publishWhip } from '../harness/whip-encoder.ts';

/** Name of the virtual host with a control server; the open virtual host of the file is reached by its address. */
const HOST = 'localhost';
const SMALL = { width: 320, height: 180, videoKbps: 300 } as const;
const TIMEOUT_MS = 1000;
const PROFILE = {
  name: 'all',
  outputStreamName: '${OriginStreamName}',
  encodes: {
    videos: [{ name: 'video', bypass: true }],
    audios: [{ name: 'audio', bypass: true }],
    images: [{ name: 'image', codec: 'jpeg', width: 160, height: 90, framerate: 1 }],
  },
};
const ENABLES = { providers: 'rtmp,srt,webrtc', publishers: 'webrtc,llhls,hls,thumbnail,srt' };

/** Made in advance, because the control server must answer other requests within `TIMEOUT_MS`. */
const TEN_MEGABYTES = Buffer.from(JSON.stringify({ allowed: true, more: 'x'.repeat(10_000_000) }));

interface Setup {
  readonly server: TestServer;
  readonly control: ControlServer;
  readonly srt: { readonly ingest: number; readonly egress: number };
  /** Publishes `live`. */
  readonly encoder: FfmpegPublisher;
}

let setup: Setup;
const cleanups: (() => unknown)[] = [];

async function start(): Promise<Setup> {
  const [ingest = 0, egress = 0] = await freePorts(2);
  const control = await ControlServer.start();
  const server = await startServer({ segmentDuration: 1, hostNames: ['127.0.0.1'], webrtc: {}, srt: { ingest, egress } });
  const hooks = { controlServerUrl: control.url, secretKey: control.secretKey, timeout: TIMEOUT_MS, enables: ENABLES };
  await server.api.create('/v1/vhosts', [{ name: 'asked', host: { names: [HOST] }, admissionWebhooks: hooks }]);
  const publishers = {
    ...{ llhls: { chunkDuration: 0.5, segmentDuration: 1 }, hls: { segmentDuration: 1 } },
    ...{ thumbnail: {}, webrtc: {}, srt: {} },
  };
  const application = {
    type: 'live',
    providers: { rtmp: {}, srt: {}, webrtc: {} },
    publishers,
    outputProfiles: { outputProfile: [PROFILE] },
  };
  await server.api.create(`${apiPath.vhost('asked')}/apps`, [
    { name: 'app', ...application },
    { name: 'other', ...application },
  ]);
  const encoder = publish({ url: server.rtmp('live', 'app', HOST), ...SMALL });
  await encoder.sent(90);
  return { server, control, srt: { ingest, egress }, encoder };
}

beforeAll(async () => {
  setup = await start();
});

beforeEach(() => {
  setup.control.answer = () => ({ allowed: true });
  setup.control.closing = () => ({});
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

afterAll(async () => {
  await setup?.encoder.stop();
  await setup?.server.close();
  setup?.control.close();
});

/** The answer for URLs that contain `part`; everything else is admitted. */
function say(part: string, answer: ControlAnswer | Promise<ControlAnswer>): void {
  const before = setup.control.answer;
  setup.control.answer = (asked) => (asked.request.url.includes(part) ? answer : before(asked));
}

const NO = { allowed: false, reason: 'you have not paid' };
const rtmp = (stream: string): string => setup.server.rtmp(stream, 'app', HOST);
const http = (stream: string, file: string): string => setup.server.http(stream, file, 'app', HOST);
const signalling = (scheme: 'ws' | 'http', stream: string, query = ''): string =>
  `${scheme}://${HOST}:${setup.server.ports.http}/app/${stream}${query}`;
const srtCall = (port: number, stream: string): string =>
  `srt://127.0.0.1:${port}?streamid=${encodeURIComponent(`asked/app/${stream}`)}&latency=200000`;

async function streams(app = 'app'): Promise<readonly string[]> {
  return await setup.server.api.get(`${apiPath.app('asked', app)}/streams`);
}

async function streamIs(name: string, app = 'app'): Promise<StreamInformation> {
  return await until(`stream ${name}`, async () => {
    const { status } = await setup.server.api.call('GET', apiPath.stream(name, app, 'asked'));
    if (status !== 200) return null;
    const information = await setup.server.api.get<StreamInformation>(apiPath.stream(name, app, 'asked'));
    return information.input.tracks.some(({ type }) => type === 'Video') ? information : null;
  });
}

function encodeRtmp(stream: string): FfmpegPublisher {
  const encoder = publish({ url: rtmp(stream), ...SMALL });
  cleanups.push(() => encoder.kill());
  return encoder;
}

function encodeSrt(stream: string): Child {
  const input = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30'];
  const codec = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30', '-pix_fmt', 'yuv420p'];
  const child = new Child(requireProgram('ffmpeg'), [
    ...['-v', 'warning', '-nostdin', ...input, ...codec, '-f', 'mpegts'],
    srtCall(setup.srt.ingest, stream),
  ]);
  cleanups.push(() => child.kill());
  return child;
}

/** The server's first message after a player or encoder requests an offer; the connection lasts until the end of the test. */
function firstWord(url: string): Promise<{ command?: string; code?: number; error?: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ command?: string; code?: number; error?: string }>();
  const socket = new WebSocket(url);
  cleanups.push(() => socket.close());
  socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
  socket.onerror = () => reject(new Error(`no connection to ${url}`));
  socket.onmessage = ({ data }) => resolve(JSON.parse(`${data}`) as object);
  return promise;
}

async function post(url: string, body = 'v=0'): Promise<{ status: number; text: string; location: string }> {
  const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body });
  return { status: response.status, text: await response.text(), location: response.headers.get('location') ?? '' };
}

/** An offer of a player that receives. */
async function offer(): Promise<string> {
  const { sdp, close } = await whepOffer();
  cleanups.push(close);
  return sdp;
}

async function playlist(url: string): Promise<string> {
  return await until('the playlist', async () => {
    const response = await fetch(url);
    const text = await response.text();
    return response.status === 200 && text.includes('session=') ? text : null;
  });
}

const firstUri = (text: string, url: string): URL => new URL(/^[^#\s]\S*m3u8\S*$/m.exec(text)?.[0] ?? '', url);

describe('publishing', () => {
  test('by RTMP asks the control server, is refused with its reason, redirected, and reported at its end', async () => {
    const { control } = setup;
    const admitted = encodeRtmp('a?token=1');
    expect((await streamIs('a')).input.sourceType).toBe('Rtmp');
    const [opening] = await control.told('/app/a?', 'opening');
    expect(opening).toMatchObject({
      client: { address: expect.stringContaining('127.0.0.1') as string, port: expect.any(Number) as number },
      request: { direction: 'incoming', protocol: 'RTMP', url: `rtmp://${HOST}:${setup.server.ports.rtmp}/app/a?token=1` },
    });
    await admitted.stop();
    const [closing] = await control.told('/app/a?', 'closing');
    expect(closing?.client).toEqual(opening?.client);
    expect(closing?.request).toMatchObject({
      ...opening?.request,
      status: 'closing',
      time: expect.any(String) as string,
      new_url: opening?.request.url,
    });
    say('/b', NO);
    const refused = encodeRtmp('b');
    expect((await refused.child.ended(20_000)).code).not.toBe(0);
    expect(refused.child.stderr).toContain('Access denied: you have not paid.');
    say('/c', { allowed: true, new_url: `rtmp://${HOST}/other/renamed` });
    const moved = encodeRtmp('c');
    expect((await streamIs('renamed', 'other')).input.sourceType).toBe('Rtmp');
    expect(await streams()).toEqual(['live']);
    await moved.stop();
    const [end] = await control.told('/app/c', 'closing');
    expect(end?.request.new_url).toBe(`rtmp://${HOST}:${setup.server.ports.rtmp}/other/renamed`);
    expect(control.about('/app/b', 'closing')).toEqual([]);
    expect(control.about('renamed', 'opening')).toEqual([]);
  });

  test('by SRT', async () => {
    const { control } = setup;
    const admitted = encodeSrt('s1');
    expect((await streamIs('s1')).input.sourceType).toBe('SRT');
    expect(control.about('/s1', 'opening')).toMatchObject([
      { request: { direction: 'incoming', protocol: 'SRT', url: 'srt://asked/app/s1' } },
    ]);
    await admitted.kill();
    say('/s2', NO);
    expect((await encodeSrt('s2').ended(20_000)).code).not.toBe(0);
    say('/s3', { allowed: true, new_url: 'srt://asked/other/renamed3' });
    const moved = encodeSrt('s3');
    expect((await streamIs('renamed3', 'other')).input.sourceType).toBe('SRT');
    await moved.kill();
    await control.told('/s1', 'closing');
    expect((await control.told('/s3', 'closing'))[0]?.request.new_url).toBe('srt://asked/other/renamed3');
    expect(await streams()).not.toContain('s2');
  });

  test('by WHIP and WebSocket', async () => {
    const { control } = setup;
    say('/w2', NO);
    expect(await post(signalling('http', 'w2', '?direction=whip'))).toMatchObject({ status: 401, text: 'you have not paid\n' });
    expect(await firstWord(signalling('ws', 'w2', '?direction=send'))).toEqual({ code: 404, error: 'Cannot create offer' });
    expect((await firstWord(signalling('ws', 'w1', '?direction=send'))).command).toBe('offer');
    say('/w3', { allowed: true, new_url: `http://${HOST}/other/renamed-w` });
    for (const [stream, url, name, app] of [
      ['w1', signalling('http', 'w1', '?direction=whip'), 'w1', 'app'],
      ['w3', signalling('http', 'w3', '?direction=whip'), 'renamed-w', 'other'],
    ] as const) {
      const encoder = await publishWhip({ url });
      cleanups.push(() => encoder.close());
      expect(encoder.status).toBe(201);
      expect((await streamIs(name, app)).input.sourceType).toBe('WebRTC');
      const { status } = await fetch(new URL(encoder.location, url), { method: 'DELETE' });
      expect([stream, status]).toEqual([stream, 200]);
      await control.told(`/app/${stream}?direction=whip`, 'closing');
    }
    expect(control.about('/app/w1?direction=whip', 'opening')).toMatchObject([{ request: { direction: 'incoming', protocol: 'WebRTC' } }]);
  });
});

describe('playing', () => {
  test.each([
    ['LLHLS', 'llhls.m3u8'],
    ['HLS', 'ts:playlist.m3u8'],
  ])('by %s: asked about once, refused with the reason, sent elsewhere at the same address', async (protocol, file) => {
    const { control } = setup;
    await playlist(http('live', file));
    const url = `${http('live', file)}?viewer=${protocol}`;
    expect((await probe(url)).video?.width).toBe(SMALL.width);
    expect(control.about(`?viewer=${protocol}`, 'opening')).toMatchObject([
      { client: { user_agent: expect.stringContaining('Lavf') as string }, request: { direction: 'outgoing', protocol, url } },
    ]);
    say('/denied/', NO);
    const denied = await fetch(http('denied', file));
    expect([denied.status, await denied.text()]).toEqual([401, 'you have not paid\n']);
    say('/wanted/', { allowed: true, new_url: `${http('live', file)}?moved=1` });
    const wanted = `${http('wanted', file)}?again=${protocol}`;
    const text = await playlist(wanted);
    const uri = firstUri(text, wanted);
    expect(uri.pathname).toMatch(/^\/app\/live\//);
    expect((await fetch(uri)).status).toBe(200);
    expect((await probe(wanted)).video?.width).toBe(SMALL.width);
    expect(control.about('moved=1', 'opening')).toEqual([]);
  });

  test('thumbnails, each time', async () => {
    const { control } = setup;
    const image = await until('the image', async () => {
      const response = await fetch(http('live', 'thumb.jpg'));
      return response.status === 200 ? response : null;
    });
    expect(image.headers.get('content-type')).toBe('image/jpeg');
    say('/denied/', NO);
    expect((await fetch(http('denied', 'thumb.jpg'))).status).toBe(401);
    say('/wanted/', { allowed: true, new_url: http('live', 'thumb.jpg') });
    const moved = await fetch(http('wanted', 'thumb.jpg'));
    expect([moved.status, moved.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
    expect(control.about('thumb.jpg', 'opening').at(-1)?.request.protocol).toBe('Thumbnail');
    expect(control.about('thumb.jpg', 'closing')).toEqual([]);
  });

  test('by WebRTC, over WebSocket and WHEP', async () => {
    const { control } = setup;
    say('/denied', NO);
    say('/wanted', { allowed: true, new_url: signalling('ws', 'live') });
    expect(await firstWord(signalling('ws', 'denied'))).toEqual({ code: 404, error: 'Cannot create offer' });
    expect(await post(signalling('http', 'denied', '?direction=whep'))).toMatchObject({ status: 401, text: 'you have not paid\n' });
    for (const stream of ['live', 'wanted']) {
      const url = signalling('ws', stream, '?by=socket');
      const viewer = new SocketViewer();
      cleanups.push(() => viewer.close());
      await viewer.play(url);
      await until('packets', () => viewer.received > 50);
      viewer.close();
      await control.told(`/app/${stream}?by=socket`, 'closing');
      const whep = signalling('http', stream, '?direction=whep');
      const { status, location } = await post(whep, await offer());
      expect([stream, status]).toEqual([stream, 201]);
      expect((await fetch(new URL(location, whep), { method: 'DELETE' })).status).toBe(200);
      await control.told(`/app/${stream}?direction=whep`, 'closing');
    }
    expect(control.about('by=socket', 'opening')).toMatchObject([
      { request: { direction: 'outgoing', protocol: 'WebRTC', url: signalling('ws', 'live', '?by=socket') } },
      { request: { url: signalling('ws', 'wanted', '?by=socket') } },
    ]);
  });

  test('by SRT', async () => {
    const { control } = setup;
    expect((await probe(srtCall(setup.srt.egress, 'live'))).video?.width).toBe(SMALL.width);
    say('/denied', NO);
    await expect(probe(srtCall(setup.srt.egress, 'denied'))).rejects.toThrow('ffprobe');
    say('/wanted', { allowed: true, new_url: 'srt://asked/app/live' });
    expect((await probe(srtCall(setup.srt.egress, 'wanted'))).video?.width).toBe(SMALL.width);
    expect((await control.told('srt://asked/app/wanted', 'closing'))[0]?.request).toMatchObject({
      ...{ direction: 'outgoing', protocol: 'SRT', new_url: 'srt://asked/app/live' },
    });
  });
});

describe('a lifetime', () => {
  const soon = { allowed: true, lifetime: 5000 };

  test('ends the admitted sessions', async () => {
    const { server, control } = setup;
    say('limited', soon);
    const before = Date.now();
    const byRtmp = encodeRtmp('limited');
    const bySrt = encodeSrt('limited-s');
    const socket = new WebSocket(signalling('ws', 'live', '?limited'));
    cleanups.push(() => socket.close());
    const closed = new Promise<string>((resolve) => {
      socket.onclose = ({ reason }) => resolve(reason);
    });
    socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
    const url = `${http('live', 'llhls.m3u8')}?limited`;
    const uri = firstUri(await playlist(url), url);
    expect((await fetch(uri)).status).toBe(200);
    await streamIs('limited');
    expect(await closed).toContain('lifetime');
    expect(Date.now()).toBeGreaterThanOrEqual(before + 5000);
    expect((await byRtmp.child.ended(20_000)).code).not.toBe(0);
    expect((await bySrt.ended(20_000)).code).not.toBe(0);
    await until('the end of the session', async () => (await fetch(uri)).status === 401);
    await control.told('limited', 'closing', 4);
    await until('the log', () =>
      server.log.split('\n').some((line) => line.includes('RTMP connection closed') && line.includes('lifetime')),
    );
  });
});

describe('a control server that', () => {
  const failing: readonly (readonly [what: string, answer: ControlAnswer])[] = [
    ['hangs', null],
    ['answers 500', (response) => void response.writeHead(500).end('{"allowed":true}')],
    ['answers no JSON', (response) => void response.end('allowed')],
    ['allows in a wrong form', { allowed: 'yes' }],
    ['names no stream', { allowed: true, new_url: 'http://localhost/' }],
    ['answers 10 MB', (response) => void response.end(TEN_MEGABYTES)],
    ['hangs up', (response) => void response.destroy()],
  ];

  test.each(failing)('%s refuses its clients, and does not delay other clients', async (_what, answer) => {
    say('trouble', answer);
    const [whep, master, refused] = [
      post(signalling('http', 'live', '?direction=whep&trouble')),
      fetch(`${http('live', 'llhls.m3u8')}?trouble`),
      encodeRtmp('trouble'),
    ];
    // The control server decides about this virtual host, too.
    expect((await fetch(http('live', 'llhls.m3u8'))).status).toBe(200);
    expect((await whep).status).toBe(401);
    expect((await master).status).toBe(401);
    expect((await refused.child.ended(20_000)).code).not.toBe(0);
    expect(refused.child.stderr).toContain('Access denied: the control server gave no usable answer.');
    expect(await streams()).not.toContain('trouble');
    expect(setup.control.about('trouble', 'closing')).toEqual([]);
  });

  test('answers after the client has left gets its closing request', async () => {
    const { control } = setup;
    /** Clients come one after the other: while an encoder starts, an answer to another client would come too late. */
    const leaves = async (part: string, begin: () => () => unknown): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<ControlAnswer>();
      say(part, promise);
      const leave = begin();
      await control.told(part, 'opening');
      await leave();
      resolve({ allowed: true });
      await control.told(part, 'closing');
    };
    await leaves('/late', () => {
      const encoder = encodeRtmp('late');
      return () => encoder.kill();
    });
    await leaves('?late', () => {
      const socket = new WebSocket(signalling('ws', 'live', '?late'));
      socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
      return () => socket.close();
    });
    expect(control.about('late', 'opening').length).toBe(2);
    expect(control.about('late', 'closing').length).toBe(2);
    expect(await streams()).not.toContain('late');
  });
});

test('its figures are in /metrics, and no secrets in the log', async () => {
  const { server, control } = setup;
  say('refused', NO);
  expect((await fetch(`${http('live', 'llhls.m3u8')}?refused`)).status).toBe(401);
  let figures = '';
  await until('the report of a delivery thread', async () => {
    const headers = { authorization: server.api.authorization };
    figures = await (await fetch(`http://127.0.0.1:${server.ports.api}/metrics`, { headers })).text();
    return /^millrace_access_refused_total\{direction="outgoing",protocol="llhls",reason="webhook-refused"\} [1-9]\d*$/m.test(figures);
  });
  expect(figures).toMatch(/^millrace_admission_requests_total\{server="http:\/\/127\.0\.0\.1:\d+\/admission"\} [1-9]\d*$/m);
  expect(figures).toMatch(/^millrace_admission_refused_total\{.*\} [1-9]\d*$/m);
  expect(figures).toMatch(/^millrace_admission_in_flight\{.*\} 0$/m);
  expect(server.log).toContain('viewer refused: the control server does not allow it');
  expect(server.log).not.toContain(control.secretKey);
  expect(server.log).not.toContain('SECRET');
  expect(control.wrong).toBe(0);
});

test('a control server is asked by HTTPS, and only with a trusted certificate', async () => {
  const [trusted, stranger] = [selfSigned('localhost'), selfSigned('localhost')];
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-control-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const authorities = path.join(folder, 'ca.pem');
  writeFileSync(authorities, trusted.cert);
  const server = await startServer({ hostNames: ['127.0.0.1'], env: { NODE_EXTRA_CA_CERTS: authorities } });
  cleanups.push(() => server.close());
  const url = server.http('nobody', 'llhls.m3u8', 'app', HOST);
  for (const certificate of [trusted, stranger]) {
    const control = await ControlServer.start(certificate);
    cleanups.push(() => control.close());
    const hooks = { controlServerUrl: control.url, secretKey: control.secretKey, timeout: TIMEOUT_MS, enables: ENABLES };
    await server.api.create('/v1/vhosts', [{ name: 'asked', host: { names: [HOST] }, admissionWebhooks: hooks }]);
    // The stream does not exist, so an admitted client gets that error.
    const status = certificate === trusted ? 404 : 401;
    await until('the virtual host', async () => (await fetch(url)).status === status);
    const said = await fetch(url);
    expect([said.status, control.asked.length > 0, control.wrong]).toEqual([status, certificate === trusted, 0]);
    if (certificate === trusted) {
      control.answer = () => NO;
      const refused = await fetch(url);
      expect([refused.status, await refused.text()]).toEqual([401, `${NO.reason}\n`]);
    } else await until('the line of the log', () => server.log.includes('self-signed certificate'));
    await server.api.call('DELETE', apiPath.vhost('asked'));
  }
});

test('a stop reports each session as closing, and takes no longer for that', async () => {
  const mine = await start();
  const shared = setup;
  setup = mine;
  cleanups.push(async () => {
    setup = shared;
    await mine.encoder.stop();
    await mine.server.close();
    mine.control.close();
  });
  const { server, control } = mine;
  control.closing = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return {};
  };
  encodeSrt('s');
  await streamIs('s');
  await playlist(`${http('live', 'llhls.m3u8')}?stop`);
  expect((await firstWord(signalling('ws', 'live', '?stop'))).command).toBe('offer');
  expect((await post(signalling('http', 'live', '?direction=whep&stop'), await offer())).status).toBe(201);
  const before = performance.now();
  await server.stop();
  expect(performance.now() - before).toBeLessThan(5000);
  const ended = control.asked
    .filter(({ request }) => request.status === 'closing')
    .map(({ request }) => `${request.direction} ${request.protocol}`);
  expect(ended.sort()).toEqual(['incoming RTMP', 'incoming SRT', 'outgoing LLHLS', 'outgoing WebRTC', 'outgoing WebRTC']);
});
