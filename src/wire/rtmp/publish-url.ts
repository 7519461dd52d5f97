/** The URL to which a publishing client connects, with or without a separate stream key. */

/** Texts in the form in which they are sent, nothing decoded. */
export interface PublishUrl {
  /** TLS from the start (`rtmps://`). */
  readonly secure: boolean;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** May hold slashes and a query. */
  readonly app: string;
  /** Empty if the URL names no stream. */
  readonly stream: string;
  /** The `tcUrl` of the `connect` command. */
  readonly tcUrl: string;
}

const PATTERN =
  /^(?<scheme>rtmps?):\/\/(?<host>\[[0-9a-f:.]+\]|[^\s/?#:@[\]]+)(?::(?<port>\d{1,5}))?(?:\/(?<path>[^\s?]*)(?<query>\?\S*)?)?$/i;
const DEFAULT_PORT = { rtmp: 1935, rtmps: 443 } as const;
const MAX_PORT = 65_535;

/**
 * Splits `url`; null if it is no RTMP URL with a host and an application. With a stream key the whole path is the application, without one
 * its last segment is the stream.
 */
export function parsePublishUrl(url: string, streamKey: string): PublishUrl | null {
  const groups = PATTERN.exec(url)?.groups;
  if (groups === undefined) return null;
  const scheme = (groups['scheme'] ?? '').toLowerCase() === 'rtmps' ? 'rtmps' : 'rtmp';
  const authority = groups['host'] ?? '';
  const port = groups['port'] === undefined ? DEFAULT_PORT[scheme] : Number(groups['port']);
  if (port < 1 || port > MAX_PORT) return null;
  const segments = (groups['path'] ?? '').split('/').filter((segment) => segment !== '');
  const query = groups['query'] ?? '';
  const names =
    streamKey !== '' || segments.length < 2 ? { app: segments.join('/') + query, stream: streamKey } : splitLast(segments, query);
  if (segments.length === 0) return null;
  const shownPort = groups['port'] === undefined ? '' : `:${port}`;
  return {
    secure: scheme === 'rtmps',
    host: authority.replace(/^\[|\]$/g, ''),
    port,
    ...names,
    tcUrl: `${scheme}://${authority}${shownPort}/${names.app}`,
  };
}

function splitLast(segments: readonly string[], query: string): { app: string; stream: string } {
  return { app: segments.slice(0, -1).join('/'), stream: `${segments.at(-1) ?? ''}${query}` };
}
