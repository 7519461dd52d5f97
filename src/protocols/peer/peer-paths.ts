/** The ways by which a peer has proved to be reachable, and which of them is in use. */
import type { PeerAddress } from '../fanout/fanout.ts';
import { CANDIDATE_PRIORITY } from '../ice/ice-candidate.ts';
import { placeOf } from './peer-address.ts';
import type { PeerPipe } from './peer-pipe.ts';

/** Where a datagram came from and an answer goes to. */
export type PeerPath =
  | { readonly kind: 'udp'; readonly socket: number; readonly to: PeerAddress }
  | { readonly kind: 'tcp'; readonly pipe: PeerPipe };

/** For the log: `udp 192.0.2.1:5000`. */
export function placeOfPath(path: PeerPath): string {
  return path.kind === 'udp' ? `udp ${placeOf(path.to.host, path.to.port)}` : path.pipe.place;
}

/** Without a check for so long, a path gives way to one that the peer prefers, ms. Browsers check theirs at least every 2.5 s. */
const SILENCE_MS = 3000;
/** A path heard no longer ago takes over when the one in use is lost, ms. Browsers check spare ones every 25 s. */
const SPARE_MS = 30_000;
const PATHS_LIMIT = 16;

interface KnownPath {
  readonly path: PeerPath;
  /** Of the pair (RFC 8445 section 6.1.2.3). */
  priority: number;
  heardAt: number;
  nominated: boolean;
}

/** A check that the peer made. */
export interface PathCheck {
  readonly nominated: boolean;
  /** Of the peer's candidate; 0 when it does not tell. */
  readonly priority: number;
}

export class PeerPaths {
  /** In the order of their first checks. */
  readonly #known: KnownPath[] = [];
  #current: KnownPath | null = null;

  get current(): PeerPath | null {
    return this.#current?.path ?? null;
  }

  /** All that work, oldest first. */
  get all(): readonly PeerPath[] {
    return this.#known.map(({ path }) => path);
  }

  /** A check came by `path`. True when that path is in use from now on and was not before. */
  heard(path: PeerPath, { nominated, priority }: PathCheck, now: number): boolean {
    let known = this.#known.find((candidate) => samePath(candidate.path, path));
    if (known === undefined) {
      known = { path, priority: 0, heardAt: now, nominated: false };
      this.#known.push(known);
      this.#forgetOldest();
    }
    known.priority = pairPriority(priority, CANDIDATE_PRIORITY[path.kind === 'udp' ? 'UDP' : 'TCP']);
    known.heardAt = now;
    known.nominated ||= nominated;
    if (known === this.#current || !(this.#current === null || (nominated && this.#isBetter(known, this.#current, now)))) return false;
    this.#current = known;
    return true;
  }

  /**
   * Consent to send (RFC 7675) is that of the path in use: after `patience` ms without a check on it another one that was
   * heard since takes over. `moved`: it did; `silent`: there is none.
   */
  review(now: number, patience: number): 'fresh' | 'moved' | 'silent' {
    if (this.#current === null) return 'silent';
    if (now - this.#current.heardAt <= patience) return 'fresh';
    const spare = this.#spare(now - patience);
    if (spare === null) return 'silent';
    this.#current = spare;
    return 'moved';
  }

  /** Since the last check on any path, ms. */
  silence(now: number): number {
    return now - Math.max(...this.#known.map(({ heardAt }) => heardAt));
  }

  /** The connection of a path ended. True when that was the path in use: `current` is the one that takes over then, if there is one. */
  lost(pipe: PeerPipe, now: number): boolean {
    const at = this.#known.findIndex(({ path }) => path.kind === 'tcp' && path.pipe === pipe);
    if (at < 0) return false;
    const [gone] = this.#known.splice(at, 1);
    if (gone !== this.#current) return false;
    this.#current = this.#spare(now - SPARE_MS);
    return true;
  }

  /** Ends all connections. Idempotent. */
  close(): void {
    for (const { path } of this.#known.splice(0)) if (path.kind === 'tcp') path.pipe.end();
  }

  /** The path heard last, and not before `since`. */
  #spare(since: number): KnownPath | null {
    const heard = this.#known.filter(({ heardAt }) => heardAt >= since);
    return heard.sort((a, b) => b.heardAt - a.heardAt)[0] ?? null;
  }

  /** A peer may nominate with every check on every path: the pair of the highest priority is meant (RFC 5245 section 8.1.1.2). */
  #isBetter(path: KnownPath, current: KnownPath, now: number): boolean {
    return !current.nominated || now - current.heardAt > SILENCE_MS || path.priority > current.priority;
  }

  #forgetOldest(): void {
    if (this.#known.length <= PATHS_LIMIT) return;
    const at = this.#known.findIndex((known) => known !== this.#current);
    const [{ path }] = this.#known.splice(at, 1) as [KnownPath];
    if (path.kind === 'tcp') path.pipe.end();
  }
}

/** RFC 8445 section 6.1.2.3: `theirs` is that of the controlling side. */
function pairPriority(theirs: number, ours: number): number {
  return 2 ** 32 * Math.min(theirs, ours) + 2 * Math.max(theirs, ours) + (theirs > ours ? 1 : 0);
}

function samePath(a: PeerPath, b: PeerPath): boolean {
  if (a.kind === 'tcp') return b.kind === 'tcp' && a.pipe === b.pipe;
  return b.kind === 'udp' && a.socket === b.socket && a.to.host === b.to.host && a.to.port === b.to.port;
}
