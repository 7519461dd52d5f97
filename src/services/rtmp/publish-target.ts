/** From the user's input, in `connect` and `publish`, to host, application and stream name. */
import type { NewUrl } from '../../access/new-url.ts';
import { formatRtmpUrl, parseRtmpUrl, parseStreamKey, type RtmpUrl } from '../../wire/rtmp/rtmp-url.ts';

/** Where a publication goes. */
export interface PublishTarget {
  /** Host name the client asked for, without brackets; the virtual host is found by it. */
  readonly host: string;
  readonly app: string;
  readonly stream: string;
  /**
   * The complete URL with the port inserted and both queries joined, as access control signs it. It can
   * hold secrets: not for logs.
   */
  readonly url: string;
}

/** The local address of the socket, for parts that the client left out. */
export interface LocalEnd {
  readonly host: string;
  readonly port: number;
  readonly scheme: 'rtmp' | 'rtmps';
}

/** The URL of a `connect`: `tcUrl`, or the `app` field alone when a client sends no usable URL. Null when neither is there. */
export function connectUrl(fields: { tcUrl: unknown; app: unknown }, local: LocalEnd): RtmpUrl | null {
  const parsed = typeof fields.tcUrl === 'string' ? parseRtmpUrl(fields.tcUrl) : null;
  const url = parsed ?? (typeof fields.app === 'string' ? parseRtmpUrl(`${local.scheme}:///${fields.app}`) : null);
  if (url === null || url.app === '') return null;
  return { ...url, host: url.host === '' ? local.host : url.host, port: url.port === 0 ? local.port : url.port };
}

/** Where a control server sends a publisher instead of `target`. */
export function redirected({ host, path }: NewUrl, url: string): PublishTarget {
  const [, app = '', stream = ''] = path.split('/');
  return { host, app, stream, url };
}

/** A stream name in the URL wins over the one published under. Null when there is no name at all. */
export function publishTarget(url: RtmpUrl, streamKey: string): PublishTarget | null {
  const key = parseStreamKey(streamKey);
  const stream = url.stream === '' ? key.name : url.stream;
  if (stream === '') return null;
  const query = [url.query, key.query].filter((part) => part !== '').join('&');
  return { host: url.host.replace(/^\[|\]$/g, ''), app: url.app, stream, url: formatRtmpUrl({ ...url, stream, query }) };
}
