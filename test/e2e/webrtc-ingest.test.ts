/** A fake camera and microphone published from Chromium over WebRTC, watched over LL-HLS and WebRTC. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { selfSigned } from '../fakes/self-signed.ts';
import { FakeWebrtcPublisher } from '../fakes/webrtc-publisher.ts';
import { WebrtcViewer } from '../fakes/webrtc-viewer.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { decode, probe } from '../harness/probe.ts';
import { RtpDecoder } from '../harness/rtp-decoder.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { TlsClient } from '../harness/tls-client.ts';
import { watchWhep } from '../harness/watch-whep.ts';
import { openWebrtcBrowser, type WebrtcBrowser, type WebrtcPage } from '../harness/webrtc-browser.ts';
import { WhepReceiver } from '../harness/whep-receiver.ts';
import { publishWhip } from '../harness/whip-encoder.ts';

const SIZE = { width: 640, height: 360 };

let server: TestServer;
let tls: { rtmp: number; http: number };
let browser: WebrtcBrowser;

const url = (stream: string, direction: string, scheme = 'http'): string =>
  `${scheme}://127.0.0.1:${server.ports.http}/app/${stream}?direction=${direction}`;
const resource = (location: string): string => new URL(location, url('', 'whip')).href;

beforeAll(async () => {
  const [rtmp = 0, http = 0] = await freePorts(2);
  tls = { rtmp, http };
  server = await startServer({
    segmentDuration: 1,
    webrtc: { publisher: '<Rtx>true</Rtx>', provider: '<FIRInterval>1000</FIRInterval>', ipv6: true },
    tls,
    withoutHls: true,
  });
  browser = await openWebrtcBrowser();
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

interface StreamInfo {
  readonly input: {
    readonly sourceType: string;
    readonly tracks: {
      readonly type: string;
      readonly video?: { readonly codec: string; readonly width: number; readonly height: number };
    }[];
  };
}

/** Null when the API knows no such stream. */
async function information(stream: string): Promise<StreamInfo | null> {
  const { status, body } = await server.api.call('GET', `/v1/vhosts/default/apps/app/streams/${stream}`);
  return status === 200 ? (body as { response: StreamInfo }).response : null;
}

async function started(stream: string): Promise<StreamInfo> {
  return await until(
    `stream '${stream}'`,
    async () => {
      const found = await information(stream);
      return found !== null && found.input.tracks.length > 1 ? found : null;
    },
    { deadlineMs: 15_000 },
  );
}

async function gone(stream: string): Promise<void> {
  await until(`the end of '${stream}'`, async () => (await information(stream)) === null, { deadlineMs: 15_000 });
}

const watch = (stream: string, frames: number): Promise<WebrtcPage> => watchWhep(browser, url(stream, 'whep'), { frames, size: SIZE });

test('a page publishes by WHIP, plays over LL-HLS and WebRTC, and ends its stream by DELETE', async () => {
  const page = await browser.open();
  const { location, etag, answer } = await page.whip(url('cam', 'whip'));
  expect(location).toMatch(/^\/app\/cam\/\w+\?direction=whip$/);
  expect(etag).toMatch(/^\w{8}$/);
  expect(answer).toContain('a=setup:passive');
  const { input } = await started('cam');
  expect(input.sourceType).toBe('WebRTC');
  expect(input.tracks.find(({ type }) => type === 'Video')?.video?.codec).toBe('H264');

  const second = await fetch(url('cam', 'whip'), {
    method: 'POST',
    body: answer.replaceAll('recvonly', 'sendonly').replaceAll('passive', 'actpass'),
  });
  expect([second.status, await second.text()]).toEqual([409, 'Stream is already exist\n']);

  const viewer = await watch('cam', 60);
  const { video, audio } = await probe(server.http('cam', 'llhls.m3u8'));
  expect(video).toMatchObject({ codec_name: 'h264', ...SIZE });
  expect(audio).toMatchObject({ codec_name: 'opus', channels: 2 });
  const decoded = await decode(server.http('cam', 'llhls.m3u8'), 3, { uneven: true });
  expect(decoded.errors).toBe('');
  expect(decoded.frames).toBeGreaterThan(30);
  // Feedback lets the sender raise its bitrate above the initial 300 kbit/s, and keyframes come on request.
  await until(
    'the bitrate rises, and keyframes come',
    async () => {
      const sender = (await page.sent()).find(({ kind }) => kind === 'video');
      return (sender?.targetBitrate ?? 0) > 400_000 && (sender?.pliCount ?? 0) > 1 && (sender?.keyFramesEncoded ?? 0) > 2;
    },
    { deadlineMs: 20_000 },
  );

  expect((await fetch(resource(location), { method: 'PATCH', body: 'a=ice-ufrag:x\r\na=end-of-candidates\r\n' })).status).toBe(204);
  expect((await fetch(resource(location), { method: 'DELETE' })).status).toBe(200);
  await gone('cam');
  expect((await fetch(resource(location), { method: 'DELETE' })).status).toBe(404);
  await Promise.all([page.page.close(), viewer.page.close()]);
});

test('OvenLiveKit publishes over its WebSocket protocol, and its stream ends with the page', async () => {
  const page = await browser.open();
  await page.ovenLiveKit(url('oven', 'send', 'ws'));
  await started('oven');
  const viewer = await watch('oven', 40);
  expect((await page.stats()).errors).toEqual([]);

  const late = await browser.open();
  await late.ovenLiveKit(url('oven', 'send', 'ws'));
  await until('the second publisher is refused', async () => (await late.messages()).some(({ code }) => code === 404), {
    deadlineMs: 10_000,
  });
  expect((await late.messages()).at(-1)).toEqual({ code: 404, error: 'Cannot create offer' });

  await page.page.close();
  await gone('oven');
  await Promise.all([late.page.close(), viewer.page.close()]);
});

test('H.265 is published by WHIP, played by WHEP, and decoded by the player', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-h265-'));
  const encoder = await publishWhip({ url: url('h265', 'whip'), codec: 'H265', fps: 15 });
  const output = ['-frames:v', '45', '-f', 'framecrc'];
  const decoder = await RtpDecoder.open({ kind: 'video', payloadType: 96, map: 'H265/90000', output, folder });
  let player: WhepReceiver | null = null;
  try {
    const { input } = await started('h265');
    expect(input.tracks.find(({ type }) => type === 'Video')?.video).toMatchObject({ codec: 'H265', ...SIZE });
    player = await WhepReceiver.open(url('h265', 'whep'), 96, decoder);
    const { code } = await decoder.ended(30_000);
    expect([code, decoder.errors]).toEqual([0, '']);
    const pictures = `${decoder.decoded()}`.split('\n').filter((line) => /^0,/.test(line));
    expect(pictures.length).toBe(45);
    // The video moves, so no checksum may repeat.
    expect(new Set(pictures.map((line) => line.split(',').at(-1))).size).toBe(45);
  } finally {
    player?.close();
    await decoder.close();
    await encoder.close();
    rmSync(folder, { recursive: true });
  }
});

test('a page publishes and another plays over IPv6', async () => {
  const page = await browser.open();
  const { location, answer } = await page.whip(url('six', 'whip'), { path: 'udp6' });
  expect(answer).toMatch(/a=candidate:\d+ 1 UDP 50 127\.0\.0\.1 \d+ typ host\r\n.*a=candidate:\d+ 1 UDP 50 ::1 \d+ typ host\r\n/s);
  await started('six');
  expect(await page.stats()).toMatchObject({ pair: 'udp', server: '::1' });
  const viewer = await browser.open();
  await until('an answer', async () => await viewer.whep(url('six', 'whep'), ['video'], 'udp6').catch(() => null), { deadlineMs: 10_000 });
  expect(await viewer.decoded(15)).toMatchObject({ pair: 'udp', server: '::1' });
  await fetch(resource(location), { method: 'DELETE' });
  await Promise.all([page.page.close(), viewer.page.close()]);
});

test('pages publish over TCP, and through the TURN relay', async () => {
  const direct = await browser.open();
  const { location } = await direct.whip(url('tcp', 'whip'), { path: 'tcp' });
  const relayed = await browser.open();
  await relayed.ovenLiveKit(`${url('relayed', 'send', 'ws')}&transport=tcp`);
  await Promise.all([started('tcp'), started('relayed')]);
  expect(await direct.stats()).toMatchObject({ pair: 'tcp', errors: [] });
  expect(await relayed.stats()).toMatchObject({ relay: 'tcp', errors: [] });
  const watched = ['tcp', 'relayed'].map(async (stream) => {
    const viewer = await browser.open();
    await until('an answer', async () => await viewer.whep(url(stream, 'whep'), ['video']).catch(() => null), { deadlineMs: 10_000 });
    await viewer.decoded(15);
    await viewer.page.close();
  });
  await Promise.all(watched);
  expect(server.log).toMatch(/"stream":"tcp".*"path":"tcp 127\.0\.0\.1:\d+".*publisher connected/);
  expect(server.log).toMatch(/"stream":"relayed".*"path":"relay 127\.0\.0\.1:\d+".*publisher connected/);
  await fetch(resource(location), { method: 'DELETE' });
  await Promise.all([direct.page.close(), relayed.page.close()]);
  await Promise.all([gone('tcp'), gone('relayed')]);
});

test('WHIP, WHEP and both kinds of WebSocket work over TLS, with clients that check the certificate', async () => {
  const { cert, key } = selfSigned('localhost');
  const [certPath, keyPath] = ['cert.pem', 'key.pem'].map((name) => path.join(server.folder, name)) as [string, string];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  await server.api.create('/v1/vhosts', [{ name: 'secure', host: { names: ['localhost'], tls: { certPath, keyPath } } }]);
  const bypass = { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] };
  const outputProfiles = { outputProfile: [{ name: 'bypass', outputStreamName: `\${OriginStreamName}`, encodes: bypass }] };
  const application = { name: 'app', type: 'live', providers: { webrtc: {} }, publishers: { webrtc: {} }, outputProfiles };
  await server.api.create('/v1/vhosts/secure/apps', [application]);
  const client = new TlsClient(tls.http, cert);
  await until('the port is open', () => client.request('OPTIONS', '/app/x?direction=whip').catch(() => null), { deadlineMs: 10_000 });

  const [whip, send, whep] = [new FakeWebrtcPublisher(), new FakeWebrtcPublisher(), new FakeWebrtcPublisher()];
  const viewer = new WebrtcViewer();
  const pictures = setInterval(() => {
    whip.send();
    send.send();
  }, 40);
  try {
    const published = await client.request('POST', '/app/whip?direction=whip', whip.offer());
    expect([published.status, published.location]).toEqual([201, expect.stringMatching(/^\/app\/whip\/\w+\?direction=whip$/)]);
    await whip.connect(published.body);

    const publishing = await client.socket('/app/send?direction=send');
    const offer = await publishing.offer();
    publishing.answer(send.answer(offer.sdp));
    await send.connect(offer.sdp, offer.candidates);
    await until('both publishers are connected', () => whip.connected && send.connected, { deadlineMs: 10_000 });

    const played = await until(
      'an answer',
      async () => {
        const answer = await client.request('POST', '/app/send?direction=whep', whep.offer().replace('a=sendonly', 'a=recvonly'));
        return answer.status === 201 ? answer : null;
      },
      { deadlineMs: 10_000 },
    );
    await whep.connect(played.body);
    // Sender reports are sent only after media.
    await until('media by WHEP', () => whep.heard.some((packet) => packet[1] === 200), { deadlineMs: 10_000 });

    const playing = await until('a socket with an offer', () => client.playing('/app/whip'), { deadlineMs: 10_000 });
    playing.socket.answer(viewer.answer(playing.offer.sdp));
    await viewer.connect(playing.offer.sdp, playing.offer.candidates);
    await until('frames over the WebSocket', () => viewer.received > 5, { deadlineMs: 10_000 });

    expect((await client.request('DELETE', published.location)).status).toBe(200);
    expect((await client.request('DELETE', published.location)).status).toBe(404);
  } finally {
    clearInterval(pictures);
    for (const peer of [whip, send, whep, viewer]) peer.close();
    client.close();
  }
});

test('AV1 passes through to LL-HLS', async () => {
  const page = await browser.open();
  const { location } = await page.whip(url('av1', 'whip'), { codec: 'AV1' });
  const { input } = await started('av1');
  expect(input.tracks.find(({ type }) => type === 'Video')?.video).toMatchObject({ codec: 'AV1', ...SIZE });
  const decoded = await until(
    'pictures',
    async () => await decode(server.http('av1', 'llhls.m3u8'), 1, { uneven: true }).catch(() => null),
    {
      deadlineMs: 20_000,
    },
  );
  expect(decoded.errors).toBe('');
  expect(decoded.frames).toBeGreaterThan(5);
  await fetch(resource(location), { method: 'DELETE' });
  await page.page.close();
});

test('VP8 passes through to players over WebRTC', async () => {
  const page = await browser.open();
  const { location } = await page.whip(url('vp8', 'whip'), { codec: 'VP8', audio: false });
  const { input } = await started('vp8');
  expect(input.tracks.find(({ type }) => type === 'Video')?.video).toMatchObject({ codec: 'VP8', ...SIZE });
  const viewer = await watch('vp8', 30);
  await fetch(resource(location), { method: 'DELETE' });
  await Promise.all([page.page.close(), viewer.page.close()]);
});

test('simulcast layers become separate tracks', async () => {
  const page = await browser.open();
  const { location, answer } = await page.whip(url('layers', 'whip'), { audio: false, layers: [1, 2] });
  expect(answer).toMatch(/a=simulcast:recv l0;l1/);
  const { input } = await until(
    'both layers',
    async () => {
      const found = await information('layers');
      return found !== null && found.input.tracks.filter(({ type }) => type === 'Video').length === 2 ? found : null;
    },
    { deadlineMs: 30_000 },
  );
  const sizes = input.tracks.filter(({ type }) => type === 'Video').map(({ video }) => [video?.width, video?.height]);
  expect(sizes).toEqual([
    [640, 360],
    [320, 180],
  ]);
  // The default playlist contains the first layer; the other layer has a media playlist, too.
  const master = await (await fetch(server.http('layers', 'llhls.m3u8'))).text();
  const [first = ''] = master.split('\n').filter((line) => line.includes('chunklist_0_video'));
  const second = new URL(first.replace('chunklist_0', 'chunklist_1'), url('', 'whip')).href;
  const { video } = await until('the second layer', async () => await probe(second).catch(() => null), { deadlineMs: 15_000 });
  expect(video).toMatchObject({ codec_name: 'h264', width: 320, height: 180 });
  await fetch(resource(location), { method: 'DELETE' });
  await page.page.close();
});

test('publishing works in JavaScript without the addon, too', async () => {
  const plain = await startServer({ segmentDuration: 1, webrtc: {}, withoutHls: true, env: { MILLRACE_NATIVE: 'off' } });
  const page = await browser.open();
  try {
    await page.whip(`http://127.0.0.1:${plain.ports.http}/app/cam?direction=whip`);
    const decoded = await until(
      'pictures',
      async () => await decode(plain.http('cam', 'llhls.m3u8'), 2, { uneven: true }).catch(() => null),
      { deadlineMs: 20_000 },
    );
    expect(decoded.errors).toBe('');
    expect(decoded.frames).toBeGreaterThan(20);
    expect(plain.log).toContain('WebRTC is sent from JavaScript');
  } finally {
    await page.page.close();
    await plain.close();
  }
});

test('an encoder with its own WebRTC stack publishes, and the log warns of its B-frames', async () => {
  const encoder = await publishWhip({ url: url('encoder', 'whip'), bFrames: 2 });
  try {
    await started('encoder');
    const decoded = await until('pictures', async () => await decode(server.http('encoder', 'llhls.m3u8'), 2).catch(() => null), {
      deadlineMs: 20_000,
    });
    expect(decoded.errors).toBe('');
    expect(decoded.frames).toBeGreaterThan(50);
    expect(server.log).toMatch(/"stream":"encoder".*the publisher sends B-frames.*bframes=0/);
    expect((await fetch(encoder.location, { method: 'DELETE' })).status).toBe(200);
    await gone('encoder');
  } finally {
    await encoder.close();
  }
});
