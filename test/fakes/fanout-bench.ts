/** Fan-outs of all kinds with viewers on plain sockets, to test their common behaviour. */
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { loadAddon } from '../../src/native/addon.ts';
import { createCertificate } from '../../src/services/webrtc/transport/dtls-certificate.ts';
import type { Fanout, FanoutListener, PacketizedFrame, SlotPlan } from '../../src/services/webrtc/transport/fanout/fanout.ts';
import { NativeFanout } from '../../src/services/webrtc/transport/fanout/native-fanout.ts';
import { ScriptFanout } from '../../src/services/webrtc/transport/script-fanout/script-fanout.ts';
import { isRtcp, rtpHeaderLength } from '../../src/wire/srtp/packet-head.ts';
import { type SrtpKeys, SrtpProfile, saltLength } from '../../src/wire/srtp/profile.ts';
import { SrtpCipher } from '../../src/wire/srtp/srtp-cipher.ts';
import { SrtpReceiver } from '../../src/wire/srtp/srtp-receiver.ts';

const { addon } = loadAddon();

/** Media of a viewer of the bench, unless a test changes it. */
export const VIDEO: SlotPlan = {
  ssrc: 0x1111,
  payloadType: 98,
  rtx: { ssrc: 0x2222, payloadType: 99 },
  // One element of three bytes (abs-send-time, id 4), padded to a word.
  extension: { bytes: Uint8Array.of(0xbe, 0xde, 0, 1, 0x42, 0, 0, 0), sendTimeAt: 5, transportSequenceAt: 0 },
};
export const PLI = Buffer.from('81ce00020000999900001111', 'hex');
export const WAIT = { deadlineMs: 30_000, everyMs: 5 };

export type FanoutKind = 'native, segmented' | 'native, batched' | 'native, single' | 'script';
/** The kinds available on this machine. */
export const FANOUT_KINDS: readonly FanoutKind[] = [
  ...(addon === null ? [] : (['native, segmented', 'native, batched', 'native, single'] as const)),
  'script',
];

/** Events that a fan-out reported to its listener. */
export interface Heard {
  readonly stun: Buffer[];
  /** Source addresses of STUN. */
  readonly stunHosts: string[];
  readonly rtcp: Buffer[];
  readonly rtp: Buffer[];
  readonly tcp: Buffer[];
  readonly dtls: Buffer[];
}

export interface ReceivedVideo {
  readonly payloadType: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker: boolean;
  readonly payload: Buffer;
  readonly extension: Buffer;
}

/** A viewer on a plain socket, with the keys of the other end. */
export class FanoutPeer {
  readonly socket: Socket;
  readonly video: ReceivedVideo[] = [];
  readonly again: { original: number; timestamp: number; payload: Buffer }[] = [];
  readonly reports: Buffer[] = [];
  /** Datagrams received earlier. */
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

/** Random keys. */
export function keysFor(profile: SrtpProfile): SrtpKeys {
  const salt = saltLength(profile);
  return { profile, localKey: randomBytes(16), localSalt: randomBytes(salt), remoteKey: randomBytes(16), remoteSalt: randomBytes(salt) };
}

/** A frame with the marker bit, whose packets have these sizes; all bytes of a packet are equal. */
export function frame(timestamp: number, keyframe: boolean, sizes: readonly number[]): PacketizedFrame {
  const payloads = Buffer.concat(sizes.map((size, n) => Buffer.alloc(size, (timestamp + n) & 0xff)));
  return { timestamp, keyframe, marker: true, payloads, sizes: Uint32Array.from(sizes) };
}

/** Generic NACK (RFC 4585 section 6.2.1) with one entry. */
export function nackOf(ssrc: number, sequence: number, mask: number): Buffer {
  const packet = Buffer.alloc(16);
  packet.set([0x81, 205, 0, 3]);
  packet.writeUInt32BE(0x9999, 4);
  packet.writeUInt32BE(ssrc, 8);
  packet.writeUInt16BE(sequence, 12);
  packet.writeUInt16BE(mask, 14);
  return packet;
}

export function nothingHeard(): Heard {
  return { stun: [], stunHosts: [], rtcp: [], rtp: [], tcp: [], dtls: [] };
}

/** A fan-out with a source and a viewer that can be sent to. */
export interface StartedFanout {
  readonly fanout: Fanout;
  readonly heard: Heard;
  /** Id of the fan-out's port. */
  readonly socket: number;
  readonly port: number;
  readonly source: number;
  readonly viewer: number;
  readonly peer: FanoutPeer;
}

/** The owner closes it, and may reuse it afterwards. */
export class FanoutBench {
  readonly certificate = createCertificate(Date.now());
  readonly #closers: (() => void)[] = [];

  open(kind: FanoutKind, heard: Heard): Fanout {
    const listener: FanoutListener = {
      stun: (_socket, { host }, datagram) => {
        heard.stun.push(datagram);
        heard.stunHosts.push(host);
      },
      dtls: (_socket, _from, datagram) => heard.dtls.push(datagram),
      rtcp: (_viewer, packet) => heard.rtcp.push(packet),
      rtp: (_viewer, packet) => heard.rtp.push(packet),
      tcp: (_viewer, frames) => heard.tcp.push(frames),
    };
    const { certificate } = this;
    const fanout =
      kind === 'script' || addon === null
        ? new ScriptFanout({ certificate, listener })
        : new NativeFanout(addon, {
            certificate,
            listener,
            threads: 2,
            history: 200,
            sendMode: kind === 'native, single' ? 'single' : kind === 'native, batched' ? 'batched' : 'segmented',
          });
    this.onClose(() => fanout.close());
    return fanout;
  }

  async openPeer(keys: SrtpKeys): Promise<FanoutPeer> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    this.onClose(() => socket.close());
    return new FanoutPeer(socket, keys);
  }

  async start(kind: FanoutKind, profile: SrtpProfile = SrtpProfile.AEAD_AES_128_GCM): Promise<StartedFanout> {
    const heard = nothingHeard();
    const fanout = this.open(kind, heard);
    const { socket, port } = await fanout.bind('127.0.0.1', 0);
    const keys = keysFor(profile);
    const peer = await this.openPeer(keys);
    const source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    const viewer = fanout.openViewer({ cname: 'somebody', slots: [VIDEO] });
    fanout.setKeys(viewer, keys);
    fanout.connect(viewer, socket, { host: '127.0.0.1', port: peer.socket.address().port });
    return { heard, fanout, socket, port, peer, source, viewer };
  }

  onClose(closer: () => void): void {
    this.#closers.push(closer);
  }

  close(): void {
    for (const closer of this.#closers.splice(0)) closer();
  }
}
