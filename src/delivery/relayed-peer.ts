import type { AskedPort } from '../util/trusted-proxies.ts';
import type { ClientEnd } from '../wire/proxy/proxy-header.ts';

/**
 * Head of a connection that a delivery thread relays to the main thread: one line of JSON before the first byte of the request.
 */
export interface RelayedPeer {
  /** Client address, as far as trusted proxies report it. */
  readonly address: string;
  /** The server's port of the request. */
  readonly port: number;
  /** The port that the client used: this port, or the port of a trusted proxy that reports it. */
  readonly asked: AskedPort;
  /** The other end of the connection. */
  readonly end: ClientEnd;
  /** The address for access control, see `TrustedProxies.realIpOf`. */
  readonly realIp: string;
}
