/** Counts sessions that are not connected yet, so that nobody who only asks for offers keeps others out. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { OwnerCounts } from './owner-counts.ts';
import { addressOwner } from './peer-address.ts';

/** What a peer wants. */
export type PeerUse = 'play' | 'publish';

/**
 * Of one address: a flash crowd behind one proxy or one carrier's NAT comes through, because connecting takes a fraction of a
 * second and a stranger's session ends after 30 s.
 */
const PER_ADDRESS = 256;
/** Of all addresses; players do not take the room of publishers. A handshake that is going on holds 70 KiB. */
const PER_USE = 2048;

export class SessionQuota {
  readonly #guests = new Map<object, { readonly use: PeerUse; readonly owner: string }>();
  readonly #byOwner = new OwnerCounts();
  readonly #byUse: Record<PeerUse, number> = { play: 0, publish: 0 };
  #turnedAway = 0;

  /** Sessions that wait. */
  get size(): number {
    return this.#guests.size;
  }

  /** Requests that found no room. */
  get turnedAway(): number {
    return this.#turnedAway;
  }

  /** Throws ProtocolError `WEBRTC_FULL` when a further session for `client` has no room. */
  check(use: PeerUse, client: string): void {
    const ofAddress = this.#byOwner.of(addressOwner(client)) >= PER_ADDRESS;
    if (!ofAddress && this.#byUse[use] < PER_USE) return;
    this.#turnedAway += 1;
    throw new ProtocolError(
      'WEBRTC_FULL',
      ofAddress
        ? `${PER_ADDRESS} WebRTC sessions of this address have been opened and are not connected yet`
        : `${PER_USE} WebRTC sessions have been opened and are not connected yet`,
    );
  }

  enter(guest: object, use: PeerUse, client: string): void {
    const owner = addressOwner(client);
    this.#guests.set(guest, { use, owner });
    this.#byOwner.add(owner);
    this.#byUse[use] += 1;
  }

  /** Connected, or gone. Idempotent. */
  leave(guest: object): void {
    const entry = this.#guests.get(guest);
    if (entry === undefined) return;
    this.#guests.delete(guest);
    this.#byUse[entry.use] -= 1;
    this.#byOwner.remove(entry.owner);
  }
}
