/** The common part of a peer's TCP connections, direct or through the relay. */
import type { Socket } from 'node:net';
import { addressOwner, plainAddress } from '../../../util/client-address.ts';
import type { DescriptorLedger } from '../../../util/descriptor-ledger.ts';
import { OwnerCounts } from '../../../util/owner-counts.ts';
import type { PeerAddress } from './fanout/fanout.ts';

/** A connection on which nothing moves is gone, ms: peers check theirs every few seconds. */
const SILENCE_MS = 60_000;
/** A peer with more waiting bytes does not read, and is disconnected. Media stops at half of it, see `PeerSession.sendTcp`. */
const MAX_UNREAD = 2 * 1024 * 1024;
/** Maximum time for waiting bytes to leave when a connection ends, ms. */
const LINGER_MS = 10_000;
/**
 * Maximum of connections of one address without a session. A session comes within a fraction of a second, also for many clients behind one
 * NAT.
 */
const MAX_GUESTS = 256;

/** Limit of connections that lead to no session yet: idle connections must not take the room of others. */
export class StreamGuests {
  readonly #owners = new Map<Socket, string>();
  readonly #byOwner = new OwnerCounts();
  readonly #descriptors: DescriptorLedger | null;
  #turnedAway = 0;

  /** `descriptors`: the ledger of all viewers, these connections included; null: no limit. */
  constructor(descriptors: DescriptorLedger | null = null) {
    this.#descriptors = descriptors;
  }

  get size(): number {
    return this.#owners.size;
  }

  /** Connections that were closed because there were too many, of their address or of all. */
  get turnedAway(): number {
    return this.#turnedAway;
  }

  /** False when there are too many, of the address or of all. */
  enter(stream: Socket, host: string): boolean {
    const owner = addressOwner(host);
    if (this.#byOwner.of(owner) >= MAX_GUESTS || this.#descriptors?.take() === false) {
      this.#turnedAway += 1;
      return false;
    }
    this.#byOwner.add(owner);
    this.#owners.set(stream, owner);
    stream.once('close', () => {
      this.leave(stream);
      this.#descriptors?.give();
    });
    return true;
  }

  /** The connection has a session, or is closed. Idempotent. */
  leave(stream: Socket): void {
    const owner = this.#owners.get(stream);
    if (owner === undefined) return;
    this.#owners.delete(stream);
    this.#byOwner.remove(owner);
  }
}

/**
 * The source address of an accepted connection; null, and the connection is closed, if it was reset before its address could be read, or
 * too many connections of its address have no session.
 */
export function admitStream(stream: Socket, guests: StreamGuests): PeerAddress | null {
  const { remoteAddress, remotePort } = stream;
  const host = plainAddress(remoteAddress ?? '');
  if (remoteAddress === undefined || remotePort === undefined || !guests.enter(stream, host)) {
    stream.destroy();
    return null;
  }
  stream.setTimeout(SILENCE_MS, () => stream.destroy());
  return { host, port: remotePort };
}

/** Sends to a peer. A peer that sends requests and never reads loses its connection. */
export function sendToStream(stream: Socket, bytes: Uint8Array): void {
  if (stream.writableLength + bytes.length > MAX_UNREAD) stream.destroy();
  else stream.write(bytes);
}

/** Closes a connection when its waiting bytes have left, or after ten seconds: a peer that does not read cannot keep it. Idempotent. */
export function endStream(stream: Socket): void {
  if (stream.writableEnded || stream.destroyed) return;
  stream.destroySoon();
  const late = setTimeout(() => stream.destroy(), LINGER_MS);
  stream.once('close', () => clearTimeout(late));
}
