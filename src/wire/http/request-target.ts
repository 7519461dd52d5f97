/** Splits the request target: RFC 9112 section 3.2 and the URL rules of the reference server. */
import { HttpFault } from './http-fault.ts';

/** All members are still percent-encoded. */
export interface RequestTarget {
  /** Raw path, beginning with `/`. */
  readonly path: string;
  /** Raw query without `?`; '' if there is none. Ends at a second `?`. */
  readonly query: string;
  /** Host (and port) of an absolute-form target, which takes precedence over the Host header; undefined otherwise. */
  readonly authority: string | undefined;
}

const HOST = /^(?:[A-Za-z0-9!$%&'()*+,;=._~-]*|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** Throws `HttpFault` unless a `Host` header or authority is exactly one host name with an optional port. */
export function checkHostName(host: string): void {
  if (!HOST.test(host)) throw new HttpFault(400, 'HTTP_HOST', 'the Host header is not one host name with an optional port');
}

/** Splits `target`. Throws `HttpFault` if it is neither origin-form nor absolute-form. */
export function splitTarget(target: string): RequestTarget {
  if (target.charCodeAt(0) === 0x2f) return splitPath(target, undefined);
  const absolute = /^https?:\/\/([^/?#@]+)([/?#].*)?$/i.exec(target);
  if (absolute === null) throw new HttpFault(400, 'HTTP_TARGET', 'the request target is neither a path nor an http URL');
  const rest = absolute[2] ?? '';
  return splitPath(rest.startsWith('/') ? rest : `/${rest}`, absolute[1]);
}

function splitPath(target: string, authority: string | undefined): RequestTarget {
  const hash = target.indexOf('#');
  const whole = hash < 0 ? target : target.slice(0, hash);
  const mark = whole.indexOf('?');
  if (mark < 0) return { path: whole, query: '', authority };
  const second = whole.indexOf('?', mark + 1);
  return { path: whole.slice(0, mark), query: second < 0 ? whole.slice(mark + 1) : whole.slice(mark + 1, second), authority };
}

/** Decodes percent escapes once. Throws `HttpFault` for a broken escape, bad UTF-8 or a NUL. */
export function decodePath(path: string): string {
  if (!path.includes('%')) return path;
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    throw new HttpFault(400, 'HTTP_ESCAPE', 'the path holds a percent escape that is broken or not UTF-8');
  }
  if (decoded.includes('\0')) throw new HttpFault(400, 'HTTP_ESCAPE', 'the path holds an escaped NUL');
  return decoded;
}

/**
 * Value of `key` in a raw query, percent-decoded ('' for a key without `=`); undefined if absent.
 * A value with broken escapes is returned unchanged. `+` stays `+`.
 */
export function queryValue(query: string, key: string): string | undefined {
  let from = 0;
  while (from < query.length) {
    let end = query.indexOf('&', from);
    if (end < 0) end = query.length;
    if (query.startsWith(key, from)) {
      const after = from + key.length;
      if (after === end) return '';
      if (query.charCodeAt(after) === 0x3d) return decodeValue(query.slice(after + 1, end));
    }
    from = end + 1;
  }
  return undefined;
}

function decodeValue(value: string): string {
  if (!value.includes('%')) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/**
 * The complete URL of a request, with `port` if the client sent none. Nothing is decoded; a second `?` and everything after it is removed.
 * Throws `HttpFault` for an invalid host name: a path or query in it would replace those of the request.
 */
export function completeUrl(
  scheme: string,
  { path, query, authority }: RequestTarget,
  { host, port }: { readonly host: string; readonly port: number },
): string {
  return `${urlBase(scheme, authority ?? host, port)}${path}${query === '' ? '' : `?${query}`}`;
}

/** The complete URL up to its path; `place`: authority or `Host` header. Throws as `completeUrl` does. */
export function urlBase(scheme: string, place: string, port: number): string {
  checkHostName(place);
  return hasPort(place) ? `${scheme}://${place}` : `${scheme}://${place}:${port}`;
}

/** For a name that `checkHostName` accepts: a colon outside brackets is followed only by digits. */
function hasPort(place: string): boolean {
  const colon = place.lastIndexOf(':');
  return colon >= 0 && colon < place.length - 1 && !place.endsWith(']');
}

/** Host name of a `Host` header or authority, without the port and the brackets of an IPv6 address. */
export function hostName(host: string): string {
  if (host.charCodeAt(0) === 0x5b) return host.slice(1, host.indexOf(']'));
  const colon = host.indexOf(':');
  return colon < 0 ? host : host.slice(0, colon);
}
