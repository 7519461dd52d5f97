/** The bytes for an attacker who sends checks from a forged address, with sockets, for both ways of sending. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CheckSender } from '../../../../test/fakes/check-sender.ts';
import { FakeStream } from '../../../../test/fakes/fake-stream.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import { PEER_PASSWORD } from '../../../../test/fakes/webrtc-peer.ts';
import { WebrtcViewer } from '../../../../test/fakes/webrtc-viewer.ts';
import { until } from '../../../../test/harness/poll.ts';
import { loadAddon } from '../../../native/addon.ts';
import { systemClock } from '../../../util/clock.ts';
import { PeerTransport } from '../transport/peer-transport.ts';
import { WebrtcPublisher } from './webrtc-publisher.ts';
import type { WebrtcStream } from './webrtc-stream.ts';

const WAIT = { deadlineMs: 20_000, everyMs: 5 };
const TRACK = videoTrack({ id: 1, variantName: 'video', bitrateConf: 0, config: null, codecString: 'avc1.42c01e' });
const SETTINGS = {
  rtx: true,
  bandwidthEstimation: 'REMB',
  ulpfec: false,
  jitterBuffer: false,
  createDefaultPlaylist: true,
  timeout: 30_000,
} as const;
const TARGET = { vhost: 'default', app: 'app', stream: 'stream', playlist: '' };
const KINDS = loadAddon().addon === null ? ['script'] : ['native', 'script'];

describe.each(KINDS)('%s', (kind) => {
  let transport: PeerTransport;
  let publisher: WebrtcPublisher;
  let stream: WebrtcStream;
  let viewer: WebrtcViewer;
  let others: CheckSender[];
  let sent = 0;

  beforeEach(async () => {
    if (kind === 'script') vi.stubEnv('MILLRACE_NATIVE', 'off');
    const logger = new RecordingLogger();
    const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
    transport = await PeerTransport.open({ ports, tcp: false, threads: 1, clock: systemClock, logger });
    vi.unstubAllEnvs();
    publisher = new WebrtcPublisher({ transport, clock: systemClock, logger });
    const source = new FakeStream();
    source.tracks = [TRACK];
    const playlist = publisher.defaultPlaylist(source.tracks, SETTINGS);
    source.playlists = playlist === null ? [] : [playlist];
    stream = publisher.attach(source, SETTINGS);
    stream.onTracks(source.tracks);
    viewer = new WebrtcViewer();
    others = [];
    sent = 0;
  });

  afterEach(async () => {
    for (const other of others) other.close();
    viewer.close();
    publisher.stop();
    await transport.close();
  });

  /** A session that waits for its viewer, and an attacker at `127.0.0.2` who knows its password. */
  async function open(): Promise<{ other: CheckSender; connect: () => Promise<void> }> {
    const session = publisher.openSession(TARGET, { client: 'test', onEnded: () => undefined });
    const offer = session.offer();
    session.answered(viewer.answer(offer));
    const candidates = session.candidates();
    const attribute = (name: string): string => new RegExp(`^a=${name}:(.*?)\r?$`, 'm').exec(offer)?.[1] ?? '';
    const port = Number(candidates[0]?.split(' ')[5]);
    const other = await CheckSender.open('127.0.0.2', { port, ufrag: attribute('ice-ufrag'), password: attribute('ice-pwd') });
    others.push(other);
    return {
      other,
      connect: async () => {
        await viewer.connect(offer, candidates);
        await until('the viewer is connected', () => viewer.connected, WAIT);
      },
    };
  }

  function push(): void {
    const data = Buffer.alloc(1000, 7);
    data.writeUInt32BE(data.length - 4);
    data[4] = 0x65;
    stream.onPacket({ track: TRACK, pts: sent * 3000, dts: sent * 3000, duration: 3000, keyframe: true, data });
    sent += 1;
  }

  test('a nomination from an unresponsive address does not move the stream, and triggers at most three times its bytes', async () => {
    const { other, connect } = await open();
    await connect();
    push();
    await until('the first frame', () => viewer.received > 0, WAIT);
    other.check();
    await until('the check is answered, and another made', () => other.kinds.stun >= 2, WAIT);
    const before = viewer.received;
    for (let n = 0; n < 100; n += 1) push();
    await until('the viewer has got them', () => viewer.received >= before + 100, WAIT);
    other.check();
    await until('answers to both checks', () => other.kinds.stun >= 4, WAIT);
    expect([other.kinds.media, other.kinds.dtls]).toEqual([0, 0]);
    expect(other.received).toBeLessThanOrEqual(3 * other.sent);
  });

  test('a handshake does not start with an unverified address, and starts with a verified one', async () => {
    const { other, connect } = await open();
    other.check();
    await until('it is answered', () => other.kinds.stun >= 1, WAIT);
    // The greeting of a client, as the real client sends it a moment later: its content does not matter here.
    for (let n = 0; n < 20; n += 1) other.send(Buffer.alloc(100, 22));
    await connect();
    push();
    await until('the viewer plays', () => viewer.received > 0, WAIT);
    expect([other.kinds.media, other.kinds.dtls]).toEqual([0, 0]);
    expect(other.received).toBeLessThanOrEqual(3 * other.sent);
  });

  test('another path of the viewer takes over when it answers', async () => {
    const { other, connect } = await open();
    await connect();
    push();
    await until('the first frame', () => viewer.received > 0, WAIT);
    other.answer(PEER_PASSWORD);
    other.check();
    await until(
      'media comes by it',
      () => {
        push();
        return other.kinds.media > 0;
      },
      WAIT,
    );
  });

  test('an answer with another password than the viewer’s is ignored', async () => {
    const { other, connect } = await open();
    await connect();
    other.answer('anotherpasswordanotherpassword');
    other.check();
    await until('the server has its answer', () => other.kinds.stun >= 2, WAIT);
    const before = viewer.received;
    for (let n = 0; n < 50; n += 1) push();
    await until('the viewer has got them', () => viewer.received >= before + 50, WAIT);
    expect(other.kinds.media).toBe(0);
  });
});
