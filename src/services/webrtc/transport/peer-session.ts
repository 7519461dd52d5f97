/** One peer: its ICE session, its handshake, and its viewer in the fanout. */

import { plainAddress } from '../../../util/client-address.ts';
import { readCandidates } from '../../../wire/ice/ice-candidate.ts';
import { createCredentials, type IceCredentials } from '../../../wire/ice/ice-credentials.ts';
import type { CheckFault } from '../../../wire/ice/ice-lite.ts';
import { CheckWriter, transactionKey } from '../../../wire/ice/own-check.ts';
import { type SrtpKeys, wipeKeys } from '../../../wire/srtp/profile.ts';
import { ConnectionTrail } from './connection-trail.ts';
import { formatFingerprint } from './dtls-certificate.ts';
import type { DtlsEndpoint, Fanout, ViewerCounters, ViewerPlan } from './fanout/fanout.ts';
import { type PathCheck, type PeerPath, PeerPaths, placeOfPath, samePath } from './peer-paths.ts';
import type { PeerPipe } from './peer-pipe.ts';
import type { PeerPlaces } from './peer-places.ts';
import type { PeerUse } from './session-quota.ts';
import type { StrangerLog } from './stranger-log.ts';

/** The reason of sessions that the peer ended. */
export const PEER_LEFT = 'the peer closed the connection';
/** Time to connect, ms, however long an established session may be silent. */
const CONNECT_TIMEOUT_MS = 30_000;
/** The log reports a session that still waits without any check after this time, ms. */
const TELL_AFTER_MS = 5000;
/** Consent to send expires without an answer (RFC 7675 section 5.1), ms. */
const CONSENT_MS = 30_000;
/** Maximum of datagrams of a handshake before the peer's session description, or its answer to our check; the newest are kept. */
const MAX_EARLY = 8;
/** Limit of unanswered checks of ours: two for each path. */
const MAX_AWAITED = 32;
/** Bytes waiting in a TCP connection beyond which frames are dropped: the viewer is too slow. */
const MAX_TCP_BACKLOG = 1024 * 1024;

/** Events for the owner of a session. */
export interface PeerListener {
  /** Media may flow. */
  connected(session: PeerSession): void;
  /** Compound RTCP of the peer, decrypted. */
  rtcp(packet: Buffer): void;
  /** Media of the peer, decrypted. `at`: when it came, ms of a clock of its own. Absent: the peer sends none that is wanted. */
  rtp?(packet: Buffer, at: number): void;
  /** The peer has sent nothing for a while, and the session still waits. `attempts`: the attempts so far, `; offered …`. Once. */
  unreached?(attempts: string): void;
  /** False: the peer's consent has expired (RFC 7675), so nothing may be sent; true: it consents again. */
  consented?(given: boolean): void;
  /** The session is over; once, and not if the owner closed it. */
  closed(reason: string): void;
}

/** The transport as its sessions see it. */
export interface PeerOwner {
  readonly fanout: Fanout;
  now(): number;
  readonly strangers: StrangerLog;
  readonly places: PeerPlaces<PeerSession>;
  /** Sessions by the transactions of their checks (`transactionKey`) that may still be answered. */
  readonly awaited: Map<string, PeerSession>;
  /** Our candidates, for one peer: ports take turns. */
  candidates(use: PeerUse, client: string): readonly string[];
  /** The session has its viewer now. */
  started(session: PeerSession): void;
  /** Media may flow. */
  connected(session: PeerSession): void;
  forget(session: PeerSession): void;
}

/** The request of a peer, as signalling knows it. */
export interface PeerSessionOptions {
  readonly use: PeerUse;
  /** Source address of the signalling. */
  readonly client: string;
  /** When no connectivity check has been answered for so long the peer is gone, ms; 0: never. */
  readonly timeout: number;
}

/** The result of the negotiation. */
export interface PeerTerms {
  readonly plan: ViewerPlan;
  /** `sha-256 AA:…` as signalled. */
  readonly fingerprint: string;
  /** Our part in the handshake. */
  readonly role: 'client' | 'server';
  /** The peer's credentials, for checks of ours. */
  readonly remote: IceCredentials;
}

/** One of our checks that is not answered yet. */
interface AwaitedCheck {
  readonly key: string;
  readonly path: PeerPath;
  readonly at: number;
}

/**
 * Opened by the transport, closed by the session above it (`close`) or on its own (`fail`), which the listener is notified of. Both free
 * everything.
 */
export class PeerSession {
  readonly credentials: IceCredentials = createCredentials();
  readonly openedAt: number;
  readonly #options: PeerSessionOptions;
  readonly #owner: PeerOwner;
  readonly #listener: PeerListener;
  readonly #early: Buffer[] = [];
  readonly #paths: PeerPaths;
  /** Oldest first. */
  readonly #awaited: AwaitedCheck[] = [];
  readonly #timeoutMs: number;
  #terms: PeerTerms | null = null;
  #writer: CheckWriter | null = null;
  #dtls: DtlsEndpoint | null = null;
  #viewer = 0;
  #connected = false;
  #closed = false;
  #consented = true;
  /** Null once the session is connected. */
  #trail: ConnectionTrail | null = new ConnectionTrail();
  /** Since when the peer is waited for: its turn begins with our offer, and again with its answer. */
  #waitingSince: number;
  #told = false;
  #tcpDropped = 0;
  #last: ViewerCounters | null = null;

  constructor(owner: PeerOwner, listener: PeerListener, options: PeerSessionOptions) {
    this.#owner = owner;
    this.#listener = listener;
    this.#options = options;
    this.openedAt = owner.now();
    this.#waitingSince = this.openedAt;
    this.#timeoutMs = Math.min(options.timeout || CONSENT_MS, CONSENT_MS);
    this.#paths = new PeerPaths(this.#timeoutMs);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The viewer in the fanout; 0 before `start`. */
  get viewer(): number {
    return this.#viewer;
  }

  /** The peer's address, for the log; empty while it is unknown. */
  get place(): string {
    const path = this.#paths.current;
    if (path === null) return '';
    return placeOfPath(path);
  }

  /** Attempts, for the log: `; offered udp 192.0.2.1:10000; …`. Empty once the session has been connected. */
  get attempts(): string {
    if (this.#trail === null) return '';
    const strangers = this.#owner.strangers.tell(plainAddress(this.#options.client), this.openedAt);
    return `; ${this.#trail.describe()}${strangers === '' ? '' : `; ${strangers}`}`;
  }

  /** The fanout's figures of the peer; the last figures when the session is over. */
  get counters(): ViewerCounters | null {
    if (this.#closed) return this.#last;
    return this.#viewer === 0 ? null : this.#owner.fanout.viewerCounters(this.#viewer);
  }

  /** Packets for which a viewer over TCP was too slow. */
  get tcpDropped(): number {
    return this.#tcpDropped;
  }

  /** Begins with the negotiated parameters. */
  start(terms: PeerTerms): void {
    if (this.#closed || this.#terms !== null) return;
    const { fanout } = this.#owner;
    this.#terms = terms;
    this.#waitingSince = this.#owner.now();
    this.#viewer = fanout.openViewer(terms.plan);
    this.#writer = new CheckWriter(this.credentials, terms.remote);
    this.#owner.started(this);
    for (const path of this.#paths.all) this.#hear(path);
    this.#place();
    this.#check(this.#waitingSince);
  }

  /** The password that signs the answers to our checks; null before `start`. */
  get remotePassword(): string | null {
    return this.#terms?.remote.password ?? null;
  }

  /** Our candidates, to tell the peer. */
  candidates(): readonly string[] {
    const candidates = this.#owner.candidates(this.#options.use, this.#options.client);
    this.#trail?.offered(candidates);
    return candidates;
  }

  /** The peer's session description, or a part of one: its candidates are kept for the log. */
  announced(description: string): void {
    this.#trail?.announced(readCandidates(description));
  }

  /** A check with the right password came by `path`, which must answer a check of ours before anything is sent there. */
  reached(path: PeerPath, check: PathCheck): void {
    if (this.#closed) return;
    const now = this.#owner.now();
    this.#trail?.checked(placeOfPath(path), null);
    const isMoved = this.#paths.heard(path, check, now);
    this.#hear(path);
    if (isMoved) this.#place();
    this.#check(now);
  }

  /** One of our checks was answered by `path`, with the peer's password. False if it was sent elsewhere, or too long ago. */
  answered(path: PeerPath, transaction: Buffer): boolean {
    const now = this.#owner.now();
    const key = transactionKey(transaction);
    const at = this.#awaited.findIndex((check) => check.key === key);
    const [check] = at < 0 ? [] : this.#awaited.splice(at, 1);
    this.#owner.awaited.delete(key);
    if (check === undefined || this.#closed || !samePath(check.path, path) || now - check.at > this.#timeoutMs) return false;
    this.#trail?.proved();
    const isMoved = this.#paths.answered(path, now);
    if (path.kind === 'udp' && this.#owner.places.take(path.socket, path.to, this)) this.#hear(path);
    if (isMoved) this.#place();
    return true;
  }

  /** A check for this session came by `path` and was refused. */
  refused(path: PeerPath, fault: CheckFault): void {
    this.#trail?.checked(placeOfPath(path), fault);
  }

  /** The answer to a check could not be sent. */
  unanswered(path: PeerPath): void {
    this.#trail?.unsent(placeOfPath(path));
  }

  /** A datagram of the handshake. */
  handshake(datagram: Buffer): void {
    if (this.#closed) return;
    this.#trail?.handshakeHeard();
    this.#take(datagram);
  }

  #take(datagram: Buffer): void {
    // Our handshake messages are long: a peer gets them only after it has proved its address.
    if (this.#terms === null || this.#paths.current === null) {
      // The newest are kept: flights are sent again.
      if (this.#early.push(datagram) > MAX_EARLY) this.#early.shift();
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
    if (path.pipe.backlog > MAX_TCP_BACKLOG) this.#tcpDropped += 1;
    else path.pipe.sendFrames(frames);
  }

  rtp(packet: Buffer, at: number): void {
    if (!this.#closed) this.#listener.rtp?.(packet, at);
  }

  /** Sends a compound RTCP packet. */
  sendRtcp(packet: Uint8Array): void {
    if (this.#connected && this.#consented && !this.#closed) this.#owner.fanout.sendRtcp(this.#viewer, packet);
  }

  rtcp(packet: Buffer): void {
    if (!this.#closed) this.#listener.rtcp(packet);
  }

  /** Looks at the clock; called a few times a second. */
  tick(now: number): void {
    this.#check(now);
    this.#dtls?.tick();
    if (this.#connected) this.#review(now);
    else {
      if (!this.#told && this.#terms !== null && now - this.#waitingSince > TELL_AFTER_MS) this.#tell();
      const timeoutMs = Math.min(this.#options.timeout || CONNECT_TIMEOUT_MS, CONNECT_TIMEOUT_MS);
      if (now - this.#waitingSince > timeoutMs) this.fail(this.#failure(timeoutMs));
    }
  }

  /** Moves to another path when consent expires, stops sending when there is none, and ends the session after its timeout. */
  #review(now: number): void {
    const { timeout } = this.#options;
    if (timeout > 0 && this.#paths.silence(now) > timeout) {
      this.fail(`no connectivity check was answered for ${timeout} ms`);
      return;
    }
    const state = this.#paths.review(now);
    if (state === 'moved') this.#place();
    const given = state !== 'silent';
    if (given === this.#consented) return;
    this.#consented = given;
    this.#listener.consented?.(given);
  }

  /** The TCP connection has ended. The session continues by another path if there is one. */
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
    for (const { key } of this.#awaited.splice(0)) this.#owner.awaited.delete(key);
    this.#owner.forget(this);
  }

  #failure(timeoutMs: number): string {
    if (this.#terms === null) return `the offer was not answered within ${timeoutMs} ms`;
    if (this.#paths.current === null && this.#paths.all.length > 0)
      return `the peer made connectivity checks and answered none of ours within ${timeoutMs} ms`;
    if (this.#paths.current === null)
      return `no connectivity check arrived within ${timeoutMs} ms: is the UDP port reachable from the peer?`;
    return `the handshake was not finished within ${timeoutMs} ms (peer at ${this.place})`;
  }

  /** The peer may send by any path, and may have changed its path before a check says so. */
  #hear(path: PeerPath): void {
    if (path.kind !== 'udp' || !this.#owner.places.claim(path.socket, path.to, this)) return;
    if (this.#viewer !== 0) this.#owner.fanout.hear(this.#viewer, path.socket, path.to);
  }

  /** Makes the checks that are due. */
  #check(now: number): void {
    if (this.#writer === null) return;
    for (const path of this.#paths.due(this.#writer.length, now)) {
      const { transaction, datagram } = this.#writer.write();
      const key = transactionKey(transaction);
      this.#awaited.push({ key, path, at: now });
      this.#owner.awaited.set(key, this);
      if (this.#awaited.length > MAX_AWAITED) this.#owner.awaited.delete(this.#awaited.shift()?.key ?? '');
      this.#trail?.asked();
      if (path.kind === 'udp') this.#owner.fanout.send(path.socket, path.to, datagram);
      else path.pipe.send(datagram);
    }
  }

  #tell(): void {
    this.#told = true;
    if (this.#paths.all.length === 0) this.#listener.unreached?.(this.attempts);
  }

  /** Tells the fanout the path in use, once both exist, and starts or continues the handshake. */
  #place(): void {
    const { fanout } = this.#owner;
    const path = this.#paths.current;
    if (path === null || this.#viewer === 0) return;
    if (path.kind === 'udp') fanout.connect(this.#viewer, path.socket, path.to);
    else fanout.connectTcp(this.#viewer);
    if (this.#terms?.role === 'client') this.#endpoint();
    for (const datagram of this.#early.splice(0)) this.#take(datagram);
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
    this.#trail?.handshakeSaid();
    if (path.kind === 'udp') this.#owner.fanout.send(path.socket, path.to, datagram);
    else path.pipe.send(datagram);
  }

  #secured(keys: SrtpKeys, fingerprint: Uint8Array): void {
    if (`sha-256 ${formatFingerprint(fingerprint)}` !== this.#terms?.fingerprint) {
      wipeKeys(keys);
      this.fail('the certificate is not the one that was signalled');
      return;
    }
    this.#connected = true;
    this.#trail = null;
    this.#owner.connected(this);
    this.#owner.fanout.setKeys(this.#viewer, keys);
    wipeKeys(keys);
    this.#listener.connected(this);
  }
}
