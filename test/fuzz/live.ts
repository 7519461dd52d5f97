/**
 * A complete server with WebRTC and SRT viewers under hostile datagrams and frames, for sanitizers:
 * `LIVE_PRELOAD=… LIVE_NATIVE=… node test/fuzz/live.ts SECONDS SEED`. Only the server runs under the sanitizer. Exits with 1 on a failure.
 */
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import type { Fanout } from '../../src/services/webrtc/transport/fanout/fanout.ts';
import { frameDatagram } from '../../src/wire/ice/tcp-framer.ts';
import { buildNack, buildPli } from '../../src/wire/rtp/receiver-feedback.ts';
import { CheckSender } from '../fakes/check-sender.ts';
import { PEER_PASSWORD } from '../fakes/webrtc-peer.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { spawnServer, type TestServer } from '../harness/server.ts';
import { SocketViewer } from '../harness/socket-viewer.ts';
import { mutate } from './support/mutations.ts';
import { splitPackets } from './support/packets.ts';
import { Random } from './support/random.ts';
import { DTLS_TARGETS } from './targets/dtls.ts';
import { SRT_TARGETS } from './targets/srt.ts';
import { WEBRTC_TARGETS } from './targets/webrtc.ts';

const [seconds = 20, seed = 1] = process.argv.slice(2).map(Number);
/** Sanitized code is slow, and the machine may be busy. */
const DEADLINE_MS = 180_000;
const BURST = 64;
const PAUSE_MS = 10;
const RESULTS_OF_SANITIZERS = /AddressSanitizer|ThreadSanitizer|LeakSanitizer|runtime error:/;
const WAIT = { deadlineMs: DEADLINE_MS, everyMs: 100 };

/** A viewer that sends authentic but hostile reports. */
class HostileViewer extends SocketViewer {
  #tell: ((packet: Uint8Array) => void) | null = null;

  /** Does nothing before the viewer is connected. */
  tell(packet: Uint8Array): void {
    this.#tell?.(packet);
  }

  protected override onConnected(fanout: Fanout, viewer: number): void {
    super.onConnected(fanout, viewer);
    this.#tell = (packet) => fanout.sendRtcp(viewer, packet);
  }
}

async function seedsOf(targets: typeof WEBRTC_TARGETS, names: RegExp): Promise<Uint8Array[]> {
  const seeds = await Promise.all(
    targets.filter(({ name }) => names.test(name)).map(async ({ seeds: make, form }) => ({ form, all: await make() })),
  );
  return seeds.flatMap(({ form, all }) => (form === 'packets' ? all.flatMap(splitPackets) : [...all]));
}

/** Opens a session whose password an attacker at `127.0.0.2` knows. */
async function openKnown(server: TestServer): Promise<{ sender: CheckSender; close: () => void }> {
  const socket = new WebSocket(`ws://127.0.0.1:${server.ports.http}/app/live`);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
  socket.onerror = () => reject(new Error('no signalling'));
  socket.onmessage = ({ data }) => resolve(`${data}`);
  const offer = JSON.parse(await promise) as { id: number; sdp: { sdp: string } };
  const attribute = (name: string): string => new RegExp(`^a=${name}:(.*?)\r?$`, 'm').exec(offer.sdp.sdp)?.[1] ?? '';
  const sdp = new SocketViewer();
  socket.send(JSON.stringify({ command: 'answer', id: offer.id, peer_id: 0, sdp: { type: 'answer', sdp: sdp.answer(offer.sdp.sdp) } }));
  sdp.close();
  const known = { port: server.ports.ice, ufrag: attribute('ice-ufrag'), password: attribute('ice-pwd') };
  const sender = await CheckSender.open('127.0.0.2', known);
  sender.answer(PEER_PASSWORD);
  sender.check();
  return {
    sender,
    close: () => {
      sender.close();
      socket.close();
    },
  };
}

/** Sends hostile datagrams and frames until `end`. */
async function attack(server: TestServer, srtPorts: readonly number[], end: number): Promise<number> {
  const random = new Random(seed);
  const [stun, dtls, srt] = await Promise.all([
    seedsOf(WEBRTC_TARGETS, /^stun$|^ice-check$/),
    seedsOf(DTLS_TARGETS, /^dtls-native-fresh$/),
    seedsOf(SRT_TARGETS, /^srt-(control|handshake|listener)$/),
  ]);
  const media = Array.from({ length: 32 }, (_, n) => Buffer.concat([Buffer.of(0x80 + (n & 0x3f), n * 8), random.bytes(20 + n * 40)]));
  const reports = [buildPli(1, 2), buildNack(1, 2, [1, 2, 900]), Buffer.from('81cd0002000000010000111100000000', 'hex')];
  const hostile = new HostileViewer();
  await hostile.play(`ws://127.0.0.1:${server.ports.http}/app/live`);
  await until('the hostile viewer is connected', () => hostile.connected, WAIT);
  const udp = createSocket('udp4');
  let tcp: Socket | null = null;
  let known = await openKnown(server);
  let sent = 0;
  while (performance.now() < end) {
    for (let n = 0; n < BURST; n += 1) {
      const pool = random.pick([stun, dtls, media]);
      const datagram = random.once(4) ? random.pick(pool) : mutate(random.pick(pool), pool, random, 'bytes');
      if (datagram.length > 0 && datagram.length < 8000) {
        udp.send(datagram, server.ports.ice, '127.0.0.1');
        // From an address that belongs to a session.
        known.sender.send(datagram);
        tcp?.write(frameDatagram(datagram));
      }
      hostile.tell(mutate(random.pick(reports), reports, random, 'bytes').subarray(0, 1200));
      const packet = mutate(random.pick(srt), srt, random, 'bytes');
      if (packet.length > 0 && packet.length < 8000) udp.send(packet, random.pick(srtPorts), '127.0.0.1');
      sent += 4;
    }
    if (tcp === null || tcp.destroyed) {
      tcp = connect(server.ports.ice, '127.0.0.1');
      tcp.on('error', () => undefined);
    } else if (random.once(8)) tcp.write(random.bytes(64));
    // Makes the server check the path; it is answered, and the path is nominated again. So proven and unproven paths alternate.
    if (random.once(4)) known.sender.check();
    if (random.once(200)) {
      known.close();
      known = await openKnown(server);
    }
    // Lets the system and the server take the datagrams.
    await delay(PAUSE_MS);
  }
  tcp?.destroy();
  known.close();
  hostile.close();
  udp.close();
  return sent;
}

async function main(): Promise<void> {
  const [ingest = 0, egress = 0] = await freePorts(2);
  const { LIVE_PRELOAD: preload = '', LIVE_NATIVE: native = '' } = process.env;
  const env = preload === '' ? {} : { LD_PRELOAD: preload, MILLRACE_NATIVE: native };
  const server = await spawnServer({ segmentDuration: 1, webrtc: { publisher: '<Rtx>true</Rtx>' }, srt: { ingest, egress }, env });
  const closers: (() => unknown)[] = [];
  try {
    await server.child.printed(/\bready\b/i, DEADLINE_MS);
    if (/sent from JavaScript/.test(server.log)) throw new Error('the server does not use the addon');
    const encoder = publish({ url: server.rtmp('live') });
    closers.push(() => encoder.stop());
    const viewer = new SocketViewer();
    closers.push(() => viewer.close());
    await viewer.play(`ws://127.0.0.1:${server.ports.http}/app/live`);
    await until('media over WebRTC', () => viewer.received > 100, WAIT);
    const url = `srt://127.0.0.1:${egress}?streamid=default/app/live`;
    const player = new Child(requireProgram('ffmpeg'), [
      '-v',
      'error',
      '-nostdin',
      '-i',
      url,
      '-c',
      'copy',
      '-progress',
      'pipe:1',
      '-f',
      'null',
      '-',
    ]);
    closers.push(() => player.kill());
    const played = (): number =>
      Number(
        player.stdout
          .match(/^frame=\s*(\d+)$/gm)
          ?.at(-1)
          ?.split('=')[1] ?? 0,
      );
    await until('media over SRT', () => played() > 30, WAIT);
    const sent = await attack(server, [ingest, egress], performance.now() + seconds * 1000);
    const [overWebrtc, overSrt] = [viewer.received, played()];
    await until('both viewers play on', () => viewer.received > overWebrtc + 30 && played() > overSrt + 10, WAIT);
    if ((await server.api.call('GET', '/v1/vhosts')).status !== 200) throw new Error('the API does not answer');
    const exit = await server.stop();
    if (exit.code !== 0) throw new Error(`the server ended with ${exit.code ?? exit.signal}`);
    console.log(`live server: ${sent} hostile datagrams and frames, ${viewer.received} packets over WebRTC, ${played()} frames over SRT`);
  } finally {
    for (const close of closers.reverse()) await close();
    await server.kill();
    const report = RESULTS_OF_SANITIZERS.exec(server.log);
    if (report !== null) {
      process.exitCode = 1;
      console.log(server.log.slice(Math.max(0, report.index - 500), report.index + 6000));
    }
    await server.close();
  }
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.log(error);
    process.exit(1);
  },
);
