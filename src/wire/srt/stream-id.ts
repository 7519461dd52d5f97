/** Stream ids in OvenMediaEngine's three forms of an address, and in the standard `#!::` syntax. */
import { type AccessControl, parseAccessControl } from './access-control.ts';

/** The stream that a caller requests. */
export interface SrtTarget {
  /** Name of a virtual host, or one of its host names. */
  readonly host: string;
  readonly app: string;
  readonly stream: string;
  /** File name of a playlist; null without one. */
  readonly playlist: string | null;
  /** The complete URL, query included, as access control signs it. It can hold secrets: not for logs. */
  readonly url: string;
  /** `s` of the `#!::` syntax: the caller's credential, in addition to those in the query. Secret: not for logs. */
  readonly key?: string;
}

const SCHEME = 'srt://';

/**
 * `host/app/stream[/playlist][?query]`, the older `srt://host[:port]/app/stream[/playlist][?query]`, either of them as user name of the
 * `#!::` syntax, or its host and resource; percent-encoded once or not at all. Null for any other text.
 */
export function parseStreamId(streamId: string): SrtTarget | null {
  const decoded = percentDecoded(streamId);
  if (decoded === null) return null;
  const control = parseAccessControl(decoded);
  if (control === null) return parseAddress(decoded);
  const target = (control.user === null ? null : parseAddress(control.user)) ?? resourceOf(control);
  return target === null || control.session === undefined ? target : { ...target, key: control.session };
}

/** The mode that the caller asks for (`m`): `publish`, `request` or another text; null without one. */
export function modeOf(streamId: string): string | null {
  return parseAccessControl(percentDecoded(streamId) ?? '')?.mode ?? null;
}

/** A stream id for logs: decoded, without credentials, which are in the query and in `s`. */
export function withoutSecrets(streamId: string): string {
  const decoded = percentDecoded(streamId);
  if (decoded === null) return '…';
  return decoded.replaceAll(/(?<=^#!::|,)s=[^,]*/gi, 's=…').replace(/\?.*$/s, '?…');
}

/** A user name that is no address belongs to a person; then host and resource name the stream. */
function resourceOf({ host, resource }: AccessControl): SrtTarget | null {
  return host === null || resource === null ? null : parseAddress(`${host}/${resource.replace(/^\//, '')}`);
}

function parseAddress(text: string): SrtTarget | null {
  const old = text.startsWith(SCHEME);
  const [address = '', ...query] = (old ? text.slice(SCHEME.length) : text).split('?');
  const parts = address.split('/');
  const [authority = '', app = '', stream = '', playlist] = parts;
  if (parts.length < 3 || parts.length > 4 || app === '' || stream === '') return null;
  const host = old ? authority.replace(/:\d+$/, '').replace(/^\[|\]$/g, '') : authority;
  if (host === '') return null;
  const url = old ? text : `${SCHEME}${address}${query.length > 0 ? `?${query.join('?')}` : ''}`;
  return { host, app, stream, playlist: playlist === undefined || playlist === '' ? null : playlist, url };
}

/** A text with a lone `%` was not encoded at all. Null: the bytes are not UTF-8. */
function percentDecoded(text: string): string | null {
  if (!/%[0-9a-f]{2}/i.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'));
  } catch {
    return null;
  }
}
