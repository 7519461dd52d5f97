import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeStream } from '../../../../test/fakes/fake-stream.ts';
import { foreignPeer } from '../../../../test/fakes/foreign-peer.ts';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { answerTo, SignallingPlayer } from '../../../../test/fakes/signalling-player.ts';
import { LADDER, OPUS, video } from '../../../../test/fakes/webrtc-ladder.ts';
import { until } from '../../../../test/harness/poll.ts';
import type { AudioTrack } from '../../../media/track.ts';
import { systemClock } from '../../../util/clock.ts';
import { NO_TURNS } from '../../../util/newcomer-turns.ts';
import { SignallingServer } from '../signalling/signalling-server.ts';
import { PeerTransport } from '../transport/peer-transport.ts';
import { PlaySide } from './play-side.ts';
import type { WebrtcSettings } from './settings.ts';
import { WebrtcPublisher } from './webrtc-publisher.ts';
import type { WebrtcStream } from './webrtc-stream.ts';

const SETTINGS: WebrtcSettings = {
  timeout: 30_000,
  rtx: true,
  bandwidthEstimation: 'REMB',
  ulpfec: false,
  jitterBuffer: false,
  createDefaultPlaylist: true,
};
const FINGERPRINT = Array.from({ length: 32 }, () => 'AB').join(':');

let transport: PeerTransport;
let publisher: WebrtcPublisher;
let signalling: SignallingServer;
let server: Server;
let stream: FakeStream;
let attached: WebrtcStream;
let logger: RecordingLogger;
/** The answer of the finder: a search at origins, or null. */
let found: Promise<boolean> | null;
let unknown = false;
const finder = { draining: false, find: () => found, isUnknown: () => unknown };
/** Null: every client enters at once. */
let held: HeldTurns | null;

beforeEach(async () => {
  logger = new RecordingLogger();
  found = null;
  unknown = false;
  finder.draining = false;
  held = null;
  const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1', '203.0.113.5'] }];
  // The number of a free UDP port may be taken for TCP.
  for (let attempt = 0; attempt < 10; attempt += 1) {
    transport = await PeerTransport.open({ ports, tcp: true, threads: 1, clock: systemClock, logger });
    if (transport.candidates().length === 4) break;
    await transport.close();
  }
  publisher = new WebrtcPublisher({ transport, clock: systemClock, logger, finder });
  const virtualHostFor = (host: string): string | undefined => (host === '127.0.0.1' ? 'default' : undefined);
  const iceServers = [{ urls: ['turn:192.0.2.9:3478?transport=tcp'], username: 'me', credential: 'secret' }];
  const play = new PlaySide({
    publisher,
    virtualHostFor,
    iceServersFor: (place) => (place.transport === 'tcp' ? iceServers : place.transport === 'none' ? [] : null),
    turns: { take: (newcomer) => (held ?? NO_TURNS).take(newcomer), leave: () => undefined },
    logger,
  });
  signalling = new SignallingServer({ play: { side: play, ports: new Set([3333]) }, publish: null, virtualHostFor });
  server = createServer((request, response) => signalling.request(request, response, foreignPeer()));
  server.on('upgrade', (request, socket, head) => signalling.upgrade(request, socket, head, foreignPeer()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stream = new FakeStream();
  stream.tracks = [video(1, 'low'), video(2, 'high'), video(3, 'other', 'VP8'), OPUS];
  const own = publisher.defaultPlaylist(stream.tracks, SETTINGS);
  stream.playlists = [LADDER, ...(own === null ? [] : [own])];
  attached = publisher.attach(stream, SETTINGS);
  attached.onTracks(stream.tracks);
});

afterEach(async () => {
  signalling.close();
  publisher.stop();
  server.closeAllConnections();
  server.close();
  await transport.close();
});

class Player extends SignallingPlayer {
  constructor(path: string) {
    super((server.address() as AddressInfo).port, path);
  }
}

test('a player over the WebSocket gets its offer when it is its turn', async () => {
  held = new HeldTurns();
  const { waiting } = held;
  const player = new Player('/app/stream');
  await player.send({ command: 'request_offer' });
  await until('the request', () => waiting.length === 1, { deadlineMs: 5000 });
  expect([transport.sessions, player.heard, waiting[0]?.client]).toEqual([0, [], '192.0.2.1']);
  waiting[0]?.enter();
  expect(await player.hears(1)).toMatchObject({ command: 'offer' });
});

test('an offer has the payload types of OvenMediaEngine, and candidates of one port', async () => {
  const player = new Player('/app/stream');
  const { id, sdp, candidates } = await player.offer();
  expect(id).toBeGreaterThan(0);
  expect(sdp).toContain('a=rtpmap:98 H264/90000\r\na=fmtp:98 packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1');
  expect(sdp).toContain('a=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=98');
  expect(sdp).toContain('a=rtpmap:110 OPUS/48000/2\r\na=fmtp:110 sprop-stereo=1;stereo=1;minptime=10;useinbandfec=1');
  expect(sdp).toContain('a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time');
  expect(sdp).toContain('a=ssrc-group:FID');
  expect(sdp).toContain('a=setup:actpass');
  expect(sdp).not.toContain('VP8');
  expect(candidates.map(({ candidate }) => candidate.split(' ').slice(2, 5).join(' '))).toEqual([
    'UDP 50 127.0.0.1',
    'UDP 50 203.0.113.5',
    'TCP 40 127.0.0.1',
    'TCP 40 203.0.113.5',
  ]);
  expect(candidates[0]?.sdpMLineIndex).toBe(0);
  expect(player.heard[0]).not.toHaveProperty('iceServers');
  expect(transport.sessions).toBe(1);
});

test('a client that asks for TCP gets the configured relays in both spellings', async () => {
  const player = new Player('/app/stream?transport=TCP');
  await player.offer();
  const urls = ['turn:192.0.2.9:3478?transport=tcp'];
  expect(player.heard[0]).toMatchObject({
    ice_servers: [{ urls, user_name: 'me', credential: 'secret' }],
    iceServers: [{ urls, username: 'me', credential: 'secret' }],
  });
});

test('a client that asks for TCP gets no empty list, which OvenPlayer takes for "relays only"', async () => {
  const player = new Player('/app/stream?transport=none');
  await player.offer();
  expect(player.heard[0]).not.toHaveProperty('iceServers');
  expect(player.heard[0]).not.toHaveProperty('ice_servers');
});

test('the reply to an answer is the playlist with the renditions in the agreed codecs', async () => {
  const player = new Player('/app/stream/master');
  const { id, sdp } = await player.offer();
  expect(sdp).toContain('VP8/90000');
  await player.send({ command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: answerTo(sdp) } });
  const playlist = await player.hears(2);
  expect(playlist).toMatchObject({
    command: 'notification',
    type: 'playlist',
    message: { name: 'master', file_name: 'for all', auto: true },
  });
  const { renditions } = playlist['message'] as { renditions: { name: string; video_track: object }[] };
  expect(renditions.map(({ name }) => name)).toEqual(['high', 'low']);
  expect(renditions[0]?.video_track).toMatchObject({ id: 2, name: 'high', type: 'Video', video: { codec: 'H264', width: 640 } });
  await player.send({ command: 'change_rendition', id, rendition_name: 'high', auto: false });
  expect(await player.hears(3)).toMatchObject({ type: 'rendition_changed', message: { rendition_name: 'high', auto: true } });
  expect(await player.hears(4)).toMatchObject({ type: 'rendition_changed', message: { rendition_name: 'high', auto: false } });
  await player.send({ command: 'change_rendition', id, rendition_name: 'unknown' });
  await player.send({ command: 'candidate', id, peer_id: 0, candidates: [{ candidate: '', sdpMLineIndex: 0 }] });
  await player.send({ command: 'stop', id });
  await until('the session is gone', () => transport.sessions === 0, { deadlineMs: 5000 });
  expect(player.closed).toBe(false);
});

test('players get the track details of the API, with measured values where none are configured', async () => {
  const [measured, audioFigures] = [
    { bitrateAvg: 800_000, framerateAvg: 25, maxWidth: 1280, keyFrameIntervalAvg: 50 },
    { bitrateAvg: 96_000 },
  ];
  stream.figuresById.set(2, measured).set(OPUS.id, audioFigures);
  stream.tracks = [video(1, 'low'), { ...video(2, 'high'), bitrateConf: 0, framerateConf: 0 }, OPUS];
  attached.onTracks(stream.tracks);
  const player = new Player('/app/stream/master');
  const { id, sdp } = await player.offer();
  await player.send({ command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: answerTo(sdp) } });
  const { renditions } = (await player.hears(2))['message'] as {
    renditions: { video_track: { video: object }; audio_track?: { audio: object } }[];
  };
  const [{ video_track: videoTrack, audio_track: audioTrack } = { video_track: { video: {} } }] = renditions;
  const figures = 'bitrate bitrateAvg bitrateConf bitrateLatest bypass';
  const videoFields =
    'codec deltaFramesSinceLastKeyFrame framerate framerateAvg framerateConf framerateLatest hasBframes height keyFrameInterval ' +
    'keyFrameIntervalAvg keyFrameIntervalConf keyFrameIntervalLatest maxHeight maxWidth width';
  expect(Object.keys(videoTrack.video).sort().join(' ')).toBe(`${figures} ${videoFields}`);
  expect(videoTrack.video).toMatchObject({
    ...measured,
    bitrate: 800_000,
    bitrateConf: 0,
    framerate: 25,
    keyFrameInterval: 50,
    width: 640,
  });
  expect(
    Object.keys(audioTrack?.audio ?? {})
      .sort()
      .join(' '),
  ).toBe(`${figures} channel codec samplerate`);
  expect(audioTrack?.audio).toMatchObject({
    ...audioFigures,
    bitrate: 128_000,
    bitrateConf: 128_000,
    channel: 2,
    codec: 'OPUS',
    samplerate: 48_000,
  });
});

test('a player of another codec gets the renditions of that codec', async () => {
  const player = new Player('/app/stream/master');
  const { id, sdp } = await player.offer();
  await player.send({ command: 'answer', id, sdp: { type: 'answer', sdp: answerTo(sdp, 'VP8') } });
  const { renditions } = (await player.hears(2))['message'] as { renditions: { name: string }[] };
  expect(renditions.map(({ name }) => name)).toEqual(['other']);
});

test('of one video with AAC, with Opus and without audio, the viewer gets the rendition with Opus', async () => {
  const aac: AudioTrack = { ...OPUS, id: 8, variantName: 'aac', codec: 'AAC', codecString: 'mp4a.40.2' };
  const rendition = (name: string, audioVariantName: string) => ({
    ...{ name, audioVariantName, videoVariantName: 'high', videoIndexHint: -1, audioIndexHint: -1 },
  });
  stream.tracks = [video(2, 'high'), aac, OPUS];
  const both = { ...LADDER, renditions: [rendition('aac', 'aac'), rendition('mute', ''), rendition('opus', 'opus')] };
  stream.playlists = [both, { ...both, fileName: 'silent', renditions: both.renditions.slice(0, 2) }];
  attached.onTracks(stream.tracks);
  const namesOf = async (file: string): Promise<string[]> => {
    const player = new Player(`/app/stream/${file}`);
    const { id, sdp } = await player.offer();
    await player.send({ command: 'answer', id, sdp: { type: 'answer', sdp: answerTo(sdp) } });
    const { renditions } = (await player.hears(2))['message'] as { renditions: { name: string }[] };
    return renditions.map(({ name }) => name);
  };
  expect(await namesOf('master')).toEqual(['opus']);
  expect(await namesOf('silent')).toEqual(['aac', 'mute']);
});

describe('refusals close the connection', () => {
  const cases: { name: string; path?: string; messages: (id: number, sdp: string) => (object | string)[]; code: number; error?: string }[] =
    [
      { name: 'no such stream', path: '/app/nobody', messages: () => [], code: 404, error: 'Cannot create offer' },
      { name: 'no such playlist', path: '/app/stream/none', messages: () => [], code: 404, error: 'Cannot create offer' },
      { name: 'no JSON', messages: () => ['{'], code: 400 },
      { name: 'no command', messages: () => [{ id: 1 }], code: 400 },
      { name: 'an unknown command', messages: (id) => [{ command: 'dance', id }], code: 400 },
      { name: 'a wrong id', messages: (id) => [{ command: 'stop', id: id + 1 }], code: 400 },
      { name: 'no SDP', messages: (id) => [{ command: 'answer', id }], code: 400 },
      { name: 'a bad candidate', messages: (id) => [{ command: 'candidate', id, candidates: [{ candidate: 'nonsense' }] }], code: 400 },
      {
        name: 'another number of m-lines',
        messages: (id) => [{ command: 'answer', id, sdp: { sdp: 'v=0\r\n' } }],
        code: 403,
        error: 'Forbidden',
      },
      {
        name: 'no fingerprint',
        messages: (id, sdp) => [{ command: 'answer', id, sdp: { sdp: answerTo(sdp).replaceAll(/a=fingerprint.*\r\n/g, '') } }],
        code: 403,
      },
      { name: 'publishing', path: '/app/stream?direction=send', messages: () => [], code: 404 },
    ];
  test.each(cases)('$name', async ({ path = '/app/stream', messages, code, error }) => {
    const player = new Player(path);
    await player.send({ command: 'request_offer' });
    const first = (await player.hears(1)) as { id: number; sdp?: { sdp: string } };
    for (const message of messages(first.id, first.sdp?.sdp ?? '')) await player.send(message);
    await until('the connection is closed', () => player.closed, { deadlineMs: 5000, everyMs: 5 });
    expect(player.heard.at(-1)).toMatchObject({ code, ...(error !== undefined && { error }) });
    await until('no session is left', () => transport.sessions === 0, { deadlineMs: 5000 });
  });
});

test('a player that leaves, and a stream that ends, leave no session behind', async () => {
  const left = new Player('/app/stream');
  const { id, sdp } = await left.offer();
  await left.send({ command: 'answer', id, sdp: { type: 'answer', sdp: answerTo(sdp) } });
  await left.hears(2);
  expect(transport.fanout.counters().viewers).toBe(1);
  left.socket.terminate();
  await until('the viewer is gone', () => transport.sessions === 0 && transport.fanout.counters().viewers === 0, { deadlineMs: 5000 });
  const stays = new Player('/app/stream');
  await stays.offer();
  attached.close({ code: 'peer-left', detail: 'the encoder stopped' });
  attached.close({ code: 'peer-left', detail: 'the encoder stopped' });
  await until('the connection of the other player is closed', () => stays.closed, { deadlineMs: 5000 });
  expect(transport.sessions).toBe(0);
  const late = new Player('/app/stream');
  await late.send({ command: 'request_offer' });
  expect(await late.hears(1)).toEqual({ code: 404, error: 'Cannot create offer' });
});

test('a player that repeats its request while an origin is asked gets one offer', async () => {
  attached.close({ code: 'peer-left', detail: 'the encoder stopped' });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  found = promise;
  const player = new Player('/app/stream');
  for (let n = 0; n < 3; n += 1) await player.send({ command: 'request_offer' });
  await player.send({ command: 'ping' });
  expect(await player.hears(1)).toEqual({ command: 'pong' });
  attached = publisher.attach(stream, SETTINGS);
  attached.onTracks(stream.tracks);
  resolve(true);
  expect(await player.hears(2)).toMatchObject({ command: 'offer' });
  await player.send({ command: 'ping' });
  expect(await player.hears(3)).toEqual({ command: 'pong' });
  expect(transport.sessions).toBe(1);
});

test('200 players connect and leave without a leak', async () => {
  for (let round = 0; round < 200; round += 1) {
    const session = publisher.openSession(
      { vhost: 'default', app: 'app', stream: 'stream', playlist: '' },
      { client: 'test', onEnded: () => undefined },
    );
    session.answered(answerTo(session.offer()));
    session.close('enough');
  }
  expect(transport.sessions).toBe(0);
  expect(transport.fanout.counters().viewers).toBe(0);
  expect(attached.viewers).toBe(0);
});

test('B-frames are warned about once, naming the setting of the encoder', () => {
  const [track] = stream.tracks;
  if (track?.type !== 'video') throw new Error('no video');
  const packet = { track, pts: 3000, dts: 0, duration: 3000, keyframe: true, data: Buffer.from('0000000265880000', 'hex').subarray(0, 6) };
  attached.onPacket(packet);
  attached.onPacket(packet);
  expect(logger.lines.filter(({ message }) => message.includes('bframes=0')).length).toBe(1);
});

test('a track that viewers cannot get is reported once per stream, in the log and in its information, until the tracks change', () => {
  const aac: AudioTrack = { ...OPUS, id: 4, codec: 'AAC', variantName: 'aac' };
  stream.tracks = [video(1, 'low'), aac];
  attached.onTracks(stream.tracks);
  const watch = (): void => {
    const session = publisher.openSession(
      { vhost: 'default', app: 'app', stream: 'stream', playlist: '' },
      { client: 'test', onEnded: () => undefined },
    );
    session.answered(answerTo(session.offer()));
    session.close('enough');
  };
  // A TCP port of media that is in use is reported, too.
  const isOfPort = (message: string): boolean => message.startsWith('media over TCP is not offered');
  const lines = () => logger.lines.filter(({ level, message }) => level === 'warn' && !isOfPort(message)).map(({ message }) => message);
  const told = [expect.stringMatching(/^viewers over WebRTC get no audio: it is in AAC/)];
  expect(attached.warnings).toEqual([]);
  watch();
  watch();
  expect([lines(), attached.warnings]).toEqual([told, told]);
  stream.tracks = [video(1, 'low'), OPUS];
  attached.onTracks(stream.tracks);
  watch();
  expect([lines(), attached.warnings]).toEqual([told, []]);
});

describe('WHEP', () => {
  test('answers 503 while another server may have the stream, and while the server is drained', async () => {
    const ask = async (): Promise<[number, string]> => {
      const response = await fetch(url('/app/other?direction=whep'), { method: 'POST', body: offer('H264') });
      return [response.status, await response.text()];
    };
    expect((await ask())[0]).toBe(404);
    finder.draining = true;
    expect(await ask()).toEqual([503, expect.stringContaining('is being drained')]);
    finder.draining = false;
    unknown = true;
    expect(await ask()).toEqual([503, expect.stringContaining('the origin map does not answer')]);
  });

  const url = (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  const offer = (codec: string, mode = 1): string =>
    [
      'v=0',
      'o=- 1 2 IN IP4 127.0.0.1',
      's=-',
      't=0 0',
      `a=fingerprint:sha-256 ${FINGERPRINT}`,
      'a=ice-ufrag:abcd',
      'a=ice-pwd:0123456789012345678901',
      'a=setup:actpass',
      'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
      'a=mid:d',
      'm=video 9 UDP/TLS/RTP/SAVPF 41 42 43 44',
      'a=mid:0',
      'a=recvonly',
      'a=extmap:7 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
      `a=rtpmap:41 ${codec}/90000`,
      'a=fmtp:41 packetization-mode=0;profile-level-id=42e01f',
      `a=rtpmap:42 ${codec}/90000`,
      `a=fmtp:42 packetization-mode=${mode};profile-level-id=42e01f`,
      'a=rtcp-fb:42 nack',
      'a=rtcp-fb:42 nack pli',
      'a=rtpmap:43 rtx/90000',
      'a=fmtp:43 apt=42',
      '',
    ].join('\r\n');

  test('an offer is answered when it is the turn of its viewer', async () => {
    held = new HeldTurns();
    const { waiting } = held;
    const replies = [1, 2].map(() => fetch(url('/app/stream?direction=whep'), { method: 'POST', body: offer('H264') }));
    await until('two waiting requests', () => waiting.length === 2, { deadlineMs: 5000 });
    expect([transport.sessions, waiting.map(({ client }) => client)]).toEqual([0, ['192.0.2.1', '192.0.2.1']]);
    waiting[0]?.enter();
    waiting[1]?.refused('there is no room');
    const statuses = (await Promise.all(replies)).map(({ status }) => status);
    expect([statuses.sort(), transport.sessions]).toEqual([[201, 503], 1]);
  });

  test('the answer keeps the payload types of the offer and rejects unplayable media', async () => {
    const response = await fetch(url('/app/stream?direction=whep'), { method: 'POST', body: offer('H264') });
    const answer = await response.text();
    expect(response.status).toBe(201);
    expect(response.headers.get('content-type')).toBe('application/sdp');
    expect(response.headers.get('etag')).toMatch(/^\w{8}$/);
    expect(logger.lines.map(({ message }) => message)).toContain('viewer gets no audio: its player supports none of OPUS');
    expect(answer).toContain('m=application 0 ');
    expect(answer).toContain('m=video 9 UDP/TLS/RTP/SAVPF 42 43');
    expect(answer).toContain('a=setup:passive');
    expect(answer).toContain('a=extmap:7 ');
    expect(answer).toContain('a=group:BUNDLE 0\r\n');
    expect(answer).toMatch(/a=candidate:\d+ 1 UDP 50 127\.0\.0\.1 \d+ typ host/);
    const location = response.headers.get('location') ?? '';
    const patch = (body: string): Promise<Response> => fetch(url(location), { method: 'PATCH', body });
    expect((await patch('a=ice-ufrag:x\r\n')).status).toBe(204);
    expect((await patch('hello')).status).toBe(400);
    expect(transport.sessions).toBe(1);
    expect((await fetch(url(location), { method: 'DELETE' })).status).toBe(200);
    expect((await fetch(url(location), { method: 'DELETE' })).status).toBe(404);
    expect((await patch('a=ice-ufrag:x\r\n')).status).toBe(404);
    expect(transport.sessions).toBe(0);
  });

  test.each([
    ['a codec that the stream lacks', offer('AV1'), 406],
    ['fragments that cannot be sent', offer('H264', 0), 406],
    ['no fingerprint', offer('H264').replace(/a=fingerprint.*\r\n/, ''), 400],
    ['no ICE password', offer('H264').replace(/a=ice-pwd.*\r\n/, ''), 400],
    ['too much', 'v=0\r\n'.padEnd(70_000, 'x'), 413],
  ])('%s is refused and leaves no session', async (_name, body, status) => {
    const response = await fetch(url('/app/stream?direction=whep'), { method: 'POST', body });
    expect(response.status).toBe(status);
    const text = await response.text();
    expect(text).not.toBe('');
    if (status !== 413)
      expect(logger.matching(`viewer refused: ${text.trim()}`)).toMatchObject([{ level: 'info', fields: { stream: 'stream' } }]);
    expect(transport.sessions).toBe(0);
  });

  test('relays and origins are as with WHIP', async () => {
    const path = '/app/stream?direction=whep&transport=tcp';
    const response = await fetch(url(path), { method: 'POST', body: offer('H264'), headers: { Origin: 'https://a.example' } });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([201, '*']);
    expect(response.headers.get('link')).toBe(
      '<turn:192.0.2.9:3478?transport=tcp>; rel="ice-server"; username="me"; credential="secret"; credential-type="password"',
    );
    expect(response.headers.get('access-control-expose-headers')).toBe('Location, Link, ETag');
  });

  test('WHIP gets the answer that publishing is off', async () => {
    const response = await fetch(url('/app/stream?direction=whip'), { method: 'POST', body: 'v=0' });
    expect([response.status, await response.text()]).toEqual([404, 'this port does not listen for publishers over WebRTC\n']);
  });
});
