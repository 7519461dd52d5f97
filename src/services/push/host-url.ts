/** Parts of a URL that leads to a port of a host: `udp://`, `tcp://`, `srt://`. */
import { PushFailure } from './push-failure.ts';

/** A port is always there; `query` is decoded. */
export interface HostUrl {
  readonly scheme: string;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
  readonly query: URLSearchParams;
}

const PATTERN = /^(?<scheme>[a-z]+):\/\/(?<host>\[[^\]]*\]|[^:/?[\]]+)(?::(?<port>\d{1,5}))?(?:\/[^?]*)?(?:\?(?<query>.*))?$/i;
const MAX_PORT = 65_535;
/** Ports for URLs without one: the defaults of the SRT and MPEG-TS providers, here and in the reference server. */
export const DEFAULT_PORTS: Readonly<Record<string, number>> = { srt: 9999, udp: 4000, tcp: 4000 };

/** Throws `PushFailure` for a URL with an invalid port. */
export function parseHostUrl(url: string): HostUrl {
  const groups = PATTERN.exec(url)?.groups;
  const scheme = (groups?.['scheme'] ?? '').toLowerCase();
  const port = Number(groups?.['port'] ?? DEFAULT_PORTS[scheme] ?? 0);
  if (groups === undefined || port < 1 || port > MAX_PORT) {
    throw new PushFailure('unsuitable', 'the URL must be <scheme>://<host>:<port> with a port from 1 to 65535');
  }
  return {
    scheme,
    host: (groups['host'] ?? '').replace(/^\[|\]$/g, ''),
    port,
    query: new URLSearchParams(groups['query'] ?? ''),
  };
}
