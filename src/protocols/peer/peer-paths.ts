/** The ways by which a peer has proved to be reachable, and which of them is in use. */
import type { PeerAddress } from '../fanout/fanout.ts';
import type { PeerPipe } from './peer-pipe.ts';

/** Where a datagram came from and an answer goes to. */
export type PeerPath =
  | { readonly kind: 'udp'; readonly socket: number; readonly to: PeerAddress }
  | { readonly kind: 'tcp'; readonly pipe: PeerPipe };

/** Without a check for so long, a path gives way to one that the peer prefers, ms. Browsers check theirs at least every 2.5 s. */
const SILENCE_MS = 3000;
/** A path heard no longer ago takes over when the one in use is lost, ms. Browsers check spare ones every 25 s. */
const SPARE_MS = 30_000;
const PATHS_LIMIT = 16;

interface KnownPath {
  readonly path: PeerPath;
  heardAt: number;
  nominated: boolean;
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
  heard(path: PeerPath, nominated: boolean, now: number): boolean {
    let known = this.#known.find((candidate) => samePath(candidate.path, path));
    if (known === undefined) {
      known = { path, heardAt: now, nominated: false };
      this.#known.push(known);
      this.#forgetOldest();
    }
    known.heardAt = now;
    known.nominated ||= nominated;
    if (known === this.#current || !(this.#current === null || (nominated && this.#isBetter(path, this.#current, now)))) return false;
    this.#current = known;
    return true;
  }

  /** The connection of a path ended. True when that was the path in use: `current` is the one that takes over then, if there is one. */
  lost(pipe: PeerPipe, now: number): boolean {
    const at = this.#known.findIndex(({ path }) => path.kind === 'tcp' && path.pipe === pipe);
    if (at < 0) return false;
    const [gone] = this.#known.splice(at, 1);
    if (gone !== this.#current) return false;
    const spares = this.#known.filter(({ heardAt }) => now - heardAt <= SPARE_MS);
    this.#current = spares.sort((a, b) => b.heardAt - a.heardAt)[0] ?? null;
    return true;
  }

  /** Ends all connections. Idempotent. */
  close(): void {
    for (const { path } of this.#known.splice(0)) if (path.kind === 'tcp') path.pipe.end();
  }

  /** A peer may nominate with every check on every path: one that works is not left for the next that works too. */
  #isBetter(path: PeerPath, current: KnownPath, now: number): boolean {
    if (!current.nominated || now - current.heardAt > SILENCE_MS) return true;
    return path.kind === 'udp' && current.path.kind === 'tcp';
  }

  #forgetOldest(): void {
    if (this.#known.length <= PATHS_LIMIT) return;
    const at = this.#known.findIndex((known) => known !== this.#current);
    const [{ path }] = this.#known.splice(at, 1) as [KnownPath];
    if (path.kind === 'tcp') path.pipe.end();
  }
}

function samePath(a: PeerPath, b: PeerPath): boolean {
  if (a.kind === 'tcp') return b.kind === 'tcp' && a.pipe === b.pipe;
  return b.kind === 'udp' && a.socket === b.socket && a.to.host === b.to.host && a.to.port === b.to.port;
}
