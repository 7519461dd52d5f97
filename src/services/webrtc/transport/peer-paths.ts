/** The paths by which a peer made checks, those that it has proved, and the path in use. */

import { hostPort } from '../../../util/client-address.ts';
import { CANDIDATE_PRIORITY } from '../../../wire/ice/ice-candidate.ts';
import type { PeerAddress } from './fanout/fanout.ts';
import { PathProof } from './path-proof.ts';
import type { PeerPipe } from './peer-pipe.ts';

/** The source address of a datagram and the destination of its answer. */
export type PeerPath =
  | { readonly kind: 'udp'; readonly socket: number; readonly to: PeerAddress }
  | { readonly kind: 'tcp'; readonly pipe: PeerPipe };

/** For the log: `udp 192.0.2.1:5000`. */
export function placeOfPath(path: PeerPath): string {
  return path.kind === 'udp' ? `udp ${hostPort(path.to.host, path.to.port)}` : path.pipe.place;
}

/** A path without a check for this long is replaced by one that the peer prefers, ms. Browsers check at least every 2.5 s. */
const SILENCE_MS = 3000;
/** When the path in use is lost, a path that answered within this time takes over, ms. Browsers check spare paths every 25 s. */
const SPARE_MS = 30_000;
const MAX_PATHS = 16;
/** Our checks within the time of consent: losing one of them does not end it (RFC 7675 section 5.1). */
const CHECKS_OF_CONSENT = 6;
const MAX_INTERVAL_MS = 5000;
/** Intervals differ by a fifth either way, so that sessions do not check in step (RFC 7675 section 5.1). */
const MIN_SHARE = 0.8;
const SHARE_RANGE = 0.4;

interface KnownPath {
  readonly path: PeerPath;
  readonly proof: PathProof;
  /** Priority of the pair (RFC 8445 section 6.1.2.3). */
  priority: number;
  heardAt: number;
  nominated: boolean;
  /** Nominated before it has answered: judged when it answers. */
  awaited: boolean;
}

/** A check that the peer made. */
export interface PathCheck {
  readonly nominated: boolean;
  /** Priority of the peer's candidate; 0 if unknown. */
  readonly priority: number;
  /** Bytes of the check, and of our answer. */
  readonly received: number;
  readonly answered: number;
}

/**
 * A path carries nothing before it has answered a check of ours, because a client that knows the password can send checks with forged
 * source addresses. TCP connections need no such check, because their addresses cannot be forged.
 */
export class PeerPaths {
  /** Consent expires without an answer for this long, ms. */
  readonly #timeoutMs: number;
  readonly #interval: number;
  /** In the order of their first checks. */
  readonly #known: KnownPath[] = [];
  #current: KnownPath | null = null;
  #provenAt = Number.NEGATIVE_INFINITY;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#interval = Math.min(MAX_INTERVAL_MS, timeoutMs / CHECKS_OF_CONSENT);
  }

  get current(): PeerPath | null {
    return this.#current?.path ?? null;
  }

  /** All paths by which the peer made checks, oldest first. */
  get all(): readonly PeerPath[] {
    return this.#known.map(({ path }) => path);
  }

  /** A check came by `path`. True when that path is in use from now on and was not before. */
  heard(path: PeerPath, { nominated, priority, received, answered }: PathCheck, now: number): boolean {
    let known = this.#find(path);
    if (known === undefined) {
      known = { path, proof: new PathProof(), priority: 0, heardAt: now, nominated: false, awaited: false };
      this.#known.push(known);
      this.#forgetOldest();
    }
    known.priority = pairPriority(priority, CANDIDATE_PRIORITY[path.kind === 'udp' ? 'UDP' : 'TCP']);
    known.heardAt = now;
    known.nominated ||= nominated;
    this.#expire(known, now);
    known.proof.heard(received, answered, this.#interval);
    if (path.kind === 'tcp') this.#prove(known, now);
    if (known.proof.isProven) return this.#isChosen(known, nominated, now);
    known.awaited ||= nominated;
    return false;
  }

  /** A check of ours was answered by `path`. True when that path is in use from now on and was not before. */
  answered(path: PeerPath, now: number): boolean {
    const known = this.#find(path);
    if (known === undefined) return false;
    this.#prove(known, now);
    const wasAwaited = known.awaited;
    known.awaited = false;
    return this.#isChosen(known, wasAwaited, now);
  }

  /** Paths on which our checks, of `bytes` each, are due; they count as sent. */
  due(bytes: number, now: number): readonly PeerPath[] {
    let paths: PeerPath[] | null = null;
    for (const { path, proof } of this.#known) {
      if (!proof.isDue(bytes, now)) continue;
      proof.checked(bytes, now, this.#pause());
      paths ??= [];
      paths.push(path);
    }
    return paths ?? NONE;
  }

  /**
   * Consent to send (RFC 7675) on the path in use: if it has not answered for too long, another proven path takes over. `moved`: it did;
   * `silent`: there is none.
   */
  review(now: number): 'fresh' | 'moved' | 'silent' {
    if (this.#current === null) return 'silent';
    this.#expire(this.#current, now);
    if (this.#current.proof.isProven) return 'fresh';
    const spare = this.#spare(now - this.#timeoutMs);
    if (spare === null) return 'silent';
    this.#use(spare, now);
    return 'moved';
  }

  /** Time since the last answer on any path, ms. */
  silence(now: number): number {
    return now - this.#provenAt;
  }

  /** The connection of a path ended. True if it was the path in use; then `current` is its replacement, if any. */
  lost(pipe: PeerPipe, now: number): boolean {
    const at = this.#known.findIndex(({ path }) => path.kind === 'tcp' && path.pipe === pipe);
    if (at < 0) return false;
    const [gone] = this.#known.splice(at, 1);
    if (gone !== this.#current) return false;
    this.#current = null;
    const spare = this.#spare(now - Math.min(SPARE_MS, this.#timeoutMs));
    if (spare !== null) this.#use(spare, now);
    return true;
  }

  /** Ends all connections. Idempotent. */
  close(): void {
    for (const { path } of this.#known.splice(0)) if (path.kind === 'tcp') path.pipe.end();
  }

  #find(path: PeerPath): KnownPath | undefined {
    return this.#known.find((candidate) => samePath(candidate.path, path));
  }

  #prove(known: KnownPath, now: number): void {
    known.proof.proved(now);
    this.#provenAt = now;
    if (known === this.#current) known.proof.schedule(now + this.#pause());
  }

  #expire({ proof }: KnownPath, now: number): void {
    if (proof.isProven && now - proof.provenAt > this.#timeoutMs) proof.expire();
  }

  /** Puts a path that has answered into use if it is to be; true when it was not before. */
  #isChosen(known: KnownPath, nominated: boolean, now: number): boolean {
    if (known === this.#current || !(this.#current === null || (nominated && this.#isBetter(known, this.#current, now)))) return false;
    this.#use(known, now);
    return true;
  }

  #use(known: KnownPath, now: number): void {
    this.#current = known;
    known.proof.schedule(now + this.#pause());
  }

  #pause(): number {
    return this.#interval * (MIN_SHARE + SHARE_RANGE * Math.random());
  }

  /** The path that answered last, and not before `since`. */
  #spare(since: number): KnownPath | null {
    const proven = this.#known.filter(({ proof }) => proof.provenAt >= since);
    return proven.sort((a, b) => b.proof.provenAt - a.proof.provenAt)[0] ?? null;
  }

  /** A peer may nominate with every check on every path: the pair of the highest priority is meant (RFC 5245 section 8.1.1.2). */
  #isBetter(path: KnownPath, current: KnownPath, now: number): boolean {
    return !current.nominated || now - current.heardAt > SILENCE_MS || path.priority > current.priority;
  }

  /** A path that has answered stays, if another path can be removed: it may be needed. */
  #forgetOldest(): void {
    if (this.#known.length <= MAX_PATHS) return;
    const unproven = this.#known.findIndex((known) => known !== this.#current && !known.proof.isProven);
    const at = unproven >= 0 && unproven < MAX_PATHS ? unproven : this.#known.findIndex((known) => known !== this.#current);
    const [{ path }] = this.#known.splice(at, 1) as [KnownPath];
    if (path.kind === 'tcp') path.pipe.end();
  }
}

const NONE: readonly PeerPath[] = [];

/** RFC 8445 section 6.1.2.3: `theirs` is the priority of the controlling side. */
function pairPriority(theirs: number, ours: number): number {
  return 2 ** 32 * Math.min(theirs, ours) + 2 * Math.max(theirs, ours) + (theirs > ours ? 1 : 0);
}

/** True for paths to the same place. */
export function samePath(a: PeerPath, b: PeerPath): boolean {
  if (a.kind === 'tcp') return b.kind === 'tcp' && a.pipe === b.pipe;
  return b.kind === 'udp' && a.socket === b.socket && a.to.host === b.to.host && a.to.port === b.to.port;
}
