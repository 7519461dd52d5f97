/** The connection of a WebRTC peer without a browser: real connectivity checks, handshake and encryption. */
import { randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { createCertificate, type DtlsCertificate, formatFingerprint } from '../../src/services/webrtc/transport/dtls-certificate.ts';
import type { DtlsEndpoint, Fanout, PeerAddress, SlotPlan } from '../../src/services/webrtc/transport/fanout/fanout.ts';
import { openFanout } from '../../src/services/webrtc/transport/fanout/open-fanout.ts';
import { isLoopback } from '../../src/util/client-address.ts';
import {
  isStunAuthentic,
  parseStun,
  StunAttribute,
  type StunMessage,
  StunType,
  serializeStun,
  xorMappedAddress,
} from '../../src/wire/stun/stun-message.ts';

const UFRAG = 'test';
/** Password of the peer's ICE credentials. */
export const PEER_PASSWORD = 'passwordpasswordpassword';
const RETRY_MS = 200;
/** A receiver keeps checking for consent (RFC 7675 §5.1). */
const CONSENT_TICKS = 25;

/** ICE lines of the peer's media descriptions. */
export const PEER_CREDENTIALS: readonly string[] = [`a=ice-ufrag:${UFRAG}`, `a=ice-pwd:${PEER_PASSWORD}`];

export abstract class WebrtcPeer {
  readonly #certificate: DtlsCertificate = createCertificate(Date.now());
  connected = false;
  /** Local UDP port; 0 until it connects. */
  port = 0;
  /** Why the connection ended; empty while it lasts. */
  ended = '';
  readonly #fanout: Fanout;
  #socket = 0;
  #dtls: DtlsEndpoint | null = null;
  #server: { readonly to: PeerAddress; readonly ufrag: string; readonly password: string; readonly fingerprint: string } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor() {
    const listener = {
      stun: (socket: number, from: PeerAddress, datagram: Buffer) => this.#stun(socket, from, datagram),
      dtls: (_socket: number, _from: PeerAddress, datagram: Buffer) => this.#dtls?.receive(datagram),
      rtcp: (_viewer: number, packet: Buffer) => this.onRtcp(packet),
      rtp: (_viewer: number, packet: Buffer) => this.onRtp(packet),
      tcp: () => undefined,
    };
    this.#fanout = openFanout({ certificate: this.#certificate, listener, threads: 1 }).fanout;
  }

  /** Media that the peer sends; null: it does not even decrypt. */
  protected abstract slots(): readonly SlotPlan[] | null;

  /** Media may flow. */
  protected onConnected(_fanout: Fanout, _viewer: number): void {}

  protected onRtp(_packet: Buffer): void {}

  protected onRtcp(_packet: Buffer): void {}

  /** A session description: its head, then these lines. */
  protected describe(setup: string, lines: readonly string[]): string {
    const identity = [`a=fingerprint:sha-256 ${this.#certificate.fingerprint}`, `a=setup:${setup}`];
    return `${['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 't=0 0', ...identity, ...lines].join('\r\n')}\r\n`;
  }

  /** Number of datagrams that were not decrypted. */
  protected get strangers(): number {
    return this.#fanout.counters().strangers;
  }

  /** Connects to the first UDP candidate of the peer with this description. */
  async connect(description: string, candidates: readonly string[] = description.split(/\r?\n/)): Promise<void> {
    const [, host = '', port = '0'] = / UDP \d+ (\S+) (\d+) /.exec(candidates.find((line) => line.includes(' UDP ')) ?? '') ?? [];
    const attribute = (name: string): string => new RegExp(`^a=${name}:(.*?)\r?$`, 'm').exec(description)?.[1] ?? '';
    this.#server = {
      to: { host, port: Number(port) },
      ufrag: attribute('ice-ufrag'),
      password: attribute('ice-pwd'),
      fingerprint: attribute('fingerprint').split(' ')[1] ?? '',
    };
    const own = isIPv6(host) ? '::1' : isLoopback(host) ? '127.0.0.1' : '0.0.0.0';
    ({ socket: this.#socket, port: this.port } = await this.#fanout.bind(own, 0));
    this.#check();
    let ticks = 0;
    this.#timer = setInterval(() => {
      ticks += 1;
      if (this.#dtls === null || ticks % CONSENT_TICKS === 0) this.#check();
      this.#dtls?.tick();
    }, RETRY_MS);
  }

  /** Leaves with a notice to the server, or `silently`. */
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

  /** Answers a check of the server, whatever its source address, as every agent does. */
  protected onCheck(message: StunMessage, socket: number, from: PeerAddress): void {
    if (!isStunAuthentic(message, PEER_PASSWORD)) return;
    const { transaction } = message;
    const mapped = xorMappedAddress(from.host, from.port, transaction);
    const attributes = [[StunAttribute.XOR_MAPPED_ADDRESS, mapped]] as const;
    this.#fanout.send(socket, from, serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes, password: PEER_PASSWORD }));
  }

  #stun(socket: number, from: PeerAddress, datagram: Buffer): void {
    const server = this.#server;
    const message = parseStun(datagram);
    if (message.type === StunType.BINDING_REQUEST) this.onCheck(message, socket, from);
    if (message.type !== StunType.BINDING_SUCCESS || this.#dtls !== null || server === null) return;
    this.#dtls = this.#fanout.openDtls('client', {
      send: (bytes) => {
        this.#fanout.send(this.#socket, server.to, bytes);
      },
      connected: (keys, fingerprint) => {
        if (formatFingerprint(fingerprint) !== server.fingerprint) throw new Error('the server has another certificate than it said');
        this.connected = true;
        const slots = this.slots();
        if (slots === null) return;
        const viewer = this.#fanout.openViewer({ cname: 'peer', slots });
        this.#fanout.setKeys(viewer, keys);
        this.#fanout.connect(viewer, this.#socket, server.to);
        this.onConnected(this.#fanout, viewer);
      },
      closed: (reason) => {
        this.ended = reason;
      },
    });
  }
}
