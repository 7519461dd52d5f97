import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import {
  FANOUT_KINDS,
  FanoutBench,
  FanoutPeer,
  frame,
  keysFor,
  nackOf,
  nothingHeard,
  PLI,
  VIDEO,
  WAIT,
} from '../../../../../test/fakes/fanout-bench.ts';
import { until } from '../../../../../test/harness/poll.ts';
import { SrtpProfile } from '../../../../wire/srtp/profile.ts';
import { MAX_PLACES } from './fanout.ts';

const bench = new FanoutBench();

afterEach(() => {
  bench.close();
});

/** A link-local address of this machine with its zone; empty when it has none. */
function linkLocal(): string {
  const found = Object.entries(networkInterfaces()).flatMap(([name, list]) =>
    (list ?? []).filter(({ address }) => address.startsWith('fe80')).map(({ address }) => `${address}%${name}`),
  );
  return found[0] ?? '';
}

describe.each(FANOUT_KINDS)('%s', (kind) => {
  const start = () => bench.start(kind);

  test('packets of a viewer are received from each of its addresses, even from those named before its keys', async () => {
    const heard = nothingHeard();
    const fanout = bench.open(kind, heard);
    const { socket, port } = await fanout.bind('127.0.0.1', 0);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await bench.openPeer(keys);
    const others = await Promise.all([bench.openPeer(keys), bench.openPeer(keys), bench.openPeer(keys)]);
    const placeOf = ({ socket: from }: FanoutPeer): { host: string; port: number } => ({ host: '127.0.0.1', port: from.address().port });
    const [before, after, stranger] = others as [FanoutPeer, FanoutPeer, FanoutPeer];
    const viewer = fanout.openViewer({ cname: 'somebody', slots: [VIDEO] });
    for (let n = 0; n < 20; n += 1) fanout.hear(viewer, socket, placeOf(before));
    fanout.connect(viewer, socket, placeOf(peer));
    fanout.setKeys(viewer, keys);
    fanout.hear(viewer, socket, placeOf(after));
    const pli = Buffer.from([0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
    // Each packet has its own number: a second packet of the same number would be a replay.
    const say = ({ socket: from }: FanoutPeer): void => from.send(peer.seal(pli), port, '127.0.0.1');
    for (const one of [before, peer, after, stranger]) say(one);
    await until(
      'feedback from three addresses, and one stranger',
      () => heard.rtcp.length === 3 && fanout.counters().strangers === 1,
      WAIT,
    );
    for (let n = 0; n < MAX_PLACES; n += 1) fanout.hear(viewer, socket, { host: '127.0.0.2', port: 1000 + n });
    say(before);
    await until('the oldest address is forgotten', () => fanout.counters().strangers === 2, WAIT);
    fanout.closeViewer(viewer);
    say(after);
    await until('a packet of the removed viewer counts as a stranger', () => fanout.counters().strangers === 3, WAIT);
    expect(heard.rtcp.length).toBe(3);
  });

  test.each(['::1', linkLocal()].filter((host) => host !== ''))('a viewer at %s can send and receive', async (host) => {
    const heard = nothingHeard();
    const fanout = bench.open(kind, heard);
    const { socket, port } = await fanout.bind(host, 0);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = new FanoutPeer(createSocket('udp6'), keys);
    bench.onClose(() => peer.socket.close());
    await new Promise<void>((resolve) => peer.socket.bind(0, host, resolve));
    peer.socket.send(Buffer.of(0, 1), port, host);
    await until('the first datagram', () => heard.stun.length === 1, WAIT);
    // Answers go where it came from, the zone included.
    const to = { host: heard.stunHosts[0] ?? '', port: peer.socket.address().port };
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    const viewer = fanout.openViewer({ cname: 'six', slots: [VIDEO] });
    fanout.setKeys(viewer, keys);
    fanout.connect(viewer, socket, to);
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [100, 200]));
    await until('two packets', () => peer.video.length === 2, WAIT);
    peer.socket.send(peer.seal(PLI), port, host);
    await until('feedback', () => heard.rtcp.length === 1, WAIT);
    expect(fanout.viewerCounters(viewer)).toMatchObject({ packets: 2, sendErrors: 0, received: 1 });
    // Sender reports may come before the answer.
    const received: string[] = [];
    peer.socket.removeAllListeners('message').on('message', (bytes) => received.push(bytes.toString()));
    expect(fanout.send(socket, to, Buffer.from('hello'))).toBe(true);
    await until('the answer', () => received.includes('hello'), WAIT);
  });

  test('packets of unknown addresses and forged packets are counted; STUN and DTLS are passed on', async () => {
    const { fanout, viewer, port, peer, heard } = await start();
    const stranger = createSocket('udp4');
    bench.onClose(() => stranger.close());
    const forged = Buffer.alloc(60, 1);
    forged.set([0x80, 201, 0, 1]);
    stranger.send(forged, port, '127.0.0.1');
    stranger.send(Buffer.of(200, 1), port, '127.0.0.1');
    await until('two strangers', () => fanout.counters().strangers === 2, WAIT);
    peer.socket.send(forged, port, '127.0.0.1');
    await until('a forgery', () => fanout.viewerCounters(viewer)?.refused === 1, WAIT);
    stranger.send(Buffer.of(0, 1, 2), port, '127.0.0.1');
    stranger.send(Buffer.of(22, 1, 2), port, '127.0.0.1');
    await until('the STUN and the DTLS packet', () => heard.stun.length === 1 && heard.dtls.length === 1, WAIT);
    expect(heard.rtcp).toEqual([]);
  });

  test.runIf(kind === 'native, batched')(
    'a busy main thread keeps separate bounded queues for unknown addresses and for each viewer',
    async () => {
      const { fanout, socket, port, peer, heard } = await start();
      const loudKeys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
      const loud = await bench.openPeer(loudKeys);
      const viewer = fanout.openViewer({ cname: 'loud', slots: [] });
      fanout.setKeys(viewer, loudKeys);
      fanout.connect(viewer, socket, { host: '127.0.0.1', port: loud.socket.address().port });
      const stranger = createSocket('udp4');
      bench.onClose(() => stranger.close());
      for (const end of [stranger, loud.socket, peer.socket]) await new Promise<void>((resolve) => end.connect(port, '127.0.0.1', resolve));
      loud.socket.send(loud.seal(PLI));
      peer.socket.send(peer.seal(PLI));
      await until('feedback of both viewers', () => heard.rtcp.length === 2, WAIT);
      const before = fanout.counters().datagramsReceived;
      let sent = 0;
      const send = (end: Socket, bytes: Buffer): void => {
        end.send(bytes);
        sent += 1;
        // No event is delivered meanwhile: this never lets the event loop run.
        const deadline = performance.now() + 2000;
        while (sent % 64 === 0 && fanout.counters().datagramsReceived < before + sent && performance.now() < deadline);
      };
      for (let n = 0; n < 3008; n += 1) send(stranger, Buffer.of(0, 1, 2));
      for (let n = 0; n < 3008; n += 1) send(loud.socket, loud.seal(PLI));
      for (let n = 0; n < 32; n += 1) {
        send(peer.socket, peer.seal(PLI));
        send(peer.socket, Buffer.of(0, 9));
      }
      const { droppedEvents, droppedStrangers } = fanout.counters();
      expect([droppedStrangers, droppedEvents]).toEqual([960, 960]);
      await until('all queued feedback', () => heard.rtcp.length === 2 + 2048 + 32, WAIT);
      expect([heard.stun.length, heard.stun.filter(([, second]) => second === 9).length]).toEqual([2048 + 32, 32]);
    },
  );

  test('a viewer over TCP gets its packets framed, and its feedback counts', async () => {
    const heard = nothingHeard();
    const fanout = bench.open(kind, heard);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await bench.openPeer(keys);
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    const viewer = fanout.openViewer({ cname: 'tcp', slots: [VIDEO] });
    fanout.setKeys(viewer, keys);
    fanout.connectTcp(viewer);
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [100, 200]));
    const drain = (): number => {
      const bytes = Buffer.concat(heard.tcp.splice(0));
      for (let at = 0; at < bytes.length; ) {
        const length = bytes.readUInt16BE(at);
        peer.take(bytes.subarray(at + 2, at + 2 + length));
        at += 2 + length;
      }
      return peer.video.length;
    };
    await until('two packets', () => drain() === 2, WAIT);
    fanout.inject(viewer, peer.seal(nackOf(VIDEO.ssrc, peer.video[0]?.sequence ?? 0, 0)));
    await until(
      'one retransmission',
      () => {
        drain();
        return peer.again.length === 1;
      },
      WAIT,
    );
    expect(peer.again[0]?.payload.length).toBe(100);
  });

  test.runIf(kind === 'native, batched')('packets over TCP beyond the reader’s pace are dropped and counted', async () => {
    const { fanout, viewer } = await bench.start(kind, SrtpProfile.AES128_CM_SHA1_80);
    // Detecting the forgery takes several times as long as passing the packet on.
    const forged = Buffer.alloc(65_000, 0x80);
    let given = 0;
    for (; given < 1000 && fanout.counters().droppedInjected === 0; given += 1) fanout.inject(viewer, forged);
    expect(fanout.counters().droppedInjected).toBe(1);
    await until('the other packets are sent or refused', () => fanout.viewerCounters(viewer)?.refused === given - 1, WAIT);
    fanout.inject(viewer, forged);
    await until('room for packets again', () => fanout.viewerCounters(viewer)?.refused === given, WAIT);
    expect(fanout.counters().droppedInjected).toBe(1);
  });

  test('an occupied port is refused with the reason', async () => {
    const { fanout, port } = await start();
    await expect(fanout.bind('127.0.0.1', port)).rejects.toThrow(/in use|EADDRINUSE/);
  });
});
