/** One peer: its ICE session, its handshake, and its viewer in the fanout. */
import { formatFingerprint } from '../dtls/certificate.ts';
import type { DtlsEndpoint, Fanout, ViewerCounters, ViewerPlan } from '../fanout/fanout.ts';
import { createCredentials, type IceCredentials } from '../ice/ice-credentials.ts';
import type { SrtpKeys } from '../srtp/profile.ts';
import { type PeerPath, PeerPaths } from './peer-paths.ts';
import type { PeerPipe } from './peer-pipe.ts';

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
  readonly #paths = new PeerPaths();
  #terms: PeerTerms | null = null;
  #dtls: DtlsEndpoint | null = null;
  #viewer = 0;
  #connected = false;
  #closed = false;
  #heardAt: number;
  #tcpDropped = 0;
  #last: ViewerCounters | null = null;

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
    const path = this.#paths.current;
    if (path === null) return '';
    return path.kind === 'udp' ? `udp ${path.to.host}:${path.to.port}` : path.pipe.place;
  }

  /** What the fanout counts of the peer; the last figures when the session is over. */
  get counters(): ViewerCounters | null {
    if (this.#closed) return this.#last;
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
    for (const path of this.#paths.all) this.#hear(path);
    this.#place();
    for (const datagram of this.#early.splice(0)) this.handshake(datagram);
  }

  /** The peer proved that it is reachable by `path`. */
  reached(path: PeerPath, nominated: boolean): void {
    if (this.#closed) return;
    this.#heardAt = this.#owner.now();
    this.#hear(path);
    if (this.#paths.heard(path, nominated, this.#heardAt)) this.#place();
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
    const path = this.#paths.current;
    if (path?.kind !== 'tcp') return;
    if (path.pipe.backlog > TCP_BACKLOG) this.#tcpDropped += 1;
    else path.pipe.sendFrames(frames);
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
    if (this.#terms?.role === 'client' && this.#paths.current !== null) this.#endpoint();
    this.#dtls?.tick();
    // Who never connected is not waited for without end, whatever the settings say of those who play.
    const patience = this.timeout > 0 || this.#connected ? this.timeout : CONNECT_PATIENCE_MS;
    if (patience > 0 && now - this.#heardAt > patience) {
      this.fail(this.#connected ? `no connectivity check for ${patience} ms` : this.#failure(patience));
    }
  }

  /** The TCP connection is gone. The session goes on by another path where there is one. */
  lost(pipe: PeerPipe): void {
    if (this.#closed || !this.#paths.lost(pipe, this.#owner.now())) return;
    if (this.#paths.current === null) this.fail('the TCP connection ended');
    else this.#place();
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
    this.#last = this.counters;
    this.#closed = true;
    this.#dtls?.close();
    if (this.#viewer !== 0) this.#owner.fanout.closeViewer(this.#viewer);
    this.#paths.close();
    this.#owner.forget(this);
  }

  #failure(patience: number): string {
    if (this.#paths.current === null)
      return `no connectivity check arrived within ${patience} ms: is the UDP port reachable from the peer?`;
    return `the handshake was not finished within ${patience} ms (peer at ${this.place})`;
  }

  /** The peer sends by whichever path it likes, and may have changed before a check says so. */
  #hear(path: PeerPath): void {
    if (path.kind === 'udp' && this.#viewer !== 0) this.#owner.fanout.hear(this.#viewer, path.socket, path.to);
  }

  /** Tells the fanout the path in use, once there are both. */
  #place(): void {
    const { fanout } = this.#owner;
    const path = this.#paths.current;
    if (path === null || this.#viewer === 0) return;
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
    const path = this.#paths.current;
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
