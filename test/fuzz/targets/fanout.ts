/** The addon and the fallback: media and reports of peers with keys, and datagrams of unknown senders. */
import { randomBytes } from 'node:crypto';
import { loadAddon } from '../../../src/native/addon.ts';
import { createCertificate } from '../../../src/services/webrtc/transport/dtls-certificate.ts';
import type { Fanout, FanoutListener, SlotPlan } from '../../../src/services/webrtc/transport/fanout/fanout.ts';
import { NativeFanout } from '../../../src/services/webrtc/transport/fanout/native-fanout.ts';
import { ScriptFanout } from '../../../src/services/webrtc/transport/script-fanout/script-fanout.ts';
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import { buildNack, buildPli, buildRemb } from '../../../src/wire/rtp/receiver-feedback.ts';
import { isRtcp } from '../../../src/wire/srtp/packet-head.ts';
import { type SrtpKeys, SrtpProfile, saltLength } from '../../../src/wire/srtp/profile.ts';
import { SrtpCipher } from '../../../src/wire/srtp/srtp-cipher.ts';
import { SrtpReceiver } from '../../../src/wire/srtp/srtp-receiver.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { hex } from '../support/hex.ts';
import { joinPackets, splitPackets } from '../support/packets.ts';
import { compounds } from './rtp.ts';

const { addon } = loadAddon();
const certificate = createCertificate(Date.now());
const DEADLINE_MS = 20_000;
const MEDIA_SSRC = 0x1111;
const SLOT: SlotPlan = {
  ssrc: MEDIA_SSRC,
  payloadType: 98,
  rtx: { ssrc: 0x2222, payloadType: 99 },
  extension: { bytes: Uint8Array.of(0xbe, 0xde, 0, 1, 0x31, 0, 0, 0), sendTimeAt: 0, transportSequenceAt: 5 },
};
const PLI = buildPli(1, MEDIA_SSRC);

/** A NACK for everything, several times. */
function storm(): Uint8Array {
  return Buffer.concat(
    Array.from({ length: 40 }, (_, at) =>
      buildNack(
        1,
        MEDIA_SSRC,
        Array.from({ length: 200 }, (_unused, n) => at * 17 + n),
      ),
    ),
  );
}

function reports(): Uint8Array[] {
  return [
    joinPackets(compounds()),
    joinPackets([
      storm(),
      PLI,
      buildRemb(
        1,
        2 ** 40,
        Array.from({ length: 60 }, (_, at) => at),
      ),
    ]),
    // Arrivals of 65535 packets in one run, of no packets, and with missing deltas.
    joinPackets(
      ['8fcd0005 00000001 00000002 0000 ffff 00000000 3fff 3fff', '8fcd0004 00000001 00000002 ffff 0001 ffffffff', '8fcdffff 00000001'].map(
        hex,
      ),
    ),
    joinPackets([hex('81cd ffff 00000001 00001111 0000ffff'), hex('81cd 0002 00000001 00001111'), hex('80c80000')]),
    joinPackets([
      hex('8062 0001 00000000 00000007 0102'),
      hex('b062 0002 00000000 00000007 bede ffff 01'),
      hex('9f62 0003 00000000 00000007'),
    ]),
  ];
}

type Kind = 'native' | 'script';

class Sealed {
  readonly keys: SrtpKeys;
  readonly #rtp: SrtpCipher;
  readonly #rtcp: SrtpCipher;
  readonly #receiver: SrtpReceiver;
  #index = 0;

  constructor(profile: SrtpProfile) {
    const salt = saltLength(profile);
    this.keys = {
      profile,
      localKey: randomBytes(16),
      localSalt: randomBytes(salt),
      remoteKey: randomBytes(16),
      remoteSalt: randomBytes(salt),
    };
    this.#rtp = new SrtpCipher(profile, this.keys.remoteKey, this.keys.remoteSalt, 'rtp');
    this.#rtcp = new SrtpCipher(profile, this.keys.remoteKey, this.keys.remoteSalt, 'rtcp');
    this.#receiver = new SrtpReceiver(profile, this.keys.localKey, this.keys.localSalt);
  }

  /** The packet as a peer protects it; null if it cannot be protected. */
  seal(packet: Uint8Array): Buffer | null {
    try {
      this.#index += 1;
      return isRtcp(packet)
        ? this.#rtcp.protectRtcp(packet, this.#index)
        : this.#rtp.protectRtp(packet, Buffer.from(packet).readUInt16BE(2));
    } catch (error) {
      if (error instanceof ProtocolError || error instanceof RangeError) return null;
      throw error;
    }
  }

  /** Throws for a packet of the server that is not authentic. */
  open(packet: Buffer): Buffer {
    return isRtcp(packet) ? this.#receiver.rtcp(packet) : this.#receiver.rtp(packet);
  }
}

/** A fan-out whose peers are reached over TCP, so that all their packets pass through here. */
class Bench {
  readonly fanout: Fanout;
  readonly source: number;
  readonly frames = new Map<number, Buffer[]>();
  readonly heard = new Map<number, Buffer[]>();
  #timestamp = 0;

  constructor(kind: Kind) {
    const listener: FanoutListener = {
      stun: () => undefined,
      dtls: () => undefined,
      rtcp: (viewer, packet) => this.heard.get(viewer)?.push(packet),
      rtp: (viewer, packet) => this.heard.get(viewer)?.push(packet),
      tcp: (viewer, frames) => this.frames.get(viewer)?.push(frames),
    };
    this.fanout =
      kind === 'script' || addon === null
        ? new ScriptFanout({ certificate, listener })
        : new NativeFanout(addon, { certificate, listener, threads: 2, history: 200 });
    this.source = this.fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
  }

  push(): void {
    this.#timestamp += 3000;
    const sizes = Uint32Array.from({ length: 6 }, () => 40);
    this.fanout.push(this.source, { timestamp: this.#timestamp, keyframe: true, marker: true, payloads: Buffer.alloc(240, 7), sizes });
  }

  /** Datagrams sent to the viewer. */
  datagrams(viewer: number): Buffer[] {
    return (this.frames.get(viewer) ?? []).flatMap((frames) => {
      const datagrams: Buffer[] = [];
      for (let at = 0; at + 2 <= frames.length; at += 2 + frames.readUInt16BE(at)) {
        datagrams.push(frames.subarray(at + 2, at + 2 + frames.readUInt16BE(at)));
      }
      return datagrams;
    });
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    const deadline = performance.now() + DEADLINE_MS;
    while (!holds()) {
      if (performance.now() > deadline) throw new Error(`${what} did not come`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** Packets of peers with valid keys: they must not cause more than the permitted retransmissions. */
function sealedPackets(kind: Kind): FuzzTarget {
  let bench: Bench | null = null;
  let runs = 0;
  return {
    name: `fanout-sealed-${kind}`,
    form: 'packets',
    seeds: reports,
    run: async (input) => {
      bench ??= new Bench(kind);
      const { fanout, source } = bench;
      runs += 1;
      const peer = new Sealed(runs % 2 === 0 ? SrtpProfile.AEAD_AES_128_GCM : SrtpProfile.AES128_CM_SHA1_80);
      const viewer = fanout.openViewer({ cname: 'peer', slots: [SLOT] });
      try {
        bench.frames.set(viewer, []);
        bench.heard.set(viewer, []);
        fanout.setKeys(viewer, peer.keys);
        fanout.connectTcp(viewer);
        fanout.play(viewer, 0, source);
        bench.push();
        const current = bench;
        const media = (): Buffer | undefined => current.datagrams(viewer).find((datagram) => !isRtcp(datagram));
        await bench.until('the first frame', () => media() !== undefined && (fanout.viewerCounters(viewer)?.packets ?? 0) >= 6);
        const first = Buffer.from(peer.open(media()!)).readUInt16BE(2);
        let expected = 0;
        for (const packet of splitPackets(input)) {
          aimNacks(packet, first);
          const sealed = peer.seal(packet);
          for (const bytes of sealed === null ? [packet] : [packet, sealed]) {
            fanout.inject(viewer, bytes);
            expected += 1;
          }
        }
        const counted = (): number => (fanout.viewerCounters(viewer)?.received ?? 0) + (fanout.viewerCounters(viewer)?.refused ?? 0);
        await bench.until(`a verdict on ${expected} packets`, () => counted() >= expected);
        // Whatever came before, a keyframe request must arrive, and media must continue.
        const heard = bench.heard.get(viewer)?.length ?? 0;
        for (let more = 0; more < 2; more += 1) fanout.inject(viewer, peer.seal(PLI)!);
        const packets = fanout.viewerCounters(viewer)?.packets ?? 0;
        bench.push();
        await bench.until('the last report', () => (bench?.heard.get(viewer)?.length ?? 0) > heard);
        await bench.until('the last frame', () => (fanout.viewerCounters(viewer)?.packets ?? 0) >= packets + 6);
        return fanout.viewerCounters(viewer)?.packets ?? 0;
      } finally {
        fanout.closeViewer(viewer);
        bench.frames.delete(viewer);
        bench.heard.delete(viewer);
      }
    },
    // Two frames, and the burst of permitted retransmissions.
    most: () => 2 * 6 + 160,
    cost: 12,
    close: () => {
      bench?.fanout.close();
      bench = null;
    },
  };
}

/** A session's sequence numbers start anywhere; numbers in the corpus are relative to the first. */
function aimNacks(packet: Uint8Array, first: number): void {
  const view = Buffer.from(packet.buffer);
  for (let at = 0; at + 16 <= view.length; at += 4) {
    if (view.readUInt8(at + 1) !== 205 || view.readUInt32BE(at + 8) !== MEDIA_SSRC) continue;
    view.writeUInt16BE((view.readUInt16BE(at + 12) + first) & 0xffff, at + 12);
  }
}

/** Datagrams to the port from unknown senders, and from the address of a known peer. */
function openPort(kind: Kind): FuzzTarget {
  let total = 0;
  let opened: Promise<{ fanout: Fanout; socket: number; port: number; events: () => number }> | null = null;
  const open = async () => {
    let events = 0;
    const count = (): void => {
      events += 1;
    };
    const listener: FanoutListener = { stun: count, dtls: count, rtcp: count, rtp: count, tcp: count };
    const fanout =
      kind === 'native' && addon !== null
        ? new NativeFanout(addon, { certificate, listener, threads: 1 })
        : new ScriptFanout({ certificate, listener });
    const { socket, port } = await fanout.bind('127.0.0.1', 0);
    // The port sends to itself, so its own address is that of a peer.
    const viewer = fanout.openViewer({ cname: 'self', slots: [SLOT] });
    fanout.setKeys(viewer, new Sealed(SrtpProfile.AEAD_AES_128_GCM).keys);
    fanout.connect(viewer, socket, { host: '127.0.0.1', port });
    return { fanout, socket, port, events: () => events };
  };
  return {
    name: `fanout-port-${kind}`,
    form: 'packets',
    seeds: () => [
      ...reports(),
      joinPackets([hex('0001 0000 2112a442 000000000000000000000000'), hex('16feff 0000000000000000 0000'), Buffer.alloc(3000, 0x80)]),
    ],
    run: async (input) => {
      opened ??= open();
      const { fanout, socket, port, events } = await opened;
      const to = { host: '127.0.0.1', port };
      const before = fanout.counters().datagramsReceived;
      const packets = splitPackets(input).filter((packet) => packet.length > 0 && packet.length < 60_000);
      const sent = packets.filter((packet) => fanout.send(socket, to, packet)).length;
      const deadline = performance.now() + DEADLINE_MS;
      while (fanout.counters().datagramsReceived < before + sent) {
        if (performance.now() > deadline) throw new Error(`${fanout.counters().datagramsReceived - before} of ${sent} datagrams came`);
        await new Promise((resolve) => setImmediate(resolve));
      }
      total += sent;
      // Events of the last datagrams may still be missing.
      if (events() > total) throw new Error(`${events()} events of ${total} datagrams`);
      return 0;
    },
    cost: 12,
    close: () => {
      void opened?.then(({ fanout }) => fanout.close());
      opened = null;
    },
  };
}

export const FANOUT_TARGETS: readonly FuzzTarget[] = [
  ...(addon === null ? [] : [sealedPackets('native'), openPort('native')]),
  sealedPackets('script'),
  openPort('script'),
];
