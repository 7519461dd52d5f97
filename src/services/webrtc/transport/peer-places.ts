/** Maps source addresses of datagrams to sessions. */
import { MAX_PLACES, type PeerAddress } from './fanout/fanout.ts';

/** `S`: sessions. As many addresses are remembered for each as the fanout supports; the oldest is dropped first. */
export class PeerPlaces<S> {
  readonly #owners = new Map<string, S>();
  /** The keys of each session, oldest first. */
  readonly #keys = new Map<S, Set<string>>();

  /** The session whose peer is at `from`, as far as our port `socket` is concerned. */
  of(socket: number, from: PeerAddress): S | undefined {
    return this.#owners.get(placeKey(socket, from));
  }

  /** A check for `session` came from there, which anyone can forge: false if the address already belongs to another session. */
  claim(socket: number, from: PeerAddress, session: S): boolean {
    const key = placeKey(socket, from);
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#own(key, session);
    return owner === undefined || owner === session;
  }

  /** The peer answered from there, so the place is its own now: ports of peers are used again. True if it was not before. */
  take(socket: number, from: PeerAddress, session: S): boolean {
    const key = placeKey(socket, from);
    if (this.#owners.get(key) === session) return false;
    this.#own(key, session);
    return true;
  }

  /** For ended sessions. */
  forget(session: S): void {
    for (const key of this.#keys.get(session) ?? []) this.#disown(key, session);
    this.#keys.delete(session);
  }

  #own(key: string, session: S): void {
    this.#owners.set(key, session);
    const keys = this.#keys.get(session) ?? new Set();
    this.#keys.set(session, keys);
    // An address that is taken back from another session becomes the newest.
    keys.delete(key);
    keys.add(key);
    const [oldest = ''] = keys;
    if (keys.size <= MAX_PLACES) return;
    keys.delete(oldest);
    this.#disown(oldest, session);
  }

  /** Another session may have the place by now. */
  #disown(key: string, session: S): void {
    if (this.#owners.get(key) === session) this.#owners.delete(key);
  }
}

function placeKey(socket: number, { host, port }: PeerAddress): string {
  return `${socket} ${host} ${port}`;
}
