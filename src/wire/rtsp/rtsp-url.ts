/** `rtsp://[user:password@]host[:port]/path[?query]`, RFC 2326 §3.2 with the credentials of RFC 3986. */

import { hasHiddenCharacter } from '../../util/hidden-characters.ts';

/** Percent-decoded; the password is empty if the URL has none. */
export interface RtspCredentials {
  readonly user: string;
  readonly password: string;
}

/** The port is that of the URL, or the default of RTSP. */
export interface RtspUrl {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** The URI for requests, without credentials. */
  readonly uri: string;
  /** Null if the URL has none. */
  readonly credentials: RtspCredentials | null;
}

const DEFAULT_PORT = 554;
const PATTERN = /^rtspc?:\/\/(?:([^@/]*)@)?(\[[0-9a-f:.]+\]|[^:/?#@[\]\s]+)(?::(\d{1,5}))?([/?][^\s#]*)?$/i;

/** Parses a URL; null for any other text. A password may contain `:`, and all other characters percent-encoded. */
export function parseRtspUrl(text: string): RtspUrl | null {
  const match = PATTERN.exec(text);
  if (match === null) return null;
  const [, login, host = '', port, path = '/'] = match;
  const number = port === undefined ? DEFAULT_PORT : Number(port);
  if (number < 1 || number > 65_535) return null;
  const credentials = login === undefined ? null : credentialsOf(login);
  // Credentials and URI are written into header lines.
  if (hasHiddenCharacter(`${credentials?.user ?? ''}${credentials?.password ?? ''}${text}`)) return null;
  const authority = port === undefined ? host : `${host}:${port}`;
  return {
    host: host.replace(/^\[|\]$/g, ''),
    port: number,
    uri: `rtsp://${authority}${path.startsWith('?') ? `/${path}` : path}`,
    credentials,
  };
}

function credentialsOf(login: string): RtspCredentials {
  const colon = login.indexOf(':');
  const user = colon < 0 ? login : login.slice(0, colon);
  return { user: unescaped(user), password: colon < 0 ? '' : unescaped(login.slice(colon + 1)) };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The URI of a track: `control` of its description may be absolute, relative to `base`, or `*` for the whole session. White space is
 * escaped.
 */
export function controlUri(base: string, control: string): string {
  return joined(base, control).replace(/\s/g, encodeURIComponent);
}

function joined(base: string, control: string): string {
  if (control === '' || control === '*') return base;
  if (/^rtsps?:\/\//i.test(control)) return control;
  return base.endsWith('/') || control.startsWith('/') || control.startsWith('?') ? `${base}${control}` : `${base}/${control}`;
}
