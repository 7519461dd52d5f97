/** Parts of a URL that leads to a port of a host: `udp://`, `tcp://`, `srt://`. */
import { PushFailure } from './destination.ts';

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

/** Throws `PushFailure` for a URL without a port. */
export function parseHostUrl(url: string): HostUrl {
  const groups = PATTERN.exec(url)?.groups;
  const port = Number(groups?.['port'] ?? 0);
  if (groups === undefined || port < 1 || port > MAX_PORT) {
    throw new PushFailure('unsuitable', 'the URL must be <scheme>://<host>:<port> with a port from 1 to 65535');
  }
  return {
    scheme: (groups['scheme'] ?? '').toLowerCase(),
    host: (groups['host'] ?? '').replace(/^\[|\]$/g, ''),
    port,
    query: new URLSearchParams(groups['query'] ?? ''),
  };
}
