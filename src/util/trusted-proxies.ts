/** Proxies whose headers about their clients are trusted. */
import { isIP } from 'node:net';
import { AddressSet } from './address-set.ts';
import { plainAddress } from './client-address.ts';

/** Maximum of characters read from `X-Forwarded-For`, from its end: earlier text comes from clients themselves. */
const MAX_HEADER = 1024;
const HTTPS_PORT = 443;
const DEFAULT_PORTS = new Map([
  ['http', 80],
  ['ws', 80],
  ['https', HTTPS_PORT],
  ['wss', HTTPS_PORT],
]);
const PORT = /^[1-9]\d{0,4}$/;
const MAX_PORT = 65_535;

/** A proxy's description of its client. */
export interface ProxyHeaders {
  /** `X-Forwarded-For` */
  readonly forwardedFor: string | undefined;
  /** `X-Real-IP` */
  readonly realIp: string | undefined;
  /** `X-Forwarded-Proto` */
  readonly forwardedProto: string | undefined;
  /** `X-Forwarded-Port` */
  readonly forwardedPort: string | undefined;
}

/** The port that a client has used. */
export interface AskedPort {
  /** Over TLS. */
  readonly secure: boolean;
  readonly port: number;
}

/** The addresses of a request; `header` returns a value by its lower-case name. */
export function proxyHeaders(header: (name: string) => string | undefined): ProxyHeaders {
  return {
    forwardedFor: header('x-forwarded-for'),
    realIp: header('x-real-ip'),
    forwardedProto: header('x-forwarded-proto'),
    forwardedPort: header('x-forwarded-port'),
  };
}

/** The addresses and networks of trusted proxies. */
export class TrustedProxies extends AddressSet {
  /**
   * The client of a request that came from `address`: the last entry of `X-Forwarded-For` that is not a trusted proxy, if a trusted proxy
   * wrote it. Earlier entries are the client's own claims. An invalid entry ends the search.
   */
  clientOf(address: string, forwardedFor: string | undefined): string {
    if (this.isEmpty || forwardedFor === undefined || !this.has(address)) return address;
    let client = address;
    for (const entry of forwardedFor.slice(-MAX_HEADER).split(',').reverse()) {
      const hop = addressOf(entry.trim());
      if (hop === null) break;
      client = hop;
      if (!this.has(hop)) break;
    }
    return client;
  }

  /**
   * As `clientOf`, for decisions by client address: if a trusted proxy wrote no `X-Forwarded-For`, its `X-Real-IP` counts.
   * `X-Forwarded-For` has precedence, because the proxy may have passed on an `X-Real-IP` of the client.
   */
  realIpOf(address: string, { forwardedFor, realIp }: Pick<ProxyHeaders, 'forwardedFor' | 'realIp'>): string {
    if (forwardedFor !== undefined || realIp === undefined) return this.clientOf(address, forwardedFor);
    return (this.has(address) ? addressOf(realIp.trim()) : null) ?? address;
  }

  /**
   * The address that the client of a trusted proxy used for a request from `address` to `own`: the scheme given by the nearest proxy, and
   * its port, else the default port of the scheme.
   */
  askedAt(
    address: string,
    { forwardedProto, forwardedPort }: Pick<ProxyHeaders, 'forwardedProto' | 'forwardedPort'>,
    own: AskedPort,
  ): AskedPort {
    if (this.isEmpty || forwardedProto === undefined || !this.has(address)) return own;
    const port = DEFAULT_PORTS.get(nearest(forwardedProto));
    if (port === undefined) return own;
    const told = nearest(forwardedPort ?? '');
    return { secure: port === HTTPS_PORT, port: PORT.test(told) && Number(told) <= MAX_PORT ? Number(told) : port };
  }
}

/** The last entry of a list, which the nearest proxy has written. */
function nearest(header: string): string {
  return header
    .slice(header.lastIndexOf(',') + 1)
    .trim()
    .toLowerCase();
}

/** The address of an entry, which may have a port: `192.0.2.1:5000`, `[2001:db8::1]:5000`. Null when it is none. */
function addressOf(entry: string): string | null {
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry;
  return isIP(address) === 0 || address.includes('%') ? null : plainAddress(address);
}
