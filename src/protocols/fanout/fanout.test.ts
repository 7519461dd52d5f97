import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../../../test/e2e/support/poll.ts';
import { createCertificate, formatFingerprint } from '../dtls/certificate.ts';
import { isRtcp, rtpHeaderLength } from '../srtp/packet-head.ts';
import { type SrtpKeys, SrtpProfile, saltLength } from '../srtp/profile.ts';
import { SrtpCipher } from '../srtp/srtp-cipher.ts';
import { SrtpReceiver } from '../srtp/srtp-receiver.ts';
import { loadAddon } from './addon.ts';
import {
  type DtlsEndpoint,
  type DtlsListener,
  type Fanout,
  type FanoutListener,
  type PacketizedFrame,
  PLACES_HEARD,
  type SlotPlan,
} from './fanout.ts';
import { readNacks } from './nacks.ts';
import { NativeFanout } from './native-fanout.ts';
import { ScriptDtls } from './script-dtls.ts';
import { ScriptFanout } from './script-fanout.ts';

const { addon } = loadAddon();
const certificate = createCertificate(Date.now());
const WAIT = { deadlineMs: 10_000, everyMs: 5 };
const PLI = Buffer.from('81ce00020000999900001111', 'hex');
const VIDEO: SlotPlan = {
  ssrc: 0x1111,
  payloadType: 98,
  rtx: { ssrc: 0x2222, payloadType: 99 },
  // One element of three bytes (abs-send-time, id 4), padded to a word.
  extension: { bytes: Uint8Array.of(0xbe, 0xde, 0, 1, 0x42, 0, 0, 0), sendTimeAt: 5, transportSequenceAt: 0 },
};

interface Heard {
  readonly stun: Buffer[];
  readonly rtcp: Buffer[];
  readonly rtp: Buffer[];
  readonly tcp: Buffer[];
  readonly dtls: Buffer[];
}

interface ReceivedVideo {
  readonly payloadType: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker: boolean;
  readonly payload: Buffer;
  readonly extension: Buffer;
}

/** A viewer that is a plain socket with the other end's keys. */
class Peer {
  readonly socket: Socket;
  readonly video: ReceivedVideo[] = [];
  readonly again: { original: number; timestamp: number; payload: Buffer }[] = [];
  readonly reports: Buffer[] = [];
  /** Datagrams that came before. */
  readonly replays: Buffer[] = [];
  readonly #seen = new Set<string>();
  readonly #receiver: SrtpReceiver;
  readonly #sender: SrtpCipher;
  #index = 0;

  constructor(socket: Socket, keys: SrtpKeys) {
    this.socket = socket;
    this.#receiver = new SrtpReceiver(keys.profile, keys.localKey, keys.localSalt);
    this.#sender = new SrtpCipher(keys.profile, keys.remoteKey, keys.remoteSalt, 'rtcp');
    socket.on('message', (packet) => this.take(packet));
  }

  take(packet: Buffer): void {
    if (isRtcp(packet)) {
      this.reports.push(this.#receiver.rtcp(packet));
      return;
    }
    const text = packet.toString('latin1');
    if (this.#seen.has(text)) {
      this.replays.push(packet);
      return;
    }
    this.#seen.add(text);
    const plain = this.#receiver.rtp(packet);
    const header = rtpHeaderLength(plain);
    const payload = plain.subarray(header);
    if (plain.readUInt32BE(8) === VIDEO.rtx?.ssrc) {
      this.again.push({ original: payload.readUInt16BE(0), timestamp: plain.readUInt32BE(4), payload: payload.subarray(2) });
      return;
    }
    this.video.push({
      payloadType: (plain[1] ?? 0) & 0x7f,
      sequence: plain.readUInt16BE(2),
      timestamp: plain.readUInt32BE(4),
      marker: ((plain[1] ?? 0) & 0x80) !== 0,
      payload,
      extension: plain.subarray(12, header),
    });
  }

  /** A protected RTCP packet. */
  seal(packet: Buffer): Buffer {
    this.#index += 1;
    return this.#sender.protectRtcp(packet, this.#index);
  }
}

function keysFor(profile: SrtpProfile): SrtpKeys {
  const salt = saltLength(profile);
  return { profile, localKey: randomBytes(16), localSalt: randomBytes(salt), remoteKey: randomBytes(16), remoteSalt: randomBytes(salt) };
}

function frame(timestamp: number, keyframe: boolean, sizes: readonly number[]): PacketizedFrame {
  const payloads = Buffer.concat(sizes.map((size, n) => Buffer.alloc(size, (timestamp + n) & 0xff)));
  return { timestamp, keyframe, marker: true, payloads, sizes: Uint32Array.from(sizes) };
}

function nackOf(ssrc: number, sequence: number, mask: number): Buffer {
  const packet = Buffer.alloc(16);
  packet.set([0x81, 205, 0, 3]);
  packet.writeUInt32BE(0x9999, 4);
  packet.writeUInt32BE(ssrc, 8);
  packet.writeUInt16BE(sequence, 12);
  packet.writeUInt16BE(mask, 14);
  return packet;
}

const FEC = { redPayloadType: 120, payloadType: 122 };

/** A media packet out of its wrapping, as receivers of parities see it: without what differs from packet to packet. */
function unwrapped({ marker, sequence, timestamp, extension, payload }: ReceivedVideo): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt16BE((extension.length === 0 ? 0x8000 : 0x9000) | (marker ? 0x80 : 0) | (payload[0] ?? 0));
  head.writeUInt16BE(sequence, 2);
  head.writeUInt32BE(timestamp, 4);
  head.writeUInt32BE(VIDEO.ssrc, 8);
  return Buffer.concat([
    head,
    Buffer.from(extension).fill(0, VIDEO.extension.sendTimeAt, VIDEO.extension.sendTimeAt + 3),
    payload.subarray(1),
  ]);
}

/** Numbers that a parity protects (RFC 5109 section 7.4). */
function protectedBy(parity: Buffer): number[] {
  const bits = (parity.readUInt8(0) & 0x40) === 0 ? 16 : 48;
  const base = parity.readUInt16BE(2);
  return Array.from({ length: bits }, (_unused, n) => n)
    .filter((n) => (parity.readUInt8(12 + (n >> 3)) & (0x80 >> (n & 7))) !== 0)
    .map((n) => (base + n) & 0xffff);
}

/** The packet `sequence` out of a parity and the others that it protects (RFC 5109 section 9). */
function recovered(parity: Buffer, others: readonly Buffer[], sequence: number): Buffer {
  const body = parity.subarray((parity.readUInt8(0) & 0x40) === 0 ? 14 : 18);
  const head = Buffer.from(parity.subarray(0, 10));
  const content = Buffer.from(body);
  for (const other of others) {
    for (const at of [0, 1, 4, 5, 6, 7]) head[at] = (head[at] ?? 0) ^ (other[at] ?? 0);
    head.writeUInt16BE(head.readUInt16BE(8) ^ (other.length - 12), 8);
    other.subarray(12).forEach((byte, at) => {
      content[at] = (content[at] ?? 0) ^ byte;
    });
  }
  const packet = Buffer.concat([head.subarray(0, 8), Buffer.alloc(4), content.subarray(0, head.readUInt16BE(8))]);
  packet[0] = 0x80 | ((packet[0] ?? 0) & 0x3f);
  packet.writeUInt16BE(sequence, 2);
  packet.writeUInt32BE(VIDEO.ssrc, 8);
  return packet;
}

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

type Kind = 'native, segmented' | 'native, batched' | 'native, single' | 'script';
const KINDS: Kind[] = [...(addon === null ? [] : (['native, segmented', 'native, batched', 'native, single'] as const)), 'script'];

function open(kind: Kind, heard: Heard, onStun: (host: string) => void = () => undefined): Fanout {
  const listener: FanoutListener = {
    stun: (_socket, { host }, datagram) => {
      heard.stun.push(datagram);
      onStun(host);
    },
    dtls: (_socket, _from, datagram) => heard.dtls.push(datagram),
    rtcp: (_viewer, packet) => heard.rtcp.push(packet),
    rtp: (_viewer, packet) => heard.rtp.push(packet),
    tcp: (_viewer, frames) => heard.tcp.push(frames),
  };
  const fanout =
    kind === 'script' || addon === null
      ? new ScriptFanout({ certificate, listener, history: 200 })
      : new NativeFanout(addon, {
          certificate,
          listener,
          threads: 2,
          history: 200,
          sendMode: kind === 'native, single' ? 'single' : kind === 'native, batched' ? 'batched' : 'segmented',
        });
  closers.push(() => fanout.close());
  return fanout;
}

/** A link-local address of this machine with its zone; empty when it has none. */
function linkLocal(): string {
  const found = Object.entries(networkInterfaces()).flatMap(([name, list]) =>
    (list ?? []).filter(({ address }) => address.startsWith('fe80')).map(({ address }) => `${address}%${name}`),
  );
  return found[0] ?? '';
}

function nothingHeard(): Heard {
  return { stun: [], rtcp: [], rtp: [], tcp: [], dtls: [] };
}

async function openPeer(keys: SrtpKeys): Promise<Peer> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  closers.push(() => socket.close());
  return new Peer(socket, keys);
}

describe.each(KINDS)('%s', (kind) => {
  async function start(profile: SrtpProfile = SrtpProfile.AEAD_AES_128_GCM) {
    const heard = nothingHeard();
    const fanout = open(kind, heard);
    const { socket, port } = await fanout.bind('127.0.0.1', 0);
    const keys = keysFor(profile);
    const peer = await openPeer(keys);
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    const viewer = fanout.openViewer({ cname: 'somebody', slots: [VIDEO] });
    fanout.setKeys(viewer, keys);
    fanout.connect(viewer, socket, { host: '127.0.0.1', port: peer.socket.address().port });
    return { heard, fanout, socket, port, peer, source, viewer };
  }

  test.each([SrtpProfile.AEAD_AES_128_GCM, SrtpProfile.AES128_CM_SHA1_80])(
    'profile %i: frames arrive whole from a keyframe on',
    async (profile) => {
      const { fanout, peer, source, viewer } = await start(profile);
      fanout.play(viewer, 0, source);
      fanout.push(source, frame(1, false, [10]));
      fanout.push(source, frame(3000, true, [30, 1000, 1000, 1000, 700]));
      fanout.push(source, frame(6000, false, [500]));
      await until('six packets', () => peer.video.length === 6, WAIT);
      const first = peer.video[0]?.sequence ?? 0;
      expect(peer.video.map(({ sequence }) => sequence - first)).toEqual([0, 1, 2, 3, 4, 5]);
      expect(peer.video.map(({ timestamp }) => timestamp)).toEqual([3000, 3000, 3000, 3000, 3000, 6000]);
      expect(peer.video.map(({ marker }) => marker)).toEqual([false, false, false, false, true, true]);
      expect(peer.video.map(({ payload }) => payload.length)).toEqual([30, 1000, 1000, 1000, 700, 500]);
      expect(peer.video[1]?.payload).toEqual(Buffer.alloc(1000, 3001 & 0xff));
      expect(peer.video[0]?.extension.subarray(0, 5)).toEqual(Buffer.of(0xbe, 0xde, 0, 1, 0x42));
      expect(fanout.viewerCounters(viewer)).toMatchObject({ packets: 6, sendErrors: 0 });
    },
  );

  test('a viewer is heard at every place of its own, also at those named before its keys', async () => {
    const heard = nothingHeard();
    const fanout = open(kind, heard);
    const { socket, port } = await fanout.bind('127.0.0.1', 0);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await openPeer(keys);
    const others = await Promise.all([openPeer(keys), openPeer(keys), openPeer(keys)]);
    const placeOf = ({ socket: from }: Peer): { host: string; port: number } => ({ host: '127.0.0.1', port: from.address().port });
    const [before, after, stranger] = others as [Peer, Peer, Peer];
    const viewer = fanout.openViewer({ cname: 'somebody', slots: [VIDEO] });
    for (let n = 0; n < 20; n += 1) fanout.hear(viewer, socket, placeOf(before));
    fanout.connect(viewer, socket, placeOf(peer));
    fanout.setKeys(viewer, keys);
    fanout.hear(viewer, socket, placeOf(after));
    const pli = Buffer.from([0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
    // Each has a number of its own: the second of two with one would be a replay.
    const say = ({ socket: from }: Peer): void => from.send(peer.seal(pli), port, '127.0.0.1');
    for (const one of [before, peer, after, stranger]) say(one);
    await until('three are heard, and one is nobody', () => heard.rtcp.length === 3 && fanout.counters().strangers === 1, WAIT);
    for (let n = 0; n < PLACES_HEARD; n += 1) fanout.hear(viewer, socket, { host: '127.0.0.2', port: 1000 + n });
    say(before);
    await until('the oldest place is forgotten', () => fanout.counters().strangers === 2, WAIT);
    fanout.closeViewer(viewer);
    say(after);
    await until('nobody is left', () => fanout.counters().strangers === 3, WAIT);
    expect(heard.rtcp.length).toBe(3);
  });

  test.each(['::1', linkLocal()].filter((host) => host !== ''))('a viewer at %s is sent to, and heard', async (host) => {
    const heard = nothingHeard();
    const froms: string[] = [];
    const fanout = open(kind, heard, (from) => froms.push(from));
    const { socket, port } = await fanout.bind(host, 0);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = new Peer(createSocket('udp6'), keys);
    closers.push(() => peer.socket.close());
    await new Promise<void>((resolve) => peer.socket.bind(0, host, resolve));
    peer.socket.send(Buffer.of(0, 1), port, host);
    await until('the first datagram', () => froms.length === 1, WAIT);
    // Answers go where it came from, the zone included.
    const to = { host: froms[0] ?? '', port: peer.socket.address().port };
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
    let answer = '';
    peer.socket.removeAllListeners('message').once('message', (bytes) => {
      answer = bytes.toString();
    });
    expect(fanout.send(socket, to, Buffer.from('hello'))).toBe(true);
    await until('the answer', () => answer === 'hello', WAIT);
  });

  test('nothing is sent to port 0, and nothing breaks', async () => {
    const { fanout, socket } = await start();
    expect(fanout.send(socket, { host: '127.0.0.1', port: 0 }, Buffer.of(0))).toBe(false);
  });

  test.runIf(kind === 'native, segmented')('a viewer that cannot be sent to costs the others nothing', async () => {
    const { fanout, source, socket } = await start();
    let arrived = 0;
    // One socket for all would not hold a frame for everybody.
    const others = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const other = createSocket('udp4');
        await new Promise<void>((resolve) => other.bind(0, '127.0.0.1', resolve));
        closers.push(() => other.close());
        other.on('message', () => {
          arrived += 1;
        });
        return other.address().port;
      }),
    );
    const open = (port: number): number => {
      const id = fanout.openViewer({ cname: 'somebody', slots: [VIDEO] });
      fanout.setKeys(id, keysFor(SrtpProfile.AEAD_AES_128_GCM));
      fanout.connect(id, socket, { host: '127.0.0.1', port });
      fanout.play(id, 0, source);
      return id;
    };
    const nowhere = [open(0), open(0)];
    for (const port of others) open(port);
    const calls: number[] = [];
    for (let n = 0; n < 5; n += 1) {
      const [calledBefore, arrivedBefore] = [fanout.counters().sendCalls, arrived];
      fanout.push(source, frame(3000 * n, n === 0, new Array(20).fill(100)));
      await until('the frame at all viewers', () => arrived >= arrivedBefore + 320, WAIT);
      if (n > 0) calls.push(fanout.counters().sendCalls - calledBefore);
      else await until('the errors', () => nowhere.every((id) => (fanout.viewerCounters(id)?.sendErrors ?? 0) >= 20), WAIT);
      for (const id of nowhere) fanout.closeViewer(id);
    }
    // A call takes 64 messages, and both threads send to eight viewers: three calls each if every packet were a message.
    expect(Math.min(...calls)).toBeLessThan(5);
  });

  test('a large keyframe is paced and complete', async () => {
    const { fanout, peer, source, viewer } = await start();
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, new Array(70).fill(1200)));
    fanout.push(source, frame(3000, false, [100]));
    await until('71 packets', () => peer.video.length === 71, WAIT);
    expect(peer.video.at(-2)).toMatchObject({ marker: true, timestamp: 0 });
    expect(peer.video.at(-1)).toMatchObject({ marker: true, timestamp: 3000 });
  });

  test('lost packets are sent again in the retransmission format, once for a loss reported twice', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [11, 12, 13, 14, 15]));
    await until('five packets', () => peer.video.length === 5, WAIT);
    const first = peer.video[0]?.sequence ?? 0;
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 1, 0b101)), port, '127.0.0.1');
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 1, 0)), port, '127.0.0.1');
    await until('three packets again', () => peer.again.length >= 3, WAIT);
    await until('both reports were read', () => fanout.counters().nacks === 2, WAIT);
    expect(peer.again.map(({ original, payload }) => [original - first, payload.length]).slice(0, 3)).toEqual([
      [1, 12],
      [2, 13],
      [4, 15],
    ]);
    expect(fanout.viewerCounters(viewer)).toMatchObject({ nacked: 4 });
  });

  test('a viewer that loses much gets half as much again at most, beyond a burst', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    fanout.play(viewer, 0, source);
    for (let n = 0; n < 4; n += 1) {
      fanout.push(source, frame(n, n === 0, new Array(17).fill(10)));
      await until('the packets', () => peer.video.length === 17 * (n + 1), WAIT);
    }
    const first = peer.video[0]?.sequence ?? 0;
    const ask = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const before = fanout.counters().nacks;
        for (let n = 0; n < 4; n += 1) peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 17 * n, 0xffff)), port, '127.0.0.1');
        await until('the reports were read', () => fanout.counters().nacks === before + 4, WAIT);
        // The same packet is not sent again sooner.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await ask(10);
    expect(fanout.viewerCounters(viewer)?.resent).toBe(150);
    fanout.push(source, frame(10, false, new Array(20).fill(10)));
    await until('twenty more', () => peer.video.length === 88, WAIT);
    await ask(3);
    expect(fanout.viewerCounters(viewer)?.resent).toBe(160);
  });

  test('with error correction every packet can be made from the others, and others get the stream without', async () => {
    const { fanout, peer: plain, source: bare, viewer: unprotected, socket, port } = await start();
    fanout.closeSource(bare);
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now(), fec: true });
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await openPeer(keys);
    const viewer = fanout.openViewer({ cname: 'protected', slots: [{ ...VIDEO, fec: FEC }] });
    fanout.setKeys(viewer, keys);
    fanout.connect(viewer, socket, { host: '127.0.0.1', port: peer.socket.address().port });
    for (const id of [viewer, unprotected]) fanout.play(id, 0, source);
    // One packet, an even number, more than a short mask holds, and more than any mask does.
    const frames = [
      [40],
      [500, 300],
      Array.from({ length: 25 }, (_unused, n) => 100 + n),
      Array.from({ length: 50 }, (_unused, n) => 9 + n),
    ];
    const parities = [1, 1, 3, 6];
    const media = frames.flat();
    frames.forEach((sizes, n) => {
      fanout.push(source, frame(3000 * n, n === 0, sizes));
    });
    await until('all packets', () => peer.video.length === media.length + 11 && plain.video.length === media.length, WAIT);
    expect(plain.video.map(({ payload }) => payload.length)).toEqual(media);
    expect(plain.video.every(({ payloadType }) => payloadType === VIDEO.payloadType)).toBe(true);
    for (const { video } of [peer, plain])
      expect(video.map(({ sequence }) => sequence - (video[0]?.sequence ?? 0))).toEqual([...video.keys()]);
    expect(new Set(peer.video.map(({ payloadType }) => payloadType))).toEqual(new Set([FEC.redPayloadType]));
    const isParity = ({ payload }: ReceivedVideo): boolean => payload[0] === FEC.payloadType;
    const packets = new Map(peer.video.filter((packet) => !isParity(packet)).map((packet) => [packet.sequence, unwrapped(packet)]));
    expect([...packets.values()].map(({ length }) => length - 20)).toEqual(media);
    const covered: number[] = [];
    for (const { payload, marker } of peer.video.filter(isParity)) {
      expect(marker).toBe(false);
      const parity = payload.subarray(1);
      const numbers = protectedBy(parity);
      for (const sequence of numbers) {
        const others = numbers.filter((other) => other !== sequence).map((other) => packets.get(other) ?? Buffer.alloc(0));
        expect(recovered(parity, others, sequence)).toEqual(packets.get(sequence));
        covered.push(sequence);
      }
    }
    expect(covered.sort((a, b) => a - b)).toEqual([...packets.keys()]);
    const count = (n: number): number => peer.video.filter((packet) => isParity(packet) && packet.timestamp === 3000 * n).length;
    expect(frames.map((_sizes, n) => count(n))).toEqual(parities);
    // Both count on their own: a number is another packet to each.
    const lost = peer.video[3]?.sequence ?? 0;
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, lost, 0b10)), port, '127.0.0.1');
    await until('two again', () => peer.again.length === 2, WAIT);
    expect(peer.again.map(({ payload }) => payload)).toEqual([peer.video[3]?.payload, peer.video[5]?.payload]);
    plain.socket.send(plain.seal(nackOf(VIDEO.ssrc, plain.video[3]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('one again', () => plain.again.length === 1, WAIT);
    expect(plain.again[0]?.payload).toEqual(plain.video[3]?.payload);
  });

  test('a parity that nobody can ask for again leaves twice', async () => {
    const { fanout, source: bare, socket } = await start();
    fanout.closeSource(bare);
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now(), fec: true });
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await openPeer(keys);
    const viewer = fanout.openViewer({ cname: 'protected', slots: [{ ...VIDEO, rtx: null, fec: FEC }] });
    fanout.setKeys(viewer, keys);
    fanout.connect(viewer, socket, { host: '127.0.0.1', port: peer.socket.address().port });
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [100, 200, 300]));
    fanout.push(source, frame(3000, false, [400]));
    await until('all packets', () => peer.video.length === 6 && peer.replays.length === 2, WAIT);
    expect(peer.video.map(({ payload }) => payload[0])).toEqual([98, 98, 98, 122, 98, 122]);
    expect(peer.video.map(({ sequence }) => sequence - (peer.video[0]?.sequence ?? 0))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(fanout.viewerCounters(viewer)).toMatchObject({ packets: 8, sendErrors: 0 });
  });

  test('a loss that the history has forgotten is counted and not answered', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [10]));
    for (let n = 1; n <= 60; n += 1) fanout.push(source, frame(n, false, [5, 5, 5, 5]));
    await until('all packets', () => peer.video.length === 241, WAIT);
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, peer.video[0]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('counted', () => fanout.counters().lostTooOld === 1, WAIT);
    expect(peer.again).toEqual([]);
  });

  test('another source takes over with its keyframe, and sequence numbers go on', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    const other = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [10, 10]));
    await until('the first', () => peer.video.length === 2, WAIT);
    fanout.play(viewer, 0, other);
    fanout.push(other, frame(3000, false, [20]));
    fanout.push(source, frame(3000, false, [10]));
    await until('still the old one', () => peer.video.length === 3, WAIT);
    fanout.push(other, frame(6000, true, [21, 22]));
    await until('the new one', () => peer.video.length === 5, WAIT);
    fanout.push(source, frame(9000, false, [10]));
    fanout.push(other, frame(9000, false, [23]));
    await until('only the new one', () => peer.video.length === 6, WAIT);
    const first = peer.video[0]?.sequence ?? 0;
    expect(peer.video.map(({ sequence }) => sequence - first)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(peer.video.map(({ payload }) => payload.length)).toEqual([10, 10, 10, 21, 22, 23]);
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 1, 0b10)), port, '127.0.0.1');
    await until('one of each again', () => peer.again.length === 2, WAIT);
    expect(peer.again.map(({ payload }) => payload.length)).toEqual([10, 21]);
  });

  test('a takeover at a moment that was sent already goes out a little later, also when it is sent again', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    const other = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(3000, true, [10]));
    await until('the first', () => peer.video.length === 1, WAIT);
    fanout.play(viewer, 0, other);
    fanout.push(other, frame(3000, true, [20, 20]));
    fanout.push(other, frame(6000, false, [20]));
    await until('the others', () => peer.video.length === 4, WAIT);
    expect(peer.video.map(({ timestamp }) => timestamp)).toEqual([3000, 3001, 3001, 6000]);
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, peer.video[1]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('one again', () => peer.again.length === 1, WAIT);
    expect(peer.again[0]?.timestamp).toBe(3001);
  });

  test('it is known when packets with transport-wide numbers left, those sent again too', async () => {
    const { fanout, peer, source, viewer, port, socket } = await start();
    const none = new Uint32Array(4).fill(9);
    fanout.readSends(viewer, 0, none);
    expect([...none]).toEqual([0, 0, 0, 0]);
    fanout.closeViewer(viewer);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const numbered = await openPeer(keys);
    // Id 3, two bytes.
    const extension = { bytes: Uint8Array.of(0xbe, 0xde, 0, 1, 0x31, 0, 0, 0), sendTimeAt: 0, transportSequenceAt: 5 };
    const counted = fanout.openViewer({ cname: 'counted', slots: [{ ...VIDEO, extension }] });
    fanout.setKeys(counted, keys);
    fanout.connect(counted, socket, { host: '127.0.0.1', port: numbered.socket.address().port });
    fanout.play(counted, 0, source);
    fanout.push(source, frame(0, true, [100, 200]));
    await until('two packets', () => numbered.video.length === 2, WAIT);
    await new Promise((resolve) => setTimeout(resolve, 20));
    fanout.push(source, frame(3000, false, [300]));
    await until('the third', () => numbered.video.length === 3, WAIT);
    expect(numbered.video.map(({ extension: bytes }) => bytes.readUInt16BE(5))).toEqual([0, 1, 2]);
    numbered.socket.send(numbered.seal(nackOf(VIDEO.ssrc, numbered.video[1]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('one again', () => numbered.again.length === 1, WAIT);
    const sends = new Uint32Array(12);
    fanout.readSends(counted, 0xffff, sends);
    const at = (n: number): number => sends[2 * n] ?? 0;
    // Header, extension, payload and the tag of the cipher; 2 bytes more in the retransmission format.
    expect([0, 1, 2, 3, 4, 5].map((n) => sends[2 * n + 1])).toEqual([0, 136, 236, 336, 238, 0]);
    expect((at(3) - at(2)) | 0).toBeGreaterThanOrEqual(15_000);
    expect((at(4) - at(3)) | 0).toBeGreaterThanOrEqual(0);
    for (let n = 1; n <= 12; n += 1) {
      fanout.push(source, frame(3000 + n, false, new Array(100).fill(10)));
      await until('a hundred more', () => numbered.video.length === 3 + n * 100, WAIT);
    }
    fanout.readSends(counted, 0, sends);
    expect([...sends]).toEqual(new Array(12).fill(0));
    fanout.readSends(counted, 1203, sends);
    expect([sends[1], sends[3]]).toEqual([46, 0]);
    expect(peer.video).toEqual([]);
  });

  test('sender reports with the name come, and other feedback goes to the listener', async () => {
    const { fanout, peer, source, viewer, port, heard } = await start();
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [10, 20]));
    await until('a report', () => peer.reports.length > 0, WAIT);
    const report = peer.reports[0] ?? Buffer.alloc(0);
    expect([report[1], report.readUInt32BE(4), report.readUInt32BE(20), report.readUInt32BE(24)]).toEqual([200, VIDEO.ssrc, 2, 30]);
    expect(Math.abs(report.readUInt32BE(8) - 2_208_988_800 - Date.now() / 1000)).toBeLessThan(30);
    expect(report.subarray(28).includes('somebody')).toBe(true);
    peer.socket.send(peer.seal(PLI), port, '127.0.0.1');
    await until('feedback', () => heard.rtcp.length === 1, WAIT);
    expect(heard.rtcp[0]).toEqual(PLI);
  });

  test('strangers and forgeries are counted, STUN and DTLS handed on', async () => {
    const { fanout, viewer, port, peer, heard } = await start();
    const stranger = createSocket('udp4');
    closers.push(() => stranger.close());
    const forged = Buffer.alloc(60, 1);
    forged.set([0x80, 201, 0, 1]);
    stranger.send(forged, port, '127.0.0.1');
    stranger.send(Buffer.of(200, 1), port, '127.0.0.1');
    await until('two strangers', () => fanout.counters().strangers === 2, WAIT);
    peer.socket.send(forged, port, '127.0.0.1');
    await until('a forgery', () => fanout.viewerCounters(viewer)?.refused === 1, WAIT);
    stranger.send(Buffer.of(0, 1, 2), port, '127.0.0.1');
    stranger.send(Buffer.of(22, 1, 2), port, '127.0.0.1');
    await until('both', () => heard.stun.length === 1 && heard.dtls.length === 1, WAIT);
    expect(heard.rtcp).toEqual([]);
  });

  test.runIf(kind === 'native, batched')(
    'while the main thread is busy strangers crowd out strangers, and a loud viewer itself',
    async () => {
      const { fanout, socket, port, peer, heard } = await start();
      const loudKeys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
      const loud = await openPeer(loudKeys);
      const viewer = fanout.openViewer({ cname: 'loud', slots: [] });
      fanout.setKeys(viewer, loudKeys);
      fanout.connect(viewer, socket, { host: '127.0.0.1', port: loud.socket.address().port });
      const stranger = createSocket('udp4');
      closers.push(() => stranger.close());
      for (const end of [stranger, loud.socket, peer.socket]) await new Promise<void>((resolve) => end.connect(port, '127.0.0.1', resolve));
      loud.socket.send(loud.seal(PLI));
      peer.socket.send(peer.seal(PLI));
      await until('both are known', () => heard.rtcp.length === 2, WAIT);
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
      await until('what was kept', () => heard.rtcp.length === 2 + 2048 + 32, WAIT);
      expect([heard.stun.length, heard.stun.filter(([, second]) => second === 9).length]).toEqual([2048 + 32, 32]);
    },
  );

  test('a viewer over TCP gets its packets framed, and its feedback counts', async () => {
    const heard = nothingHeard();
    const fanout = open(kind, heard);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await openPeer(keys);
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
      'one again',
      () => {
        drain();
        return peer.again.length === 1;
      },
      WAIT,
    );
    expect(peer.again[0]?.payload.length).toBe(100);
  });

  test('unusable frames are refused', async () => {
    const { fanout, source } = await start();
    expect(fanout.push(source, frame(0, true, [1401]))).toBe(false);
    expect(fanout.push(source, frame(0, true, []))).toBe(false);
    expect(fanout.push(source, { ...frame(0, true, [10]), sizes: Uint32Array.of(11) })).toBe(false);
    expect(fanout.push(source + 1000, frame(0, true, [10]))).toBe(false);
  });

  test('viewers come and go while frames are sent, sources end under them', async () => {
    const { fanout, socket, source, peer } = await start();
    const to = { host: '127.0.0.1', port: peer.socket.address().port };
    peer.socket.removeAllListeners('message');
    const viewers: number[] = [];
    for (let round = 0; round < 200; round += 1) {
      const viewer = fanout.openViewer({ cname: 'x', slots: [VIDEO] });
      fanout.setKeys(viewer, keysFor(SrtpProfile.AEAD_AES_128_GCM));
      fanout.connect(viewer, socket, to);
      fanout.play(viewer, 0, source);
      fanout.push(source, frame(round, round % 10 === 0, [100, 100]));
      viewers.push(viewer);
      if (viewers.length > 20) fanout.closeViewer(viewers.shift() ?? 0);
    }
    fanout.closeSource(source);
    await until('sent', () => fanout.counters().datagramsSent > 1000, WAIT);
    for (const viewer of viewers) fanout.closeViewer(viewer);
    expect(fanout.counters().viewers).toBe(1);
    fanout.close();
    fanout.close();
  });

  test('a port that is taken is refused with its reason', async () => {
    const { fanout, port } = await start();
    await expect(fanout.bind('127.0.0.1', port)).rejects.toThrow(/in use|EADDRINUSE/);
  });
});

type Opener = (role: 'client' | 'server', listener: DtlsListener) => DtlsEndpoint;

interface EndState {
  isConnected: boolean;
  closed: string;
}

describe('DTLS', () => {
  const pairs: [Kind, Kind][] = KINDS.includes('native, segmented')
    ? [
        ['native, segmented', 'native, segmented'],
        ['native, segmented', 'script'],
        ['script', 'native, segmented'],
      ]
    : [['script', 'script']];

  /** Two ends of a connection that is made, and how it ended for each. */
  async function joined(clientEnd: Opener, serverEnd: Opener) {
    const ends = [clientEnd, serverEnd].map(() => ({ isConnected: false, closed: '' })) as [EndState, EndState];
    const endpoints: DtlsEndpoint[] = [];
    const listenerOf = (n: 0 | 1): DtlsListener => ({
      send: (datagram) => {
        const copy = Buffer.from(datagram);
        setImmediate(() => endpoints[1 - n]?.receive(copy));
      },
      connected: () => {
        ends[n].isConnected = true;
      },
      closed: (reason) => {
        ends[n].closed = reason;
      },
    });
    endpoints[1] = serverEnd('server', listenerOf(1));
    endpoints[0] = clientEnd('client', listenerOf(0));
    const ticker = setInterval(() => {
      for (const endpoint of endpoints) endpoint.tick();
    }, 100);
    closers.push(() => {
      clearInterval(ticker);
      for (const endpoint of endpoints) endpoint.close();
    });
    await until('both know', () => ends.every(({ isConnected, closed }) => isConnected || closed !== ''), WAIT);
    const [client, server] = endpoints as [DtlsEndpoint, DtlsEndpoint];
    return { client, server, ends };
  }
  const opener =
    (kind: Kind): Opener =>
    (role, listener) =>
      open(kind, nothingHeard()).openDtls(role, listener);

  test.each(pairs)('%s as client, %s as server: what anybody can send ends no connection, the peer does', async (client, server) => {
    const made = await joined(opener(client), opener(server));
    const record = (type: number, epoch: number, body: Buffer): Buffer =>
      Buffer.concat([Buffer.from([type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 1, 0, body.length >> 8, body.length & 0xff]), body]);
    const hello = Buffer.concat([Buffer.from([1, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 60, 0xfe, 0xfd]), Buffer.alloc(58)]);
    for (const end of [made.server, made.client]) {
      for (const epoch of [0, 1]) {
        end.receive(record(21, epoch, Buffer.of(2, 40)));
        end.receive(record(21, epoch, Buffer.of(1, 0)));
        end.receive(record(21, epoch, randomBytes(26)));
        end.receive(record(22, epoch, hello));
        end.receive(record(22, epoch, randomBytes(60)));
        end.receive(record(23, epoch, randomBytes(60)));
      }
      end.receive(Buffer.alloc(12, 21));
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(made.ends).toEqual([
      { isConnected: true, closed: '' },
      { isConnected: true, closed: '' },
    ]);
    made.client.close();
    // The library says no goodbye.
    if (client !== 'script') await until('the server hears of it', () => made.ends[1].closed === 'the peer closed', WAIT);
  });

  const thief: Opener = (role, listener) => {
    const { key } = createCertificate(Date.now());
    return new ScriptDtls(role, { ...certificate, key }, listener);
  };

  test.each(KINDS.filter((kind) => kind === 'native, segmented' || kind === 'script'))(
    '%s: a certificate without its key is no proof',
    async (kind) => {
      const stolen = await joined(thief, opener(kind));
      expect(stolen.ends[1].isConnected).toBe(false);
      expect(stolen.ends[1].closed).toMatch(kind === 'script' ? /it does not have the key of its certificate$/ : /signature failure$/);
      const pretended = await joined(opener(kind), thief);
      expect(pretended.ends[0].isConnected).toBe(false);
      expect(pretended.ends[0].closed).toMatch(kind === 'script' ? /it does not have the key of its certificate$/ : /signature failure$/);
    },
  );

  test.each(pairs)('%s as client and %s as server agree on keys and see the certificates', async (client, server) => {
    const ends = [
      { role: 'client', fanout: open(client, nothingHeard()) },
      { role: 'server', fanout: open(server, nothingHeard()) },
    ] as const;
    const done: { keys: SrtpKeys; fingerprint: Uint8Array }[] = [];
    const problems: string[] = [];
    const endpoints = [...ends].reverse().map(({ role, fanout }) => ({
      role,
      endpoint: fanout.openDtls(role, {
        send: (datagram) => {
          const copy = Buffer.from(datagram);
          setImmediate(() => endpoints.find((other) => other.role !== role)?.endpoint.receive(copy));
        },
        connected: (keys, fingerprint) => {
          done[role === 'client' ? 0 : 1] = { keys, fingerprint };
        },
        closed: (reason) => problems.push(`${role}: ${reason}`),
      }),
    }));
    const ticker = setInterval(() => {
      for (const { endpoint } of endpoints) endpoint.tick();
    }, 100);
    closers.push(() => clearInterval(ticker));
    await until(
      'both ends are connected',
      () => {
        if (problems.length > 0) throw new Error(problems.join(', '));
        return done[0] !== undefined && done[1] !== undefined;
      },
      WAIT,
    );
    const [a, b] = done;
    expect(Buffer.from(a?.keys.localKey ?? [])).toEqual(Buffer.from(b?.keys.remoteKey ?? []));
    expect(Buffer.from(a?.keys.remoteSalt ?? [])).toEqual(Buffer.from(b?.keys.localSalt ?? []));
    expect(a?.keys.profile).toBe(SrtpProfile.AEAD_AES_128_GCM);
    expect(formatFingerprint(a?.fingerprint ?? new Uint8Array())).toBe(certificate.fingerprint);
    expect(formatFingerprint(b?.fingerprint ?? new Uint8Array())).toBe(certificate.fingerprint);
    for (const { endpoint } of endpoints) endpoint.close();
  });

  test.each(KINDS.filter((kind) => kind === 'native, segmented' || kind === 'script'))(
    '%s: garbage ends the handshake or is ignored',
    (kind) => {
      const fanout = open(kind, nothingHeard());
      for (let n = 0; n < 200; n += 1) {
        const endpoint = fanout.openDtls('server', {
          send: () => undefined,
          connected: () => expect.fail('connected'),
          closed: () => undefined,
        });
        const garbage = randomBytes(n + 1);
        garbage[0] = 22;
        endpoint.receive(garbage);
        if (n > 20) {
          // A record head that is right, with garbage inside.
          garbage.set([22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, n - 12]);
          endpoint.receive(garbage);
        }
        endpoint.tick();
        endpoint.close();
      }
    },
  );
});

test.each(KINDS.filter((kind) => kind === 'native, segmented' || kind === 'script'))(
  '%s: what is too short for a record ends no handshake',
  (kind) => {
    const ends: string[] = [];
    const endpoint = open(kind, nothingHeard()).openDtls('server', {
      send: () => undefined,
      connected: () => undefined,
      closed: (reason) => ends.push(reason),
    });
    const record = Buffer.from([23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 4, 1, 2, 3, 4]);
    for (let length = 1; length < record.length; length += 1) endpoint.receive(record.subarray(0, length));
    expect(ends).toEqual([]);
    endpoint.close();
  },
);

test('the certificate is what it says', () => {
  const parsed = new X509Certificate(certificate.certificate);
  expect(parsed.verify(parsed.publicKey)).toBe(true);
  expect(parsed.subject).toBe('CN=Millrace');
  expect(parsed.fingerprint256).toBe(certificate.fingerprint);
  expect(formatFingerprint(createHash('sha256').update(parsed.raw).digest())).toBe(certificate.fingerprint);
  expect(Date.parse(parsed.validTo) - Date.now()).toBeGreaterThan(300 * 24 * 3600 * 1000);
});

test('NACKs are found inside compound packets', () => {
  const other = Buffer.from('81ce00020000999900001111', 'hex');
  expect(readNacks(Buffer.concat([nackOf(5, 65_535, 0b11), other]))).toEqual({
    nacks: [{ ssrc: 5, sequences: [65_535, 0, 1] }],
    other: true,
  });
  expect(readNacks(nackOf(5, 10, 0)).other).toBe(false);
});
