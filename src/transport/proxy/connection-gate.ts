/** The gate between a listener and its protocol: it admits connections, and finds clients behind proxies. */
import type { Socket } from 'node:net';
import { plainAddress } from '../../util/client-address.ts';
import { type ConnectionLimiter, unlimitedConnections } from '../../util/connection-limiter.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { TrustedProxies } from '../../util/trusted-proxies.ts';
import { type ClientEnd, readProxyHeader } from '../../wire/proxy/proxy-header.ts';

/** For a proxy to send its header, ms. */
const HEADER_TIME_MS = 5000;

/** Limits of a gate, and its trusted proxies. */
export interface GateOptions {
  readonly limiter: ConnectionLimiter;
  /** Proxies whose connections have no share of their own: they bring many clients. Absent: there are none. */
  readonly proxies?: TrustedProxies;
  /** Connections from these addresses begin with a PROXY header; without it they are closed. */
  readonly proxyProtocol?: boolean;
}

/** The gate of one listener. */
export class ConnectionGate {
  readonly #options: GateOptions;
  /** Clients announced by proxies, by the address of the proxy's connection. Bounded by the number of connections. */
  readonly #clients = new Map<string, ClientEnd>();

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /**
   * Admits a new connection: `begin` is called when it may be served, at once or after the proxy's header, `refuse` when a limit is
   * reached. Bytes that the client has sent by then are in the socket. A connection with an invalid header is closed.
   */
  open(socket: Socket, begin: () => void, refuse: () => void): void {
    const { limiter, proxies, proxyProtocol } = this.#options;
    if (proxies?.has(socket.remoteAddress ?? '') !== true) {
      if (limiter.admit(socket)) begin();
      else refuse();
    } else if (!limiter.admit(socket, null)) refuse();
    else if (proxyProtocol === true) this.#readHeader(socket, begin, refuse);
    else begin();
  }

  /** The listener itself has refused one: it has `limit` already. */
  overflow(limit: number): void {
    this.#options.limiter.overflow(limit);
  }

  /** Counts an admitted connection that is closed because its client speaks another protocol; `why` is a fixed sentence. */
  fault(socket: Parameters<ConnectionGate['clientOf']>[0], why: string): void {
    this.#options.limiter.fault(why, this.clientOf(socket).address);
  }

  /** The same of a connection whose client is known. */
  faultOf(address: string, why: string): void {
    this.#options.limiter.fault(why, address);
  }

  /** Where the client of a connection is, also of what runs on top of it (TLS). */
  clientOf(socket: { readonly remoteAddress?: string | undefined; readonly remotePort?: number | undefined }): ClientEnd {
    const { remoteAddress = '', remotePort = 0 } = socket;
    const told = this.#clients.size === 0 ? undefined : this.#clients.get(`${remoteAddress} ${remotePort}`);
    return told ?? { address: plainAddress(remoteAddress), port: remotePort };
  }

  #readHeader(socket: Socket, begin: () => void, refuse: () => void): void {
    const { limiter } = this.#options;
    let held = Buffer.alloc(0);
    const fail = (why = 'no PROXY header'): void => {
      limiter.fault(why, socket.remoteAddress ?? '');
      socket.destroy();
    };
    const deadline = setTimeout(() => fail(), HEADER_TIME_MS);
    const onError = (): void => void socket.destroy();
    const onClose = (): void => clearTimeout(deadline);
    const onData = (chunk: Buffer): void => {
      let header: ReturnType<typeof readProxyHeader>;
      try {
        held = Buffer.concat([held, chunk]);
        header = readProxyHeader(held);
      } catch (error) {
        // No caller could catch an error here.
        fail(error instanceof ProtocolError ? undefined : `a PROXY header that the server failed on: ${String(error)}`);
        return;
      }
      if (header === null) return;
      clearTimeout(deadline);
      socket.off('data', onData).off('error', onError).off('close', onClose).pause();
      const { client, length } = header;
      if (client !== null) this.#remember(socket, client);
      if (held.length > length) socket.unshift(held.subarray(length));
      if (client !== null && !limiter.admitAddress(socket, client.address)) refuse();
      else begin();
    };
    socket.on('error', onError).on('close', onClose).on('data', onData).resume();
  }

  #remember(socket: Socket, client: ClientEnd): void {
    const key = `${socket.remoteAddress} ${socket.remotePort}`;
    this.#clients.set(key, client);
    socket.once('close', () => this.#clients.delete(key));
  }
}

/** A gate without limits and without trusted proxies. */
export function openGate(what: string): ConnectionGate {
  return new ConnectionGate({ limiter: unlimitedConnections(what) });
}
