/** A stream published with ffmpeg over RTMP, played in Chromium over WebRTC. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { FlashViewer, publishFlashes } from '../harness/flash-and-beep.ts';
import { publishOpus } from '../harness/opus-publisher.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, PUBLISH_DEFAULTS, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';
import { follow, openSession } from '../harness/viewer.ts';
import { openWebrtcBrowser, type WebrtcBrowser, type WebrtcPage } from '../harness/webrtc-browser.ts';

/** A uniform frame has a variance of nearly 0; the test frame is far above this. */
const MIN_VARIANCE = 500;
/** Time after which a viewer that disappeared is removed. */
const TIMEOUT_MS = 10_000;

/** An SEI message every half second, in a separate stream. */
const RULES = `<EventInfo><Event><Enable>true</Enable><SourceStreamName>told</SourceStreamName><Interval>500</Interval>
  <EventFormat>sei</EventFormat><Values><Data>made at \${EpochTime}</Data></Values></Event></EventInfo>`;

let folder: string;
let server: TestServer;
let encoder: FfmpegPublisher;
let browser: WebrtcBrowser;

const whepUrl = (stream: string): string => `http://127.0.0.1:${server.ports.http}/app/${stream}?direction=whep`;
const socketUrl = (path: string): string => `ws://127.0.0.1:${server.ports.http}/app/${path}`;

/** An application of the second virtual host that plays the results of `encodes`. */
async function createSecond(name: string, encodes: object, webrtc: object = {}): Promise<void> {
  const outputProfile = [{ name, outputStreamName: `\${OriginStreamName}`, encodes }];
  const application = { name, type: 'live', providers: { rtmp: {} }, publishers: { webrtc }, outputProfiles: { outputProfile } };
  await server.api.create(`${apiPath.vhost('second')}/apps`, [application]);
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-webrtc-'));
  const rules = path.join(folder, 'rules.xml');
  writeFileSync(rules, RULES);
  server = await startServer({
    webrtc: { publisher: `<Timeout>${TIMEOUT_MS}</Timeout><Rtx>true</Rtx>` },
    application: `<EventGenerator><Enable>true</Enable><Path>${rules}</Path></EventGenerator>`,
  });
  // Its applications have output profiles.
  await server.api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
  encoder = publish({ url: server.rtmp('live') });
  browser = await openWebrtcBrowser();
  await encoder.sent(2 * PUBLISH_DEFAULTS.fps);
});

afterAll(async () => {
  await browser?.close();
  await encoder?.stop();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function expectPicture(page: WebrtcPage): Promise<void> {
  const picture = await until('a frame', () => page.picture(), { deadlineMs: 10_000 });
  expect(picture).toMatchObject({ width: PUBLISH_DEFAULTS.width, height: PUBLISH_DEFAULTS.height });
  expect(picture.variance).toBeGreaterThan(MIN_VARIANCE);
}

test('a WHEP page plays, and leaves', async () => {
  const page = await browser.open();
  const { location, answer } = await page.whep(whepUrl('live'));
  expect(location).toMatch(/^\/app\/live\/\w+\?direction=whep$/);
  expect(answer).toContain('a=ice-lite');
  const { video, pair, connection } = await page.decoded(90);
  expect({ pair, connection }).toEqual({ pair: 'udp', connection: 'connected' });
  expect(video.packetsLost).toBe(0);
  await expectPicture(page);
  // The audio is AAC, and no encode makes Opus.
  const { body } = await server.api.call('GET', '/v1/vhosts/default/apps/app/streams/live');
  const { outputs } = (body as { response: { outputs: { warnings?: string[] }[] } }).response;
  expect(outputs.map(({ warnings }) => warnings)).toEqual([[expect.stringMatching(/^viewers over WebRTC get no audio: it is in AAC/)]]);
  const left = await fetch(new URL(location, whepUrl('live')), { method: 'DELETE' });
  expect(left.status).toBe(200);
  await until('the player sees the end', async () => ['closed', 'failed', 'disconnected'].includes((await page.stats()).connection), {
    deadlineMs: 20_000,
  });
  expect((await fetch(new URL(location, whepUrl('live')), { method: 'DELETE' })).status).toBe(404);
  await page.page.close();
});

test('a WHEP page plays over TCP', async () => {
  const page = await browser.open();
  await page.whep(whepUrl('live'), ['video'], 'tcp');
  const { pair } = await page.decoded(60);
  expect(pair).toBe('tcp');
  await expectPicture(page);
  await page.page.close();
});

test('OvenPlayer plays over its WebSocket signalling', async () => {
  const page = await browser.open();
  await page.ovenPlayer(socketUrl('live'));
  const { video, pair, relay, errors } = await page.decoded(90);
  expect({ pair, relay, errors }).toEqual({ pair: 'udp', relay: null, errors: [] });
  expect(video.packetsLost).toBe(0);
  await expectPicture(page);
  const messages = await page.messages();
  expect(messages.map(({ command, type }) => type ?? command)).toEqual(['offer', 'playlist', 'rendition_changed']);
  expect(messages[0]).toMatchObject({ peer_id: 0, code: 200, sdp: { type: 'offer' } });
  expect(messages[1]?.['message']).toMatchObject({ name: 'webrtc_default', renditions: [{ name: 'default' }] });
  await page.page.close();
});

test('OvenPlayer plays over the TCP relay when it asks for TCP', async () => {
  const page = await browser.open();
  await page.ovenPlayer(socketUrl('live?transport=tcp'));
  const { video, relay, errors } = await page.decoded(90);
  expect({ relay, errors }).toEqual({ relay: 'tcp', errors: [] });
  expect(video.packetsLost).toBe(0);
  await expectPicture(page);
  const [offer] = await page.messages();
  const urls = [`turn:127.0.0.1:${server.ports.relay}?transport=tcp`];
  expect(offer).toMatchObject({
    ice_servers: [{ urls, user_name: 'ome', credential: 'airen' }],
    iceServers: [{ urls, username: 'ome', credential: 'airen' }],
  });
  await page.page.close();
});

test('OvenPlayer reads the SEI that a generator makes', async () => {
  const told = publish({ url: server.rtmp('told') });
  const page = await browser.open();
  try {
    await told.sent(2 * PUBLISH_DEFAULTS.fps);
    await page.ovenPlayer(socketUrl('told'), true);
    const { errors } = await page.decoded(60);
    expect(errors).toEqual([]);
    // The encoder's messages are reported, too.
    const ours = await until(
      'three messages',
      async () => {
        const found = (await page.metadata()).filter(({ registered }) => registered === true);
        return found.length >= 3 ? found : null;
      },
      { deadlineMs: 20_000 },
    );
    for (const { type, timecode, userdata } of ours) {
      expect(type).toBe('sei');
      const text = Buffer.from(Object.values(userdata as Record<string, number>)).toString();
      expect(text).toBe(`made at ${timecode}`);
      expect(Math.abs(Date.now() - Number(timecode))).toBeLessThan(60_000);
    }
    const times = ours.map(({ timecode }) => Number(timecode));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(new Set(times).size).toBe(times.length);
  } finally {
    await page.page.close();
    await told.stop();
  }
});

test('Opus audio is decoded', async () => {
  const sound = await publishOpus(server.ports.rtmp, 'app', 'sound');
  const page = await browser.open();
  try {
    await until(
      'the stream can be played',
      async () => {
        await page.whep(whepUrl('sound'), ['audio']);
        return true;
      },
      { deadlineMs: 10_000, everyMs: 500 },
    );
    const audio = await until(
      'a second of audio',
      async () => {
        const { audio: heard } = await page.stats();
        return heard !== undefined && heard.packetsReceived >= 100 && heard.totalAudioEnergy > 0 ? heard : null;
      },
      { deadlineMs: 15_000 },
    );
    expect(audio.packetsLost).toBe(0);
  } finally {
    await page.page.close();
    sound.stop();
  }
});

test('frames in AV1 are shown', async () => {
  const videos = [{ name: 'av1', codec: 'av1', bitrate: 200_000, width: 160, height: 90, framerate: 15, keyFrameInterval: 15 }];
  await createSecond('av1', { videos, audios: [] }, { rtx: true });
  const source = publish({ url: server.rtmp('live', 'av1', 'localhost'), width: 320, height: 180, videoKbps: 300, withoutAudio: true });
  const page = await browser.open();
  try {
    const url = `http://localhost:${server.ports.http}/av1/live?direction=whep`;
    const { answer } = await until('the stream can be played', () => page.whep(url, ['video']), { deadlineMs: 20_000, everyMs: 500 });
    expect(answer).toMatch(/^a=rtpmap:\d+ AV1\/90000\r$/m);
    const { video } = await page.decoded(45);
    expect([video.frameWidth, video.keyFramesDecoded > 1]).toEqual([160, true]);
    const picture = await until('a frame', () => page.picture(), { deadlineMs: 10_000 });
    expect(picture.variance).toBeGreaterThan(MIN_VARIANCE);
  } finally {
    await page.page.close();
    await source.stop();
  }
});

test('sender reports synchronise video and audio within 20 ms', async () => {
  await createSecond('sync', { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'opus', codec: 'opus', bitrate: 64_000 }] });
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-sync-'));
  const source = publishFlashes(server.rtmp('live', 'sync', 'localhost'));
  const player = await FlashViewer.open(folder);
  try {
    await player.play(`ws://localhost:${server.ports.http}/sync/live`);
    const { flashes, beeps } = await until(
      'four flashes and beeps',
      () => {
        const moments = player.moments();
        return moments !== null && moments.flashes.length >= 4 && moments.beeps.length >= 4 ? moments : null;
      },
      { deadlineMs: 30_000, everyMs: 200 },
    );
    const offsets = flashes
      .slice(0, 4)
      .map((flash) => beeps.map((beep) => 1000 * (beep - flash)).sort((a, b) => Math.abs(a) - Math.abs(b))[0] ?? 1000);
    for (const offset of offsets) expect(Math.abs(offset)).toBeLessThan(20);
  } finally {
    await player.end();
    await source.stop('SIGINT');
    rmSync(folder, { recursive: true });
  }
});

test('an encode gives the keyframe that a viewer asks for', async () => {
  const video = { name: 'video', codec: 'h264', bitrate: 200_000, width: 160, height: 90, framerate: 15, keyFrameInterval: 60 };
  await createSecond('slow', { videos: [video], audios: [] });
  const source = publish({ url: server.rtmp('live', 'slow', 'localhost'), width: 320, height: 180, videoKbps: 300, withoutAudio: true });
  const player = new SocketViewer();
  try {
    await player.play(`ws://localhost:${server.ports.http}/slow/live`);
    const seconds = (): number[] => player.keyframes.map((time, n) => (n === 0 ? 0 : (time - (player.keyframes[n - 1] ?? 0)) / 90_000));
    const wait = { deadlineMs: 15_000, everyMs: 20 };
    await until('the first keyframe', () => player.keyframes.length >= 1, wait);
    player.askForKeyframe();
    await until('another keyframe', () => player.keyframes.length >= 2, wait);
    // Nobody requests the next keyframe: the interval is 4 s.
    await until('a third keyframe', () => player.keyframes.length >= 3, wait);
    const [, asked = 0, unasked = 0] = seconds();
    expect(asked).toBeLessThan(3);
    expect(asked + unasked).toBeGreaterThan(3.5);
  } finally {
    player.close();
    await source.stop();
  }
});

test('viewers are counted while they watch', async () => {
  const page = await browser.open();
  const connections = async (): Promise<number> => {
    const figures = await server.api.get<{ connections: { webrtc: number } }>('/v1/stats/current/vhosts/default/apps/app/streams/live');
    return figures.connections.webrtc;
  };
  await page.whep(whepUrl('live'));
  await page.decoded(10);
  await until('one viewer', async () => (await connections()) === 1, { deadlineMs: 10_000 });
  await page.page.close();
  await until('no viewer', async () => (await connections()) === 0, { deadlineMs: TIMEOUT_MS + 10_000 });
}, 90_000);

test('the API lists viewers with their sent bytes, and disconnects them', async () => {
  const sessions = `${apiPath.stream('live')}/sessions`;
  const list = (): Promise<string[]> => server.api.get<string[]>(`${sessions}?protocol=all`);
  const others = await list();
  const fresh = async (): Promise<string | undefined> => (await list()).find((name) => !others.includes(name));
  const sent = async (name: string): Promise<number> =>
    (await server.api.get<{ totalBytesOut: number }>(`${apiPath.stats('live')}/sessions/${name}?protocol=all`)).totalBytesOut;
  const watching = new AbortController();
  const page = await browser.open();
  try {
    const { video } = await openSession(server.http('live', 'llhls.m3u8'));
    const followed = follow(video, watching.signal).then(
      () => 'it was let go on',
      (error: Error) => error.message,
    );
    const reader = await until('the LL-HLS viewer is listed', fresh, { deadlineMs: 10_000 });
    others.push(reader);
    expect(video).toContain(`session=${reader}_`);
    const { location } = await page.whep(whepUrl('live'));
    await page.decoded(30);
    const viewer = await until('the WHEP viewer is listed', fresh, { deadlineMs: 10_000 });
    await until('bytes for both viewers', async () => (await sent(reader)) > 1000 && (await sent(viewer)) > 50_000, {
      deadlineMs: 10_000,
    });

    // Without `protocol` the query concerns WebRTC.
    expect(await server.api.get<string[]>(sessions)).not.toContain(reader);
    expect(await server.api.get<string[]>(sessions)).toContain(viewer);
    expect((await server.api.call('DELETE', `${sessions}/${reader}?protocol=llhls`)).status).toBe(200);
    expect(await followed).toContain('answered 401');
    expect((await server.api.call('DELETE', `${sessions}/${viewer}`)).status).toBe(200);
    await until('the player sees the end', async () => ['closed', 'failed', 'disconnected'].includes((await page.stats()).connection), {
      deadlineMs: 20_000,
    });
    expect((await fetch(new URL(location, whepUrl('live')), { method: 'DELETE' })).status).toBe(404);
    const left = await list();
    expect([left.includes(reader), left.includes(viewer)]).toEqual([false, false]);
    expect((await server.api.call('DELETE', `${sessions}/${viewer}`)).body).toMatchObject({ response: 'Could not find the session' });
  } finally {
    watching.abort();
    await page.page.close();
  }
});

test('an unplayable stream is refused in words', async () => {
  const missing = await fetch(whepUrl('nobody'), { method: 'POST', body: 'v=0\r\n' });
  expect([missing.status, await missing.text()]).toEqual([404, "there is no stream 'app/nobody'\n"]);
  const broken = await fetch(whepUrl('live'), { method: 'POST', body: 'hello' });
  expect([broken.status, await broken.text()]).toEqual([400, 'the session description does not begin with v=0 (at byte 1)\n']);
  const preflight = await fetch(whepUrl('live'), { method: 'OPTIONS' });
  expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([200, 'OPTIONS, POST, PATCH, DELETE']);
});
