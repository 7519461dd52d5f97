import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { FakeStream } from '../../../../test/fakes/fake-stream.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import { WebrtcViewer } from '../../../../test/fakes/webrtc-viewer.ts';
import { until } from '../../../../test/harness/poll.ts';
import { memoryInUse } from '../../../../test/support/memory.ts';
import { Urgency } from '../../../core/urgency.ts';
import type { Packet } from '../../../media/packet.ts';
import type { VideoTrack } from '../../../media/track.ts';
import { loadAddon } from '../../../native/addon.ts';
import { systemClock } from '../../../util/clock.ts';
import { buildRemb } from '../../../wire/rtp/receiver-feedback.ts';
import { PeerTransport } from '../transport/peer-transport.ts';
import type { PlaySession } from './play-session.ts';
import { WebrtcPublisher } from './webrtc-publisher.ts';
import type { WebrtcStream } from './webrtc-stream.ts';

const WAIT = { deadlineMs: 20_000, everyMs: 5 };
const TARGET = { vhost: 'default', app: 'app', stream: 'stream', playlist: '' };
const SETTINGS = { rtx: true, bandwidthEstimation: 'REMB', ulpfec: false, jitterBuffer: false, createDefaultPlaylist: true } as const;

function track(id: number, variantName: string): VideoTrack {
  return videoTrack({ id, variantName, bitrateConf: 0, config: null, codecString: 'avc1.42c01e' });
}

const LOW = track(1, 'low');
const HIGH = track(2, 'high');

/** An access unit of one slice that says which track and frame it is. */
function packet(of: VideoTrack, frame: number, keyframe: boolean): Packet {
  const data = Buffer.from([0, 0, 0, 4, keyframe ? 0x65 : 0x41, of.id, frame >> 8, frame & 0xff]);
  return { track: of, pts: frame * 3000, dts: frame * 3000, duration: 3000, keyframe, data };
}

let logger: RecordingLogger;
let transport: PeerTransport;
let publisher: WebrtcPublisher;
let source: FakeStream;
let stream: WebrtcStream;
let viewers: WebrtcViewer[];
let timeout = 30_000;
let threads = 2;
let bandwidthEstimation: 'REMB' | 'TransportCC' = 'REMB';

async function start(): Promise<void> {
  logger = new RecordingLogger();
  const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
  transport = await PeerTransport.open({ ports, tcp: false, threads, clock: systemClock, logger });
  publisher = new WebrtcPublisher({ transport, clock: systemClock, logger });
  source = new FakeStream();
  source.tracks = [LOW, HIGH];
  const both = [LOW, HIGH].map(({ variantName }) => ({
    name: variantName,
    videoVariantName: variantName,
    audioVariantName: '',
    videoIndexHint: -1,
    audioIndexHint: -1,
  }));
  const options = { webrtcAutoAbr: false, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true };
  source.playlists = [{ name: '', fileName: 'webrtc_default', options, renditions: both }];
  stream = publisher.attach(source, { ...SETTINGS, timeout, bandwidthEstimation });
  stream.onTracks(source.tracks);
  viewers = [];
}

beforeEach(async () => {
  timeout = 30_000;
  threads = 2;
  bandwidthEstimation = 'REMB';
  await start();
});

afterEach(async () => {
  for (const viewer of viewers) viewer.close();
  publisher.stop();
  await transport.close();
});

async function watch(): Promise<{ viewer: WebrtcViewer; session: PlaySession; ends: string[]; renditions: string[] }> {
  const ends: string[] = [];
  const renditions: string[] = [];
  const onRendition = (name: string): void => {
    renditions.push(name);
  };
  const session = publisher.openSession(TARGET, { client: 'test', onEnded: (reason) => ends.push(reason), onRendition });
  const viewer = new WebrtcViewer();
  viewers.push(viewer);
  const offer = session.offer();
  session.answered(viewer.answer(offer));
  await viewer.connect(offer, session.candidates());
  await until('the viewer is connected', () => viewer.connected, WAIT);
  return { viewer, session, ends, renditions };
}

test.each(['without', 'with'])('%s the addon the offer lists only supported extensions', async (addon) => {
  if (addon === 'with' && loadAddon().addon === null) return;
  if (addon === 'without') vi.stubEnv('MILLRACE_NATIVE', 'off');
  const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
  const other = await PeerTransport.open({ ports, tcp: false, threads: 1, clock: systemClock, logger });
  vi.unstubAllEnvs();
  onTestFinished(() => other.close());
  const sending = new WebrtcPublisher({ transport: other, clock: systemClock, logger });
  onTestFinished(() => sending.stop());
  const settings = { ...SETTINGS, timeout, ulpfec: true, bandwidthEstimation: 'TransportCC' } as const;
  sending.attach(source, settings).onTracks(source.tracks);
  const session = sending.openSession(TARGET, { client: 'test', onEnded: () => undefined });
  const offer = session.offer();
  session.close('enough');
  const lines = ['a=rtpmap:120 red/90000', 'a=rtcp-fb:98 transport-cc', 'a=rtcp-fb:98 goog-remb'];
  expect(lines.map((line) => offer.includes(`${line}\r\n`))).toEqual(addon === 'with' ? [true, true, false] : [false, false, true]);
  const told = logger.lines.filter(({ message }) => message.includes('need the native addon'));
  expect(told).toHaveLength(addon === 'with' ? 0 : 1);
});

test('a viewer gets the stream from the next keyframe on, and counts', async () => {
  expect(stream.urgency).toBe(Urgency.NONE);
  const { viewer } = await watch();
  await until('the session plays', () => source.viewers === 1, WAIT);
  expect(stream.urgency).toBe(Urgency.REAL_TIME);
  // The encoder of a bypassed stream cannot know when a keyframe is needed, so it is asked.
  expect(source.keyframeRequests).toEqual([LOW.id]);
  stream.onPacket(packet(LOW, 0, false));
  for (let frame = 1; frame <= 20; frame += 1) stream.onPacket(packet(LOW, frame, frame % 10 === 1));
  await until('twenty packets', () => viewer.packets.length === 20, WAIT);
  expect(viewer.packets.map(({ payload }) => payload.readUInt16BE(2))).toEqual(Array.from({ length: 20 }, (_unused, n) => n + 1));
  expect(viewer.packets.map(({ timestamp }) => timestamp)[4]).toBe(15_000);
  await until('bytes are counted', () => source.bytes > 20 * 12, WAIT);
});

test('a rendition change happens at a keyframe with continuous sequence numbers, and is reported then', async () => {
  const { viewer, session, renditions } = await watch();
  await until('the session plays', () => source.viewers === 1, WAIT);
  let frame = 0;
  const both = (keyframe: boolean): void => {
    stream.onPacket(packet(LOW, frame, keyframe));
    stream.onPacket(packet(HIGH, frame, keyframe));
    frame += 1;
  };
  both(true);
  both(false);
  await until('two packets of the first rendition', () => viewer.packets.length === 2, WAIT);
  expect(session.changeRendition('nothing')).toBe(false);
  expect(session.changeRendition('high')).toBe(true);
  expect(source.keyframeRequests).toEqual([LOW.id, HIGH.id]);
  both(false);
  expect(renditions).toEqual(['low']);
  both(true);
  expect(renditions).toEqual(['low', 'high']);
  both(false);
  await until('the last packet of the other rendition', () => viewer.packets.at(-1)?.timestamp === 12_000, WAIT);
  // The packets may include the keyframe of the old rendition, which comes at the same time.
  const tracks = viewer.packets.map(({ payload }) => payload[1]);
  expect(tracks.join('')).toMatch(/^111?122$/);
  const first = viewer.packets[0]?.sequence ?? 0;
  expect(viewer.packets.map(({ sequence }) => sequence - first)).toEqual(tracks.map((_track, n) => n));
  const times = viewer.packets.map(({ timestamp }) => timestamp);
  expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
});

test('an estimate changes the rendition only of viewers with automatic selection', async () => {
  const { session } = await watch();
  source.figuresById.set(LOW.id, { bitrateAvg: 500_000 }).set(HIGH.id, { bitrateAvg: 2_000_000 });
  const room = 2 ** 23;
  const estimate = (): void => session.rtcp(Buffer.from(buildRemb(1, room, [2])));
  estimate();
  expect([session.auto, session.estimate, session.rendition?.name]).toEqual([false, room, 'low']);
  session.setAuto(true);
  estimate();
  expect(session.rendition?.name).toBe('high');
});

test('the viewer is told its current rendition until the change happens', async () => {
  const { session, renditions } = await watch();
  await until('the session plays', () => source.viewers === 1, WAIT);
  for (const rendition of [LOW, HIGH]) stream.onPacket(packet(rendition, 0, true));
  session.changeRendition('high');
  session.setAuto(true);
  expect(renditions).toEqual(['low', 'low']);
  // The change is reverted before it took effect: nothing is waited for.
  session.changeRendition('low');
  expect(renditions).toEqual(['low', 'low', 'low']);
  for (const rendition of [LOW, HIGH]) stream.onPacket(packet(rendition, 1, true));
  expect(renditions.length).toBe(3);
  session.changeRendition('high');
  stream.onPacket(packet(HIGH, 2, true));
  session.setAuto(false);
  expect(renditions.slice(3)).toEqual(['high', 'high']);
});

test('a viewer that lost frames gets a keyframe, also of an encode, once a second at most', async () => {
  const encoded = { ...LOW, bypass: false };
  source.tracks = [encoded, HIGH];
  stream.onTracks(source.tracks);
  const { session } = await watch();
  await until('the session plays', () => source.viewers === 1, WAIT);
  // A new viewer waits for the keyframes that all renditions share.
  expect(source.keyframeRequests).toEqual([]);
  const loss = Buffer.from([0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
  session.rtcp(loss);
  session.rtcp(loss);
  expect(source.keyframeRequests).toEqual([LOW.id]);
  expect(session.keyframeRequests).toBe(2);
});

test('the log gives the reason once why frames of a track cannot be sent', () => {
  const broken = { ...packet(LOW, 0, true), data: Buffer.from([0, 0, 0, 99, 0x65]) };
  stream.onPacket(broken);
  stream.onPacket(broken);
  const warnings = logger.lines.filter(({ message }) => message.startsWith('frames of a track'));
  expect(warnings.map(({ fields }) => fields)).toEqual([expect.objectContaining({ track: LOW.id, reason: expect.stringMatching(/./) })]);
  stream.close({ code: 'peer-left', detail: 'enough' });
  const last = logger.lines.find(({ message }) => message === 'frames of a track were not sent over WebRTC until its end');
  expect(last?.fields).toMatchObject({ track: LOW.id, refused: 2 });
});

test('a viewer that closes its connection is removed at once', async () => {
  const { viewer, ends } = await watch();
  await until('the session plays', () => source.viewers === 1, WAIT);
  for (let frame = 0; frame < 10; frame += 1) stream.onPacket(packet(LOW, frame, frame === 0));
  await until('all packets', () => viewer.packets.length === 10, WAIT);
  viewer.close();
  await until('the end of the session', () => ends.length === 1, WAIT);
  expect(ends[0]).toBe('the peer closed the connection');
  expect(source.bytes).toBeGreaterThan(100);
  const closing = logger.lines.find(({ message }) => message === 'viewer session closed: the peer closed the connection');
  expect(closing?.fields).toMatchObject({ packets: 10, nacked: 0, resent: 0, sendErrors: 0, refused: 0, tcpDropped: 0 });
  expect([transport.sessions, source.viewers, transport.fanout.counters().viewers]).toEqual([0, 0, 0]);
});

test('a viewer that falls silent is removed after the timeout', async () => {
  publisher.stop();
  await transport.close();
  timeout = 1000;
  await start();
  const { viewer, ends } = await watch();
  viewer.close(true);
  await until('the end of the silent viewer', () => ends.length === 1, WAIT);
  expect(ends[0]).toContain('no connectivity check was answered for 1000 ms');
  const never = publisher.openSession(TARGET, { client: 'test', onEnded: (reason) => ends.push(reason) });
  never.answered(new WebrtcViewer().answer(never.offer()));
  await until('the end of the viewer that never connected', () => ends.length === 2, WAIT);
  expect(ends[1]).toContain('is the UDP port reachable');
  const [line] = logger.lines.filter(({ message }) => message.includes('is the UDP port reachable')).slice(-1);
  expect(line?.message).toMatch(/^viewer session closed: .*; offered nothing; the peer announced no address; no connectivity check came$/);
});

test('a viewer without consent gets no packets, and with consent again the stream from the next keyframe on', async () => {
  publisher.stop();
  await transport.close();
  // With one thread, a packet that has reached one viewer has also been sent to the other.
  threads = 1;
  await start();
  const { viewer, session } = await watch();
  const { viewer: other } = await watch();
  stream.onPacket(packet(LOW, 0, true));
  await until('the first frame', () => viewer.packets.length === 1, WAIT);
  session.consented(false);
  stream.onPacket(packet(LOW, 1, true));
  // A viewer that comes before a keyframe has left gets it.
  await until('the frame at another viewer', () => other.packets.at(-1)?.payload.at(-1) === 1, WAIT);
  session.consented(true);
  stream.onPacket(packet(LOW, 2, false));
  stream.onPacket(packet(LOW, 3, true));
  await until('the last frame', () => viewer.packets.at(-1)?.payload.at(-1) === 3, WAIT);
  expect(viewer.packets.map(({ payload }) => payload.at(-1))).toEqual([0, 3]);
});

test('the log lists the connectivity checks of a viewer that does not connect', async () => {
  const session = publisher.openSession(TARGET, { client: '127.0.0.1', onEnded: () => undefined });
  const viewer = new WebrtcViewer();
  viewers.push(viewer);
  const offer = session.offer();
  const candidates = session.candidates();
  session.answered(`${viewer.answer(offer)}a=candidate:1 1 udp 1 192.0.2.77 7 typ host\r\n`);
  session.announced('a=candidate:2 1 UDP 1 192.0.2.78 8 typ srflx raddr 0.0.0.0 rport 0');
  await viewer.connect(offer.replace(/^a=ice-pwd:.*$/m, 'a=ice-pwd:wrong'), candidates);
  await until('checks are refused', () => session.attempts.includes('2 refused (wrong password)'), WAIT);
  const stranger = new WebrtcViewer();
  viewers.push(stranger);
  await stranger.connect(offer.replace(/^a=ice-ufrag:.*$/m, 'a=ice-ufrag:nobody'), candidates);
  await until('the stranger is heard', () => session.attempts.includes('unknown USERNAME'), WAIT);
  session.close('the player gave up');
  const line = logger.lines.find(({ message }) => message.startsWith('viewer session closed: the player gave up'))?.message ?? '';
  expect(line).toMatch(
    /^viewer session closed: the player gave up; offered udp 127\.0\.0\.1:\d+; announced by the peer udp 192\.0\.2\.77:7 \(host, no check came from it\), udp 192\.0\.2\.78:8 \(srflx, no check came from it\); connectivity checks from udp 127\.0\.0\.1:\d+ \d+ refused \(wrong password\); \d+ datagrams? from 127\.0\.0\.1 for no session, the last from udp 127\.0\.0\.1:\d+: a connectivity check with unknown USERNAME$/,
  );
});

test('a client that requests offers and never connects is refused at its limit, other clients are not', async () => {
  const ask = (client: string): PlaySession => publisher.openSession(TARGET, { client, onEnded: () => undefined });
  for (let n = 0; n < 256; n += 1) ask('192.0.2.1');
  expect(() => ask('192.0.2.1')).toThrow('not connected yet');
  const other = ask('192.0.2.2');
  other.close('enough');
  // Connecting sessions take no room.
  await watch();
  expect(() => ask('192.0.2.1')).toThrow('not connected yet');
});

test('a viewer is a session with its own byte count, and can be disconnected', async () => {
  const { viewer, session, ends } = await watch();
  const other = await watch();
  await until('two viewers of the source', () => source.viewers === 2, WAIT);
  const ids = source.sessions.map(({ request: { id, kind } }) => `${kind} ${id}`);
  expect(ids.sort()).toEqual([`webrtc ${session.id}`, `webrtc ${other.session.id}`].sort());
  for (let frame = 0; frame < 10; frame += 1) stream.onPacket(packet(LOW, frame, frame === 0));
  await until('all packets of both viewers', () => viewer.packets.length === 10 && other.viewer.packets.length === 10, WAIT);
  await until('bytes are counted', () => source.sessions.every(({ bytes }) => bytes > 100), WAIT);
  source.sessions.find(({ request }) => request.id === session.id)?.request.onTerminate('the test wants it');
  expect([ends, session.ended, source.viewers, source.ends]).toEqual([['the test wants it'], true, 1, ['the test wants it']]);
  expect([transport.sessions, transport.fanout.counters().viewers]).toEqual([1, 1]);
  stream.onPacket(packet(LOW, 10, false));
  await until('the next packet of the other viewer', () => other.viewer.packets.length === 11, WAIT);
  expect(viewer.packets.length).toBe(10);
});

test.skipIf(loadAddon().addon === null)(
  "packets are numbered for the server's estimate when the setting asks for it and the playlist has several renditions",
  async () => {
    const offer = (): string => publisher.openSession(TARGET, { client: 'test', onEnded: () => undefined }).offer();
    const lines = (text: string): string[] =>
      text.split('\r\n').filter((line) => /transport-wide|abs-send-time|transport-cc|remb/.test(line));
    const remb = ['a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time', 'a=rtcp-fb:98 goog-remb'];
    expect(lines(offer()).sort()).toEqual(remb);
    publisher.stop();
    await transport.close();
    bandwidthEstimation = 'TransportCC';
    await start();
    const numbered = 'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01';
    expect(lines(offer()).sort()).toEqual([numbered, 'a=rtcp-fb:98 transport-cc']);
    const [playlist] = source.playlists;
    if (playlist === undefined) throw new Error('there is no playlist');
    source.playlists = [{ ...playlist, renditions: playlist.renditions.slice(0, 1) }];
    expect(lines(offer()).sort()).toEqual(remb);
  },
);

test('a certificate other than the signalled one ends the session', async () => {
  const ends: string[] = [];
  const session = publisher.openSession(TARGET, { client: 'test', onEnded: (reason) => ends.push(reason) });
  const [viewer, other] = [new WebrtcViewer(), new WebrtcViewer()];
  viewers.push(viewer, other);
  const offer = session.offer();
  session.answered(other.answer(offer));
  await viewer.connect(offer, session.candidates());
  await until('the end of the session', () => ends.length === 1, WAIT);
  expect(ends[0]).toBe('the certificate is not the one that was signalled');
  expect(source.viewers).toBe(0);
});

/** Memory kept back by the sanitizer is not growth. */
const SANITIZED = (process.env['MILLRACE_NATIVE'] ?? '').includes('sanitized');
/** Allocators reach their size within this many. Under a sanitizer memory is meaningless, and a handshake takes ten times as long. */
const WARM_UP = SANITIZED ? 20 : 400;
const MEASURED = SANITIZED ? 40 : 200;
/** Bytes that a departed viewer may still cost, with its other end in the same process: a leaked viewer is 60 KiB and more. */
const MAX_HELD = 4096;
const MAX_RESIDENT = 49_152;
/** A leak grows in each round, the memory of an allocator in some. */
const ROUNDS = 3;

// Handshakes in JavaScript take too long for this many.
test.skipIf(loadAddon().addon === null)(
  '200 viewers connect and leave without growth of sockets or memory',
  async () => {
    const sockets = (): number => readdirSync('/proc/self/fd').length;
    const cycles = async (count: number): Promise<void> => {
      for (let done = 0; done < count; done += 10) {
        const ten = await Promise.all(Array.from({ length: 10 }, () => watch()));
        stream.onPacket(packet(LOW, done, true));
        for (const { viewer } of ten) viewer.close();
        viewers.length = 0;
        logger.lines.length = 0;
        await until('no session is left', () => transport.sessions === 0, WAIT);
      }
    };
    await cycles(WARM_UP);
    const growth = { held: Number.POSITIVE_INFINITY, resident: Number.POSITIVE_INFINITY };
    for (let round = 1; round <= ROUNDS && (growth.held >= MAX_HELD || growth.resident >= MAX_RESIDENT); round += 1) {
      const [open, before] = [sockets(), await memoryInUse()];
      await cycles(MEASURED);
      const after = await memoryInUse();
      expect([transport.sessions, transport.fanout.counters().viewers, source.viewers, source.sessions.length]).toEqual([0, 0, 0, 0]);
      expect(sockets()).toBeLessThanOrEqual(open + 2);
      if (SANITIZED) return;
      growth.held = Math.min(growth.held, (after.held - before.held) / MEASURED);
      growth.resident = Math.min(growth.resident, (after.resident - before.resident) / MEASURED);
    }
    expect(growth.held).toBeLessThan(MAX_HELD);
    expect(growth.resident).toBeLessThan(MAX_RESIDENT);
  },
  120_000,
);
