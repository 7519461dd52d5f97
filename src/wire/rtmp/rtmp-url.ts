/** The URL to which an RTMP client connects (`tcUrl`). */

/** Parts as written, nothing decoded. Empty text means absent. */
export interface RtmpUrl {
  readonly scheme: string;
  /** IPv6 addresses keep their brackets. */
  readonly host: string;
  /** 0 when not given. */
  readonly port: number;
  readonly app: string;
  readonly stream: string;
  /** Without the question mark. */
  readonly query: string;
}

const PATTERN =
  /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?:[^/?@]*@)?(?<host>\[[^\]/?]*\]|[^:/?]*)(?::(?<port>\d*))?(?<path>\/[^?]*)?(?:\?(?<query>[^?]*))?/i;
const MAX_PORT = 65_535;

/** Null for any other text. A second question mark ends the query. */
export function parseRtmpUrl(text: string): RtmpUrl | null {
  const groups = PATTERN.exec(text)?.groups;
  if (groups === undefined) return null;
  const port = Number(groups['port'] ?? '');
  if (port > MAX_PORT) return null;
  const [app = '', stream = ''] = (groups['path'] ?? '').split('/').filter((part) => part !== '');
  return { scheme: (groups['scheme'] ?? '').toLowerCase(), host: groups['host'] ?? '', port, app, stream, query: groups['query'] ?? '' };
}

/** The URL as text; port 0 and an empty query are left out. */
export function formatRtmpUrl(url: RtmpUrl): string {
  const port = url.port === 0 ? '' : `:${url.port}`;
  const query = url.query === '' ? '' : `?${url.query}`;
  const stream = url.stream === '' ? '' : `/${url.stream}`;
  return `${url.scheme}://${url.host}${port}/${url.app}${stream}${query}`;
}

/** Splits a stream key typed by a user, `name?query`; a second question mark ends the query. */
export function parseStreamKey(key: string): { name: string; query: string } {
  const [name = '', query = ''] = key.split('?');
  return { name, query };
}
