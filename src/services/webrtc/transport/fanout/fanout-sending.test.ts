import { createSocket, Socket } from 'node:dgram';
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { FANOUT_KINDS, FanoutBench, frame, keysFor, nackOf, PLI, VIDEO, WAIT } from '../../../../../test/fakes/fanout-bench.ts';
import { until } from '../../../../../test/harness/poll.ts';
import { SrtpProfile } from '../../../../wire/srtp/profile.ts';

const bench = new FanoutBench();

function statusOf(task: string): string {
  return readFileSync(`/proc/self/task/${task}/status`, 'utf8');
}

/** Empty for a process that has ended by now. */
function nameOfThread(task: string): string {
  try {
    return readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Departure times that packets state themselves (18 bits of a second), ms after the first. */
function sendTimes(packets: readonly { readonly extension: Buffer }[]): number[] {
  const [first = 0, ...others] = packets.map(({ extension }) => extension.readUIntBE(VIDEO.extension.sendTimeAt, 3));
  return [0, ...others.map((time) => ((time - first) & 0xff_ffff) / 262.144)];
}

afterEach(() => {
  bench.close();
});

describe.each(FANOUT_KINDS)('%s', (kind) => {
  const start = (profile?: SrtpProfile) => bench.start(kind, profile);

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

  test.runIf(kind.startsWith('native'))('its threads are named webrtc-send and webrtc-receive', async () => {
    await start();
    const names = (): string[] => readdirSync('/proc/self/task').map(nameOfThread);
    await until('threads that send and receive', () => ['webrtc-send', 'webrtc-receive'].every((name) => names().includes(name)), WAIT);
  });

  test.runIf(kind === 'native, segmented')('its sending threads sleep while there are no viewers', async () => {
    const { fanout, viewer, source } = await start();
    const threads = (): string[] => readdirSync('/proc/self/task').filter((id) => nameOfThread(id) === 'webrtc-send');
    // Threads set their names after they start.
    await until('threads that send', () => threads().length > 0, WAIT);
    const wakes = (): number => {
      return threads().reduce((sum, id) => sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(statusOf(id))?.[1]), 0);
    };
    const during = async (ms: number): Promise<number> => {
      const [before, since] = [wakes(), performance.now()];
      await until(`${ms} ms to pass`, () => performance.now() - since > ms, { everyMs: 50 });
      return wakes() - before;
    };
    expect(await during(300)).toBeGreaterThan(1);
    fanout.closeViewer(viewer);
    // A frame without viewers is released at once.
    fanout.push(source, frame(3000, true, [30]));
    await until('nothing to be done', async () => (await during(300)) === 0, WAIT);
  });

  test('sending to port 0 returns false', async () => {
    const { fanout, socket } = await start();
    expect(fanout.send(socket, { host: '127.0.0.1', port: 0 }, Buffer.of(0))).toBe(false);
  });

  test.runIf(kind === 'native, segmented')('an unreachable viewer does not delay the others', async () => {
    const { fanout, source, socket } = await start();
    let arrived = 0;
    // A single socket would not hold a frame for all viewers.
    const others = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const other = createSocket('udp4');
        await new Promise<void>((resolve) => other.bind(0, '127.0.0.1', resolve));
        bench.onClose(() => other.close());
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
    const after = sendTimes(peer.video);
    expect(after[69]).toBeLessThanOrEqual(after[70] ?? 0);
    fanout.push(source, frame(6000, true, new Array(100).fill(100)));
    await until('171 packets', () => peer.video.length === 171, WAIT);
    // Slices of 24 packets: the first four 1 ms apart, the rest 3 ms; a timer may be early by one.
    const [first = 0, ...slices] = [0, 24, 48, 72, 96].map((packet) => sendTimes(peer.video)[71 + packet] ?? 0);
    const early = kind === 'script' ? 1 : 0.01;
    expect(slices.map((time, n) => time - first > ([1, 2, 5, 8][n] ?? 0) - early)).toEqual([true, true, true, true]);
  });

  test.runIf(kind.startsWith('native'))('a keyframe of 70 packets takes 2 ms', async () => {
    const { fanout, peer, source, viewer } = await start();
    fanout.play(viewer, 0, source);
    let frames = 0;
    await until(
      'a keyframe that nothing delays',
      async () => {
        fanout.push(source, frame(3000 * frames, true, new Array(70).fill(100)));
        frames += 1;
        await until('all packets of the keyframe', () => peer.video.length === 70 * frames, WAIT);
        const times = sendTimes(peer.video.slice(-70));
        // Six with 3 ms between all slices.
        return (times.at(-1) ?? 0) < 5.5;
      },
      WAIT,
    );
  });

  test.runIf(kind === 'script')('slices of a large frame are 1 ms apart, then 3 ms, and later frames wait', async () => {
    const { fanout, source, viewer } = await start();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const sent = (): number => fanout.viewerCounters(viewer)?.packets ?? 0;
      const sentEvery = (ms: number, times: number): number[] =>
        Array.from({ length: times }, () => {
          vi.advanceTimersByTime(ms);
          return sent();
        });
      fanout.play(viewer, 0, source);
      fanout.push(source, frame(0, true, new Array(70).fill(100)));
      fanout.push(source, frame(3000, false, [100]));
      expect([sent(), ...sentEvery(1, 3)]).toEqual([24, 48, 70, 71]);
      fanout.push(source, frame(6000, true, new Array(100).fill(100)));
      expect([sent(), ...sentEvery(1, 8)].map((packets) => packets - 71)).toEqual([24, 48, 72, 72, 72, 96, 96, 96, 100]);
      vi.advanceTimersByTime(3);
      // However long a frame is, its last slice comes seven gaps after the first.
      fanout.push(source, frame(9000, false, new Array(400).fill(10)));
      expect([sent(), ...sentEvery(1, 1), ...sentEvery(3, 6)].map((packets) => packets - 171)).toEqual([
        50, 100, 150, 200, 250, 300, 350, 400,
      ]);
    } finally {
      vi.useRealTimers();
    }
  });

  test.runIf(kind === 'script')('packets refused by a full socket are dropped and counted, not queued', async () => {
    const { fanout, peer, source, socket, viewer } = await start();
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [10]));
    await until('the first packet', () => peer.video.length === 1, WAIT);
    const { datagramsSent } = fanout.counters();
    const full = vi.spyOn(Socket.prototype, 'getSendQueueSize').mockReturnValue(9 * 1024 * 1024);
    try {
      fanout.push(source, frame(3000, false, [20, 20]));
      expect(fanout.send(socket, { host: '127.0.0.1', port: peer.socket.address().port }, Buffer.of(0))).toBe(false);
      expect(fanout.counters()).toMatchObject({ congested: 3, datagramsSent });
    } finally {
      full.mockRestore();
    }
    fanout.push(source, frame(6000, false, [30]));
    await until('the last packet', () => peer.video.length === 2, WAIT);
    expect((peer.video[1]?.sequence ?? 0) - (peer.video[0]?.sequence ?? 0)).toBe(3);
  });

  test('another source takes over at its keyframe with continuous sequence numbers', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    const other = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(0, true, [10, 10]));
    await until('the packets of the first source', () => peer.video.length === 2, WAIT);
    fanout.play(viewer, 0, other);
    fanout.push(other, frame(3000, false, [20]));
    fanout.push(source, frame(3000, false, [10]));
    await until('another packet of the first source', () => peer.video.length === 3, WAIT);
    fanout.push(other, frame(6000, true, [21, 22]));
    await until('the keyframe of the second source', () => peer.video.length === 5, WAIT);
    fanout.push(source, frame(9000, false, [10]));
    fanout.push(other, frame(9000, false, [23]));
    await until('another packet of the second source', () => peer.video.length === 6, WAIT);
    const first = peer.video[0]?.sequence ?? 0;
    expect(peer.video.map(({ sequence }) => sequence - first)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(peer.video.map(({ payload }) => payload.length)).toEqual([10, 10, 10, 21, 22, 23]);
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, first + 1, 0b10)), port, '127.0.0.1');
    await until('two retransmissions', () => peer.again.length === 2, WAIT);
    expect(peer.again.map(({ payload }) => payload.length)).toEqual([10, 21]);
  });

  test('a takeover at an already sent timestamp gets a slightly later one, also in its retransmission', async () => {
    const { fanout, peer, source, viewer, port } = await start();
    const other = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    fanout.play(viewer, 0, source);
    fanout.push(source, frame(3000, true, [10]));
    await until('the first packet', () => peer.video.length === 1, WAIT);
    fanout.play(viewer, 0, other);
    fanout.push(other, frame(3000, true, [20, 20]));
    fanout.push(other, frame(6000, false, [20]));
    await until('four packets', () => peer.video.length === 4, WAIT);
    expect(peer.video.map(({ timestamp }) => timestamp)).toEqual([3000, 3001, 3001, 6000]);
    peer.socket.send(peer.seal(nackOf(VIDEO.ssrc, peer.video[1]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('one retransmission', () => peer.again.length === 1, WAIT);
    expect(peer.again[0]?.timestamp).toBe(3001);
  });

  test.runIf(kind !== 'script')('send times of packets with transport-wide numbers are recorded, including retransmissions', async () => {
    const { fanout, peer, source, viewer, port, socket } = await start();
    const none = new Uint32Array(4).fill(9);
    fanout.readSends(viewer, 0, none);
    expect([...none]).toEqual([0, 0, 0, 0]);
    fanout.closeViewer(viewer);
    const keys = keysFor(SrtpProfile.AEAD_AES_128_GCM);
    const numbered = await bench.openPeer(keys);
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
    await until('the third packet', () => numbered.video.length === 3, WAIT);
    expect(numbered.video.map(({ extension: bytes }) => bytes.readUInt16BE(5))).toEqual([0, 1, 2]);
    numbered.socket.send(numbered.seal(nackOf(VIDEO.ssrc, numbered.video[1]?.sequence ?? 0, 0)), port, '127.0.0.1');
    await until('one retransmission', () => numbered.again.length === 1, WAIT);
    const sends = new Uint32Array(12);
    fanout.readSends(counted, 0xffff, sends);
    const at = (n: number): number => sends[2 * n] ?? 0;
    // Header, extension, payload and the tag of the cipher; 2 bytes more in the retransmission format.
    expect([0, 1, 2, 3, 4, 5].map((n) => sends[2 * n + 1])).toEqual([0, 136, 236, 336, 238, 0]);
    expect((at(3) - at(2)) | 0).toBeGreaterThanOrEqual(15_000);
    expect((at(4) - at(3)) | 0).toBeGreaterThanOrEqual(0);
    for (let n = 1; n <= 12; n += 1) {
      fanout.push(source, frame(3000 + n, false, new Array(100).fill(10)));
      await until('a hundred more packets', () => numbered.video.length === 3 + n * 100, WAIT);
    }
    fanout.readSends(counted, 0, sends);
    expect([...sends]).toEqual(new Array(12).fill(0));
    fanout.readSends(counted, 1203, sends);
    expect([sends[1], sends[3]]).toEqual([46, 0]);
    expect(peer.video).toEqual([]);
  });

  test('sender reports carry the cname, and other feedback is passed to the listener', async () => {
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

  test('unusable frames are refused', async () => {
    const { fanout, source } = await start();
    expect(fanout.push(source, frame(0, true, [1401]))).toBe(false);
    expect(fanout.push(source, frame(0, true, []))).toBe(false);
    expect(fanout.push(source, { ...frame(0, true, [10]), sizes: Uint32Array.of(11) })).toBe(false);
    expect(fanout.push(source + 1000, frame(0, true, [10]))).toBe(false);
  });

  test('viewers join and leave while frames are sent, and sources end under them', async () => {
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
    // A sender thread that had no core so far has taken all of that at once: viewers that have left, and frames that are too old.
    let round = 200;
    const sent = (): boolean => {
      fanout.push(source, frame(round, true, [100, 100]));
      round += 1;
      return fanout.counters().datagramsSent > 1000;
    };
    await until('sent', sent, WAIT);
    fanout.push(source, frame(round, true, [100, 100]));
    fanout.closeSource(source);
    for (const viewer of viewers) fanout.closeViewer(viewer);
    expect(fanout.counters().viewers).toBe(1);
    fanout.close();
    fanout.close();
  });
});
