/** One peer: its ICE session, its handshake, and its viewer in the fanout. */
import { formatFingerprint } from '../dtls/certificate.ts';
import type { DtlsEndpoint, Fanout, PeerAddress, ViewerCounters, ViewerPlan } from '../fanout/fanout.ts';
import { createCredentials, type IceCredentials } from '../ice/ice-credentials.ts';
import type { SrtpKeys } from '../srtp/profile.ts';
import type { PeerPipe } from './peer-pipe.ts';

/** Where a datagram came from and an answer goes to. */
export type PeerPath =
  | { readonly kind: 'udp'; readonly socket: number; readonly to: PeerAddress }
  | { readonly kind: 'tcp'; readonly pipe: PeerPipe };

/** Why a session ends that the peer ended itself. */
export const PEER_LEFT = 'the peer closed the connection';
/** To connect, ms, where the timeout is switched off. */
const CONNECT_PATIENCE_MS = 30_000;
/** Datagrams of a handshake that may arrive before the peer's answer does. */
const EARLY_LIMIT = 8;
/** Bytes waiting in a TCP connection beyond which frames are dropped: the viewer is too slow. */
const TCP_BACKLOG = 1024 * 1024;

/** What the owner of a session hears. */
export interface PeerListener {
  /** Media may flow. */
  connected(session: PeerSession): void;
  /** Compound RTCP of the peer, decrypted. */
  rtcp(packet: Buffer): void;
  /** Media of the peer, decrypted. `at`: when it came, ms of a clock of its own. Absent: the peer sends none that is wanted. */
  rtp?(packet: Buffer, at: number): void;
  /** The session is over; once, and not when the owner closed it. */
  closed(reason: string): void;
}

/** What a session needs of its transport. */
export interface PeerOwner {
  readonly fanout: Fanout;
  now(): number;
  /** The session has its viewer now. */
  started(session: PeerSession): void;
  forget(session: PeerSession): void;
}

/** What the negotiation came to. */
export interface PeerTerms {
  readonly plan: ViewerPlan;
  /** `sha-256 AA:…` as signalled. */
  readonly fingerprint: string;
  /** Our part in the handshake. */
  readonly role: 'client' | 'server';
}

export class PeerSession {
  readonly credentials: IceCredentials = createCredentials();
  readonly openedAt: number;
  readonly timeout: number;
  readonly #owner: PeerOwner;
  readonly #listener: PeerListener;
  readonly #early: Buffer[] = [];
  #terms: PeerTerms | null = null;
  #dtls: DtlsEndpoint | null = null;
  #viewer = 0;
  #path: PeerPath | null = null;
  #connected = false;
  #closed = false;
  #heardAt: number;
  #tcpDropped = 0;

  /** `timeout`: ms without a connectivity check after which the peer is gone. */
  constructor(owner: PeerOwner, listener: PeerListener, timeout: number) {
    this.#owner = owner;
    this.#listener = listener;
    this.timeout = timeout;
    this.openedAt = owner.now();
    this.#heardAt = this.openedAt;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The viewer in the fanout; 0 before `start`. */
  get viewer(): number {
    return this.#viewer;
  }

  /** Where the peer is, for the log; empty while it is unknown. */
  get place(): string {
    if (this.#path === null) return '';
    if (this.#path.kind === 'udp') return `udp ${this.#path.to.host}:${this.#path.to.port}`;
    return this.#path.pipe.place;
  }

  get counters(): ViewerCounters | null {
    return this.#viewer === 0 ? null : this.#owner.fanout.viewerCounters(this.#viewer);
  }

  /** Packets that a viewer over TCP was too slow for. */
  get tcpDropped(): number {
    return this.#tcpDropped;
  }

  /** Begins with what was negotiated. */
  start(terms: PeerTerms): void {
    if (this.#closed || this.#terms !== null) return;
    const { fanout } = this.#owner;
    this.#terms = terms;
    this.#viewer = fanout.openViewer(terms.plan);
    this.#owner.started(this);
    if (this.#path !== null) this.#place(this.#path);
    for (const datagram of this.#early.splice(0)) this.handshake(datagram);
  }

  /** The peer proved that it is reachable by `path`. */
  reached(path: PeerPath, nominated: boolean): void {
    this.#heardAt = this.#owner.now();
    if (this.#path !== null && (!nominated || samePath(this.#path, path))) return;
    this.#path = path;
    if (this.#terms !== null) this.#place(path);
  }

  /** A datagram of the handshake. */
  handshake(datagram: Buffer): void {
    if (this.#closed) return;
    if (this.#terms === null) {
      if (this.#early.length < EARLY_LIMIT) this.#early.push(datagram);
      return;
    }
    this.#endpoint().receive(datagram);
  }

  /** An encrypted packet that came over TCP. */
  packet(bytes: Buffer): void {
    if (this.#viewer !== 0) this.#owner.fanout.inject(this.#viewer, bytes);
  }

  /** Packets for a peer over TCP. */
  sendTcp(frames: Buffer): void {
    if (this.#path?.kind !== 'tcp') return;
    if (this.#path.pipe.backlog > TCP_BACKLOG) this.#tcpDropped += 1;
    else this.#path.pipe.sendFrames(frames);
  }

  rtp(packet: Buffer, at: number): void {
    if (!this.#closed) this.#listener.rtp?.(packet, at);
  }

  /** Sends a compound RTCP packet. */
  sendRtcp(packet: Uint8Array): void {
    if (this.#connected && !this.#closed) this.#owner.fanout.sendRtcp(this.#viewer, packet);
  }

  rtcp(packet: Buffer): void {
    if (!this.#closed) this.#listener.rtcp(packet);
  }

  /** Looks at the clock; called a few times a second. */
  tick(now: number): void {
    if (this.#terms?.role === 'client' && this.#path !== null) this.#endpoint();
    this.#dtls?.tick();
    // Who never connected is not waited for without end, whatever the settings say of those who play.
    const patience = this.timeout > 0 || this.#connected ? this.timeout : CONNECT_PATIENCE_MS;
    if (patience > 0 && now - this.#heardAt > patience) {
      this.fail(this.#connected ? `no connectivity check for ${patience} ms` : this.#failure(patience));
    }
  }

  /** The TCP connection is gone. */
  lost(pipe: PeerPipe): void {
    if (this.#path?.kind === 'tcp' && this.#path.pipe === pipe) this.fail('the TCP connection ended');
  }

  /** Ends the session and tells the owner. */
  fail(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#listener.closed(reason);
  }

  /** Idempotent; the listener is not called. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#dtls?.close();
    if (this.#viewer !== 0) this.#owner.fanout.closeViewer(this.#viewer);
    if (this.#path?.kind === 'tcp') this.#path.pipe.end();
    this.#owner.forget(this);
  }

  #failure(patience: number): string {
    if (this.#path === null) return `no connectivity check arrived within ${patience} ms: is the UDP port reachable from the peer?`;
    return `the handshake was not finished within ${patience} ms (peer at ${this.place})`;
  }

  #place(path: PeerPath): void {
    const { fanout } = this.#owner;
    if (path.kind === 'udp') fanout.connect(this.#viewer, path.socket, path.to);
    else fanout.connectTcp(this.#viewer);
  }

  #endpoint(): DtlsEndpoint {
    this.#dtls ??= this.#owner.fanout.openDtls(this.#terms?.role ?? 'server', {
      send: (datagram) => this.#send(datagram),
      connected: (keys, fingerprint) => this.#secured(keys, fingerprint),
      closed: (reason) => this.fail(this.#connected ? PEER_LEFT : `DTLS: ${reason}`),
    });
    return this.#dtls;
  }

  #send(datagram: Uint8Array): void {
    const path = this.#path;
    if (path === null) return;
    if (path.kind === 'udp') this.#owner.fanout.send(path.socket, path.to, datagram);
    else path.pipe.send(datagram);
  }

  #secured(keys: SrtpKeys, fingerprint: Uint8Array): void {
    if (`sha-256 ${formatFingerprint(fingerprint)}` !== this.#terms?.fingerprint) {
      this.fail('the certificate is not the one that was signalled');
      return;
    }
    this.#connected = true;
    this.#owner.fanout.setKeys(this.#viewer, keys);
    this.#listener.connected(this);
  }
}

function samePath(a: PeerPath, b: PeerPath): boolean {
  if (a.kind === 'tcp') return b.kind === 'tcp' && a.pipe === b.pipe;
  return b.kind === 'udp' && a.socket === b.socket && a.to.host === b.to.host && a.to.port === b.to.port;
}
