/** Repair of losses: retransmissions and parities. */
import { afterEach, describe, expect, test } from 'vitest';
import {
  FANOUT_KINDS,
  FanoutBench,
  frame,
  keysFor,
  nackOf,
  type ReceivedVideo,
  VIDEO,
  WAIT,
} from '../../../../../test/fakes/fanout-bench.ts';
import { until } from '../../../../../test/harness/poll.ts';
import { SrtpProfile } from '../../../../wire/srtp/profile.ts';

const FEC = { redPayloadType: 120, payloadType: 122 };
/** Feedback that the fanout passes on, in both directions. */
const PLI = Buffer.from([0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
const isPli = (packet: Buffer): boolean => packet[1] === 206;
const bench = new FanoutBench();

afterEach(() => {
  bench.close();
});

/** A media packet without its RED header, as receivers of parities see it: without the fields that differ from packet to packet. */
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

/** The packet `sequence`, rebuilt from a parity and the other packets that it protects (RFC 5109 section 9). */
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

describe.each(FANOUT_KINDS)('%s', (kind) => {
  const start = () => bench.start(kind);

  test('lost packets are sent again in the retransmission format, once for a loss reported twice', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [11, 12, 13, 14, 15]));
    await until('five packets', () => peer.video.length === 5, WAIT);
    const first = peer.video[0]?.sequence ?? 0;
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 1, 0b101)), port, '127.0.0.1');
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 1, 0)), port, '127.0.0.1');
    await until('three packets again', () => peer.again.length >= 3, WAIT);
    await until('two requests are counted', () => fanout.counters().nacks === 2, WAIT);
    expect(peer.again.map(({ original, payload }) => [original - first, payload.length]).slice(0, 3)).toEqual([
      [1, 12],
      [2, 13],
      [4, 15],
    ]);
    expect(fanout.viewerCounters(viewer)).toMatchObject({ nacked: 4 });
  });

  test('a viewer that loses much gets half as much again at most, beyond a burst', async () => {
    const { heard, fanout, peer, source, viewer, port } = await start();
    fanout.play(viewer, 0, source);
    for (let n = 0; n < 4; n += 1) {
      fanout.push(source, frame(n, n === 0, new Array(17).fill(10)));
      await until('the packets', () => peer.video.length === 17 * (n + 1), WAIT);
    }
    const first = peer.video[0]?.sequence ?? 0;
    const resent = (): number => fanout.viewerCounters(viewer)?.resent ?? 0;
    const tell = (packet: Buffer): void => peer.socket.send(peer.seal(packet), port, '127.0.0.1');
    /** Asks for all packets; the same packet is not sent again within 15 ms. */
    const ask = (): void => {
      for (let n = 0; n < 4; n += 1) tell(nackOf(VIDEO.ssrc, first + 17 * n, 0xffff));
    };
    /** Resolves when the receiver has read all reports, and the sender has answered them. */
    const answered = async (): Promise<void> => {
      const [read, sent] = [heard.rtcp.length, peer.reports.filter(isPli).length];
      tell(PLI);
      await until('the last report is read', () => heard.rtcp.length > read, WAIT);
      fanout.sendRtcp(viewer, PLI);
      await until('the retransmissions before this packet have left', () => peer.reports.filter(isPli).length > sent, WAIT);
    };
    const askUntil = async (count: number): Promise<void> => {
      const isSent = (): boolean => {
        ask();
        return resent() >= count;
      };
      await until(`${count} retransmissions`, isSent, { ...WAIT, everyMs: 20 });
      const from = performance.now();
      while (performance.now() - from < 40) {
        ask();
        await answered();
      }
    };
    await askUntil(150);
    expect(resent()).toBe(150);
    fanout.push(source, frame(10, false, new Array(20).fill(10)));
    await until('twenty more packets', () => peer.video.length === 88, WAIT);
    await askUntil(160);
    expect(resent()).toBe(160);
  });

  test.runIf(kind !== 'script')(
    'with error correction every packet can be restored from the others, and other viewers get the plain stream',
    async () => {
      const { fanout, peer: plain, source: bare, viewer: unprotected, socket, port } = await start();
      fanout.closeSource(bare);
      const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now(), fec: true });
      const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
      const peer = await bench.openPeer(keys);
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
      // Both viewers have their own sequence numbers: the same number means different packets.
      const lost = peer.video[3]?.sequence ?? 0;
      peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, lost, 0b10)), port, '127.0.0.1');
      await until('two retransmissions', () => peer.again.length === 2, WAIT);
      expect(peer.again.map(({ payload }) => payload)).toEqual([peer.video[3]?.payload, peer.video[5]?.payload]);
      plain.socket.send(plain.seal(nackOf(VIDEO.ssrc, plain.video[3]?.sequence ?? 0, 0)), port, '127.0.0.1');
      await until('one retransmission', () => plain.again.length === 1, WAIT);
      expect(plain.again[0]?.payload).toEqual(plain.video[3]?.payload);
    },
  );

  test.runIf(kind !== 'script')('a parity packet that cannot be requested again is sent twice', async () => {
    const { fanout, source: bare, socket } = await start();
    fanout.closeSource(bare);
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now(), fec: true });
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const peer = await bench.openPeer(keys);
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
    // At most as many at once as the socket of the viewer holds.
    for (const half of [0, 35]) {
      for (let n = 1; n <= 35; n += 1) fanout.push(source, frame(half + n, false, [5, 5, 5, 5]));
      await until('all packets', () => peer.video.length === 1 + 4 * (half + 35), WAIT);
    }
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, peer.video[0]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('the forgotten loss is counted', () => fanout.counters().lostTooOld === 1, WAIT);
    expect(peer.again).toEqual([]);
  });
});
