/** Counts sessions that are not connected yet, so that clients that only request offers keep no other clients out. */

import { addressOwner } from '../../../util/client-address.ts';
import { OwnerCounts } from '../../../util/owner-counts.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';

/** Purpose of a peer. */
export type PeerUse = 'play' | 'publish';

/**
 * Maximum of sessions of all addresses that are not connected yet, counted apart for players and publishers. A handshake in progress holds
 * 70 KiB.
 */
const MAX_PER_USE = 2048;

/** Limit of one address; 0: none. */
export interface PeerShares {
  /**
   * Sessions that are not connected yet. A flash crowd behind one proxy or one carrier's NAT fits, because connecting takes a fraction of a
   * second and the session of a silent client ends after 30 s.
   */
  readonly waiting: number;
  /** Sessions of players, including those not connected yet. */
  readonly play: number;
  /** Sessions of publishers, including those not connected yet. */
  readonly publish: number;
}
/** The default. */
const DEFAULT_PEER_SHARES: PeerShares = { waiting: 256, play: 0, publish: 0 };

interface Session {
  readonly use: PeerUse;
  readonly owner: string;
  waits: boolean;
}

/** Counts the sessions of each address: all sessions, and those that are not connected yet. */
export class SessionQuota {
  readonly #shares: PeerShares;
  readonly #sessions = new Map<object, Session>();
  readonly #waiting = new OwnerCounts();
  readonly #open: Record<PeerUse, OwnerCounts> = { play: new OwnerCounts(), publish: new OwnerCounts() };
  readonly #byUse: Record<PeerUse, number> = { play: 0, publish: 0 };
  #turnedAway = 0;

  constructor(shares: PeerShares = DEFAULT_PEER_SHARES) {
    this.#shares = shares;
  }

  /** Sessions that wait. */
  get size(): number {
    return this.#byUse.play + this.#byUse.publish;
  }

  /** Requests that found no room. */
  get turnedAway(): number {
    return this.#turnedAway;
  }

  /** Throws ProtocolError `WEBRTC_FULL` when a further session for `client` has no room. */
  check(use: PeerUse, client: string): void {
    const fault = this.#fault(use, addressOwner(client));
    if (fault === null) return;
    this.#turnedAway += 1;
    throw new ProtocolError('WEBRTC_FULL', fault);
  }

  enter(session: object, use: PeerUse, client: string): void {
    const owner = addressOwner(client);
    this.#sessions.set(session, { use, owner, waits: true });
    this.#waiting.add(owner);
    this.#open[use].add(owner);
    this.#byUse[use] += 1;
  }

  /** The session is connected: it counts only among those of its address. Idempotent. */
  settle(session: object): void {
    const entry = this.#sessions.get(session);
    if (entry === undefined || !entry.waits) return;
    entry.waits = false;
    this.#byUse[entry.use] -= 1;
    this.#waiting.remove(entry.owner);
  }

  /** The session is over. Idempotent. */
  leave(session: object): void {
    this.settle(session);
    const entry = this.#sessions.get(session);
    if (entry === undefined) return;
    this.#sessions.delete(session);
    this.#open[entry.use].remove(entry.owner);
  }

  #fault(use: PeerUse, owner: string): string | null {
    const { waiting, ...open } = this.#shares;
    if (waiting > 0 && this.#waiting.of(owner) >= waiting)
      return `${waiting} WebRTC sessions of this address have been opened and are not connected yet`;
    if (open[use] > 0 && this.#open[use].of(owner) >= open[use]) return `${open[use]} WebRTC sessions of this address are open already`;
    return this.#byUse[use] < MAX_PER_USE ? null : `${MAX_PER_USE} WebRTC sessions have been opened and are not connected yet`;
  }
}
