import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket as ClientSocket } from 'ws';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { type Policy, signUrl } from '../../src/access/signed-url.ts';
import { FakeWebrtcPublisher } from '../fakes/webrtc-publisher.ts';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { runCommand, startServer, type TestServer } from '../harness/server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';
import { encodeSrt } from '../harness/srt-encoder.ts';
import { TlsSignalling } from '../harness/tls-client.ts';
import { whepOffer } from '../harness/whep-offer.ts';
import { publishWhip } from '../harness/whip-encoder.ts';

const KEYS = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };
/** Name of the protected virtual host; the open virtual host of the file is reached by its address. */
const HOST = 'localhost';
const HOUR = 3_600_000;
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

let server: TestServer;
let srt: { ingest: number; egress: number };
/** Publishes `live` during all tests. */
let encoder: FfmpegPublisher;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

beforeAll(async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  srt = { ingest, egress };
  server = await startServer({ segmentDuration: 1, hostNames: ['127.0.0.1'], webrtc: {}, srt });
  const enables = { providers: 'rtmp,srt,webrtc', publishers: 'webrtc,llhls,hls,thumbnail,srt' };
  await server.api.create('/v1/vhosts', [{ name: 'signed', host: { names: [HOST] }, signedPolicy: { ...KEYS, enables } }]);
  const publishers = {
    ...{ llhls: { chunkDuration: 0.5, segmentDuration: 1 }, hls: { segmentDuration: 1 } },
    ...{ thumbnail: {}, webrtc: {}, srt: {} },
  };
  const providers = { rtmp: {}, srt: {}, webrtc: {} };
  const application = { name: 'app', type: 'live', providers, publishers, outputProfiles: { outputProfile: [PROFILE] } };
  await server.api.create(`${apiPath.vhost('signed')}/apps`, [application]);
  encoder = publish({ url: signed(rtmp('live')), ...SMALL });
  await encoder.sent(90);
});

afterAll(async () => {
  await encoder?.stop();
  await server?.close();
});

function signed(url: string, changes: Partial<Policy> = {}, secretKey = KEYS.secretKey): string {
  return signUrl(url, { url_expire: Date.now() + HOUR, ...changes }, { ...KEYS, secretKey });
}

const rtmp = (stream: string): string => server.rtmp(stream, 'app', HOST);
const http = (stream: string, file: string): string => server.http(stream, file, 'app', HOST);
const signalling = (scheme: 'ws' | 'http', stream: string, query = ''): string =>
  `${scheme}://${HOST}:${server.ports.http}/app/${stream}${query}`;
const srtSigned = (stream: string): string => `srt://signed/app/${stream}`;

/** The URL for ffmpeg, with the URL of a stream as stream id. */
function srtCall(port: number, url: string): string {
  return `srt://127.0.0.1:${port}?streamid=${encodeURIComponent(url.slice('srt://'.length))}&latency=200000`;
}

/** Invalid variants of a signed URL; `other` is the URL of another stream. */
function spoiled(url: string, other: string): readonly (readonly [what: string, url: string])[] {
  const signature = (whole: string): string => whole.slice(whole.indexOf('signature='));
  const unsigned = (whole: string): string => whole.slice(0, whole.indexOf('signature=') - 1);
  return [
    ['missing', url],
    ['expired', signed(url, { url_expire: Date.now() - 1 })],
    ['not yet', signed(url, { url_activate: Date.now() + HOUR })],
    ['wrong key', signed(url, {}, 'another')],
    ['tampered', `${unsigned(signed(url, { url_expire: Date.now() + 2 * HOUR }))}&${signature(signed(url))}`],
    ['replayed', signed(other).replace(/\/app\/[^/?]+/, /\/app\/[^/?]+/.exec(url)?.[0] ?? '')],
    ['another address', signed(url, { allow_ip: '192.0.2.0/24' })],
    ['another client', signed(url, { real_ip: '192.0.2.0/24' })],
  ];
}

const good: Partial<Policy> = { allow_ip: '127.0.0.0/8', real_ip: '127.0.0.1', url_activate: 1 };

async function streams(): Promise<readonly string[]> {
  return await server.api.get(`${apiPath.app('signed', 'app')}/streams`);
}

async function streamIs(name: string): Promise<StreamInformation> {
  return await until(`stream ${name}`, async () => {
    const { status } = await server.api.call('GET', apiPath.stream(name, 'app', 'signed'));
    if (status !== 200) return null;
    const information = await server.api.get<StreamInformation>(apiPath.stream(name, 'app', 'signed'));
    return information.input.tracks.some(({ type }) => type === 'Video') ? information : null;
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

async function post(url: string, body = 'v=0'): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body });
  return { status: response.status, text: await response.text() };
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

describe('publishing', () => {
  test('by RTMP requires a signed URL, and ffmpeg shows the reason of a refusal', async () => {
    for (const [what, url] of spoiled(rtmp('a'), rtmp('b'))) {
      const refused = publish({ url, ...SMALL });
      cleanups.push(() => refused.kill());
      expect([what, (await refused.child.ended(20_000)).code === 0]).toEqual([what, false]);
      expect([what, refused.child.stderr]).toEqual([what, expect.stringContaining('Server error: Access denied: the ')]);
    }
    expect(await streams()).toEqual(['live']);
    expect(server.log).toMatch(/publisher refused: the URL is not signed/);
    expect(server.log).not.toContain('signature=');
    expect(server.log).not.toContain(KEYS.secretKey);
    const admitted = publish({ url: signed(rtmp('a'), good), ...SMALL });
    cleanups.push(() => admitted.stop());
    await admitted.sent(30);
    expect(await streams()).toEqual(['live', 'a']);
  });

  test('by SRT is for signed stream ids', async () => {
    for (const [what, url] of spoiled(srtSigned('b'), srtSigned('c'))) {
      const refused = ffmpegSrt(srtCall(srt.ingest, url));
      expect([what, (await refused.ended(20_000)).code === 0]).toEqual([what, false]);
    }
    expect(await streams()).not.toContain('b');
    ffmpegSrt(srtCall(srt.ingest, signed(srtSigned('b'), good)));
    expect((await streamIs('b')).input.sourceType).toBe('SRT');
  });

  test('by WHIP and WebSocket is for signed URLs', async () => {
    const [whip, other] = [signalling('http', 'w', '?direction=whip'), signalling('http', 'x', '?direction=whip')];
    for (const [what, url] of spoiled(whip, other)) expect([what, (await post(url)).status]).toEqual([what, 401]);
    const ingest = signalling('ws', 'w', '?direction=send');
    for (const [what, url] of spoiled(ingest, signalling('ws', 'x', '?direction=send'))) {
      expect([what, await firstWord(url)]).toEqual([what, { code: 404, error: 'Cannot create offer' }]);
    }
    // A client that may play may not publish.
    expect((await post(`${signed(signalling('http', 'w'))}&direction=whip`)).status).toBe(401);
    expect((await firstWord(signed(ingest, good))).command).toBe('offer');
    const whipEncoder = await publishWhip({ url: signed(whip, good) });
    cleanups.push(() => whipEncoder.close());
    expect(whipEncoder.status).toBe(201);
    expect((await streamIs('w')).input.sourceType).toBe('WebRTC');
  });

  test('to a virtual host without a policy is open as ever', async () => {
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
  ])('by %s starts with a signed URL and continues with the session of its playlist', async (_name, file) => {
    for (const [what, url] of spoiled(http('live', file), http('other', file)))
      expect([what, (await fetch(url)).status]).toEqual([what, 401]);
    const url = signed(http('live', file), good);
    const master = await until('the playlist', async () => {
      const response = await fetch(url);
      const text = await response.text();
      return response.status === 200 && text.includes('session=') ? text : null;
    });
    const uri = new URL(/^[^#\s]\S*m3u8\S*$/m.exec(master)?.[0] ?? '', url);
    expect((await fetch(uri)).status).toBe(200);
    uri.searchParams.delete('session');
    expect((await fetch(uri)).status).toBe(401);
    expect((await probe(url)).video?.width).toBe(SMALL.width);
  });

  test('a thumbnail is for signed URLs, each time', async () => {
    for (const [what, url] of spoiled(http('live', 'thumb.jpg'), http('other', 'thumb.jpg'))) {
      expect([what, (await fetch(url)).status]).toEqual([what, 401]);
    }
    const url = signed(http('live', 'thumb.jpg'), good);
    const image = await until('the image', async () => {
      const response = await fetch(url);
      return response.status === 200 ? response : null;
    });
    expect(image.headers.get('content-type')).toBe('image/jpeg');
  });

  test('by WebRTC is for signed URLs, over WebSocket and WHEP', async () => {
    const url = signalling('ws', 'live');
    for (const [what, bad] of spoiled(url, signalling('ws', 'other'))) {
      expect([what, await firstWord(bad)]).toEqual([what, { code: 404, error: 'Cannot create offer' }]);
    }
    const whep = signalling('http', 'live', '?direction=whep');
    for (const [what, bad] of spoiled(whep, signalling('http', 'other', '?direction=whep'))) {
      expect([what, (await post(bad)).status]).toEqual([what, 401]);
    }
    expect((await post(signed(whep, good), await offer())).status).toBe(201);
    const viewer = new SocketViewer();
    cleanups.push(() => viewer.close());
    await viewer.play(signed(url, good));
    await until('packets', () => viewer.received > 50);
  });

  test('by SRT requires a signed stream id, and a stream id signed for playing cannot publish', async () => {
    for (const [what, url] of spoiled(srtSigned('live'), srtSigned('other'))) {
      await expect(probe(srtCall(srt.egress, url)), what).rejects.toThrow('ffprobe');
    }
    const url = signed(srtSigned('live'), { ...good, direction: 'outgoing' });
    expect((await probe(srtCall(srt.egress, url))).video?.width).toBe(SMALL.width);
    const misused = ffmpegSrt(srtCall(srt.ingest, signed(srtSigned('m'), { direction: 'outgoing' })));
    expect((await misused.ended(20_000)).code).not.toBe(0);
  });

  test('a URL printed by `sign-url` plays', async () => {
    const args = ['sign-url', http('live', 'llhls.m3u8'), '--expire', '1h', '--allow-ip', '127.0.0.1', '--for', 'play'];
    process.env['MILLRACE_SECRET_KEY'] = KEYS.secretKey;
    cleanups.push(() => delete process.env['MILLRACE_SECRET_KEY']);
    const { code, stdout, stderr } = await runCommand(args);
    expect([code, stderr]).toEqual([0, '']);
    expect((await probe(stdout.trim())).video?.width).toBe(SMALL.width);
    expect(await runCommand(['sign-url', 'ws://media.example/app/stream', '--expire', '1h'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the URL needs its port') as string,
    });
  });
});

describe('stream_expire', () => {
  /** Expires after enough time for a session to begin and to be observed. */
  const soon = (): Partial<Policy> => ({ stream_expire: Date.now() + 6000 });

  test('ends publications by RTMP, SRT and WHIP at their time, and logs the reason', async () => {
    const limited = soon();
    const byRtmp = publish({ url: signed(rtmp('r'), limited), ...SMALL });
    cleanups.push(() => byRtmp.kill());
    const bySrt = ffmpegSrt(srtCall(srt.ingest, signed(srtSigned('s'), limited)));
    const byWhip = await publishWhip({ url: signed(signalling('http', 'p', '?direction=whip'), limited) });
    cleanups.push(() => byWhip.close());
    for (const name of ['r', 's', 'p']) await streamIs(name);
    await until('the end of the three publications', async () => (await streams()).every((name) => !['r', 's', 'p'].includes(name)));
    expect(Date.now()).toBeGreaterThanOrEqual(limited.stream_expire ?? 0);
    expect((await byRtmp.child.ended(20_000)).code).not.toBe(0);
    expect((await bySrt.ended(20_000)).code).not.toBe(0);
    const told = (text: string): boolean => server.log.split('\n').some((line) => line.includes(text) && line.includes('stream_expire'));
    await until('the log', () => ['RTMP connection closed', 'SRT connection closed', 'WebRTC publication closed'].every(told));
  });

  test('ends a publication over the WebSocket, which sends media until then', async () => {
    const limited = soon();
    const socket = new ClientSocket(signed(signalling('ws', 'q', '?direction=send'), limited));
    cleanups.push(() => socket.terminate());
    const closed = once(socket, 'close');
    await once(socket, 'open');
    const dialogue = new TlsSignalling(socket);
    const { sdp, candidates } = await dialogue.offer();
    const publisher = new FakeWebrtcPublisher();
    const pictures = setInterval(() => publisher.send(), 40);
    cleanups.push(() => {
      clearInterval(pictures);
      publisher.close();
    });
    dialogue.answer(publisher.answer(sdp));
    await publisher.connect(sdp, candidates);
    const { input } = await streamIs('q');
    expect(input).toMatchObject({ sourceType: 'WebRTC' });
    expect(input.tracks.find(({ type }) => type === 'Video')?.video).toMatchObject({ codec: 'VP8', width: SMALL.width });
    const [, reason] = (await closed) as [number, Buffer];
    expect(reason.toString()).toContain('stream_expire');
    expect(Date.now()).toBeGreaterThanOrEqual(limited.stream_expire ?? 0);
    await until('the end of the publication', async () => !(await streams()).includes('q'));
  });

  test('ends viewers by WebRTC, SRT and LL-HLS at their time', async () => {
    const limited = soon();
    const socket = new WebSocket(signed(signalling('ws', 'live'), limited));
    cleanups.push(() => socket.close());
    const closed = new Promise<string>((resolve) => {
      socket.onclose = ({ reason }) => resolve(reason);
    });
    socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
    const player = new Child(requireProgram('ffmpeg'), [
      ...['-v', 'error', '-nostdin', '-i', srtCall(srt.egress, signed(srtSigned('live'), limited)), '-f', 'null', '-'],
    ]);
    cleanups.push(() => player.kill());
    const url = signed(http('live', 'llhls.m3u8'), limited);
    const uri = new URL(/^[^#\s]\S*m3u8\S*$/m.exec(await (await fetch(url)).text())?.[0] ?? '', url);
    expect((await fetch(uri)).status).toBe(200);
    await player.ended(20_000);
    expect(await closed).toContain('stream_expire');
    expect(Date.now()).toBeGreaterThanOrEqual(limited.stream_expire ?? 0);
    expect((await fetch(uri)).status).toBe(401);
    expect(server.log.split('\n').some((line) => line.includes('SRT viewer left') && line.includes('stream_expire'))).toBe(true);
  });
});
