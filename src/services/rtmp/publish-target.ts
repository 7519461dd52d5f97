/** Host, application and stream name, from the user's input in `connect` and `publish`. */
import type { NewUrl } from '../../access/new-url.ts';
import { formatRtmpUrl, parseRtmpUrl, parseStreamKey, type RtmpUrl } from '../../wire/rtmp/rtmp-url.ts';

/** The target of a publication. */
export interface PublishTarget {
  /** Host name that the client requested, without brackets: it leads to the virtual host. */
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

/** The target that a control server names for a publisher. */
export function redirected({ host, path }: NewUrl, url: string): PublishTarget {
  const [, app = '', stream = ''] = path.split('/');
  return { host, app, stream, url };
}

/** The target for the URL of `connect` and the key of `publish`. A stream name in the URL precedes the key. Null without a name. */
export function publishTarget(url: RtmpUrl, streamKey: string): PublishTarget | null {
  const key = parseStreamKey(streamKey);
  const stream = url.stream === '' ? key.name : url.stream;
  if (stream === '') return null;
  const query = [url.query, key.query].filter((part) => part !== '').join('&');
  return { host: url.host.replace(/^\[|\]$/g, ''), app: url.app, stream, url: formatRtmpUrl({ ...url, stream, query }) };
}
