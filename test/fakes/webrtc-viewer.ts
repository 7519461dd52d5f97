/** A WebRTC viewer without browser: real connectivity checks, handshake and decryption, and it counts what arrives. */
import { randomBytes } from 'node:crypto';
import { createCertificate, type DtlsCertificate, formatFingerprint } from '../../src/protocols/dtls/certificate.ts';
import { loadAddon } from '../../src/protocols/fanout/addon.ts';
import type { DtlsEndpoint, Fanout, PeerAddress } from '../../src/protocols/fanout/fanout.ts';
import { NativeFanout } from '../../src/protocols/fanout/native-fanout.ts';
import { ScriptFanout } from '../../src/protocols/fanout/script-fanout.ts';
import { rtpHeaderLength } from '../../src/protocols/srtp/packet-head.ts';
import { parseStun, StunAttribute, StunType, serializeStun } from '../../src/protocols/stun/stun-message.ts';

const UFRAG = 'test';
const PASSWORD = 'passwordpasswordpassword';
const RETRY_MS = 200;

export interface ReceivedPacket {
  readonly ssrc: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker: boolean;
  readonly payload: Buffer;
}

export interface WebrtcViewerOptions {
  /** Only counts packets, without decrypting or keeping them: hundreds of viewers then fit on a core. */
  readonly counting?: boolean;
  /** Told of each media packet when it arrives. */
  readonly onPacket?: (packet: ReceivedPacket) => void;
}

export class WebrtcViewer {
  /** Every media packet, in order of arrival; empty when they are only counted. */
  readonly packets: ReceivedPacket[] = [];
  readonly certificate: DtlsCertificate = createCertificate(Date.now());
  connected = false;
  /** Why the connection ended; empty while it lasts. */
  ended = '';
  readonly #options: WebrtcViewerOptions;
  readonly #fanout: Fanout;
  #socket = 0;
  #viewer = 0;
  #dtls: DtlsEndpoint | null = null;
  #server: { readonly to: PeerAddress; readonly ufrag: string; readonly password: string; readonly fingerprint: string } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: WebrtcViewerOptions = {}) {
    this.#options = options;
    const listener = {
      stun: (_socket: number, _from: PeerAddress, datagram: Buffer) => this.#stun(datagram),
      dtls: (_socket: number, _from: PeerAddress, datagram: Buffer) => this.#dtls?.receive(datagram),
      rtcp: () => undefined,
      rtp: (_viewer: number, packet: Buffer) => this.#rtp(packet),
      tcp: () => undefined,
    };
    const { addon } = loadAddon();
    const plan = { certificate: this.certificate, listener, threads: 1, history: 0 };
    this.#fanout = addon === null ? new ScriptFanout(plan) : new NativeFanout(addon, plan);
  }

  /** Media packets that arrived. */
  get received(): number {
    // Packets without keys belong to nobody the fanout knows.
    return this.#options.counting === true ? this.#fanout.counters().strangers : this.packets.length;
  }

  /** The answer to an offer of ours: the first codec of each m-line. */
  answer(offer: string): string {
    const [, ...medias] = offer.split(/(?=^m=)/m);
    const lines = [
      'v=0',
      'o=- 1 2 IN IP4 127.0.0.1',
      's=-',
      't=0 0',
      `a=fingerprint:sha-256 ${this.certificate.fingerprint}`,
      'a=setup:active',
    ];
    for (const media of medias) {
      const [, kind = '', first = ''] = /^m=(\w+) \d+ \S+ (\d+)/.exec(media) ?? [];
      const map = new RegExp(`^a=rtpmap:${first} .*$`, 'm').exec(media)?.[0].trimEnd() ?? '';
      const mid = /^a=mid:(\w+)/m.exec(media)?.[1] ?? '';
      lines.push(
        `m=${kind} 9 UDP/TLS/RTP/SAVPF ${first}`,
        'a=recvonly',
        `a=mid:${mid}`,
        `a=ice-ufrag:${UFRAG}`,
        `a=ice-pwd:${PASSWORD}`,
        map,
      );
    }
    return `${lines.join('\r\n')}\r\n`;
  }

  /** Connects to who made `offer`, at its first UDP candidate. */
  async connect(offer: string, candidates: readonly string[]): Promise<void> {
    const [, host = '', port = '0'] = / UDP \d+ (\S+) (\d+) /.exec(candidates.find((line) => line.includes(' UDP ')) ?? '') ?? [];
    const attribute = (name: string): string => new RegExp(`^a=${name}:(.*?)\r?$`, 'm').exec(offer)?.[1] ?? '';
    this.#server = {
      to: { host, port: Number(port) },
      ufrag: attribute('ice-ufrag'),
      password: attribute('ice-pwd'),
      fingerprint: attribute('fingerprint').split(' ')[1] ?? '',
    };
    ({ socket: this.#socket } = await this.#fanout.bind('127.0.0.1', 0));
    this.#check();
    this.#timer = setInterval(() => {
      if (this.#dtls === null) this.#check();
      else this.#dtls.tick();
    }, RETRY_MS);
  }

  /** Leaves: with a word to the server, or (`silently`) without. */
  close(silently = false): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    if (!silently) this.#dtls?.close();
    this.#fanout.close();
  }

  #check(): void {
    if (this.#server === null) return;
    const { to, ufrag, password } = this.#server;
    const request = serializeStun({
      type: StunType.BINDING_REQUEST,
      transaction: randomBytes(12),
      attributes: [
        [StunAttribute.USERNAME, Buffer.from(`${ufrag}:${UFRAG}`)],
        [StunAttribute.ICE_CONTROLLING, randomBytes(8)],
        [StunAttribute.USE_CANDIDATE, Buffer.alloc(0)],
      ],
      password,
    });
    this.#fanout.send(this.#socket, to, request);
  }

  #stun(datagram: Buffer): void {
    const server = this.#server;
    if (parseStun(datagram).type !== StunType.BINDING_SUCCESS || this.#dtls !== null || server === null) return;
    this.#dtls = this.#fanout.openDtls('client', {
      send: (bytes) => {
        this.#fanout.send(this.#socket, server.to, bytes);
      },
      connected: (keys, fingerprint) => {
        if (formatFingerprint(fingerprint) !== server.fingerprint) throw new Error('the server has another certificate than it said');
        this.connected = true;
        if (this.#options.counting === true) return;
        this.#viewer = this.#fanout.openViewer({ cname: 'viewer', slots: [] });
        this.#fanout.setKeys(this.#viewer, keys);
        this.#fanout.connect(this.#viewer, this.#socket, server.to);
      },
      closed: (reason) => {
        this.ended = reason;
      },
    });
  }

  #rtp(packet: Buffer): void {
    const header = rtpHeaderLength(packet);
    const received: ReceivedPacket = {
      ssrc: packet.readUInt32BE(8),
      sequence: packet.readUInt16BE(2),
      timestamp: packet.readUInt32BE(4),
      marker: (packet.readUInt8(1) & 0x80) !== 0,
      payload: packet.subarray(header),
    };
    this.packets.push(received);
    this.#options.onPacket?.(received);
  }
}
