/** Decides whether a listener takes a connection. */
import type { Socket } from 'node:net';
import type { AddressShares } from './address-shares.ts';
import type { DescriptorLedger } from './descriptor-ledger.ts';
import type { RefusalLog } from './refusal-log.ts';

/** Options of a limiter. */
export interface ConnectionLimiterOptions {
  /** Name of the clients in the log: `RTMP connections`. */
  readonly what: string;
  /** Connections by address; absent: no limit. */
  readonly shares?: AddressShares;
  /** Descriptors of all such connections; absent: no limit. */
  readonly descriptors?: DescriptorLedger;
  /** Logs refused connections; absent: they are not logged. */
  readonly refusals?: RefusalLog;
}

/** The limits of one listener. */
export class ConnectionLimiter {
  /** Refused connections. */
  refused = 0;
  readonly #options: ConnectionLimiterOptions;

  constructor(options: ConnectionLimiterOptions) {
    this.#options = options;
  }

  /**
   * True when there is room for a connection from `address`, which is counted until the socket closes. False: the caller closes it.
   * `address` null: a proxy that carries many clients, without a share of its own.
   */
  admit(socket: Socket, address: string | null = socket.remoteAddress ?? ''): boolean {
    const { what, descriptors } = this.#options;
    if (descriptors !== undefined && !descriptors.take()) {
      this.#refuse(`${what} refused: the file descriptors for them are used up (ulimit -n)`, { limit: descriptors.limit });
      return false;
    }
    if (address !== null && !this.admitAddress(socket, address)) {
      descriptors?.give();
      return false;
    }
    if (descriptors !== undefined) socket.once('close', () => descriptors.give());
    return true;
  }

  /** Applies only the limit of an address, when the client of an admitted connection becomes known. */
  admitAddress(socket: Socket, address: string): boolean {
    const { what, shares } = this.#options;
    const slot = shares?.enter(address);
    if (slot === null) {
      this.#refuse(`${what} refused: their address has its share`, { peer: address, share: shares?.share });
      return false;
    }
    if (slot !== undefined) socket.once('close', () => slot.leave());
    return true;
  }

  /** Counts an admitted connection from `address` that was closed because of an invalid beginning. */
  fault(why: string, address: string): void {
    this.#refuse(`${this.#options.what} closed: ${why}`, { peer: address });
  }

  /** The listener has refused a connection itself, because `limit` connections are open. */
  overflow(limit: number): void {
    this.#refuse(`${this.#options.what} refused: too many are open`, { limit });
  }

  #refuse(sentence: string, fields: object): void {
    this.refused += 1;
    this.#options.refusals?.note(sentence, fields);
  }
}

/** A limiter that admits everything, for listeners without limits. */
export function unlimitedConnections(what: string): ConnectionLimiter {
  return new ConnectionLimiter({ what });
}
