/** The redirect URL of a control server: `scheme://host[:port]/app/stream[/file][?query]`. */

/** Longest that is taken. */
const MAX_LENGTH = 4096;
/** Brackets hold an IPv6 address. Nothing in it is decoded; a second `?` ends the query, as everywhere. */
const PATTERN =
  /^(?<scheme>[a-z][a-z\d+.-]*):\/\/(?<host>\[[\da-f:.]+\]|[^\s/?#@:[\]]+)(?::(?<port>\d{1,5}))?(?<path>\/[^\s/?#"\\]+\/[^\s/?#"\\]+(?:\/[^\s?#"\\]*)?)(?:\?(?<query>[^\s?#]*))?$/iu;
const MAX_PORT = 65_535;

/** Its parts as written. */
export interface NewUrl {
  /** Lower case. */
  readonly scheme: string;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  /** Host and port in the form of the URL. */
  readonly authority: string;
  /** Names application and stream at least. */
  readonly path: string;
  /** Without the question mark; '' when there is none. */
  readonly query: string;
}

/** Null for a text that names no application and stream on a host. */
export function readNewUrl(text: string): NewUrl | null {
  if (text.length > MAX_LENGTH || !text.isWellFormed()) return null;
  const groups = PATTERN.exec(text)?.groups;
  if (groups === undefined) return null;
  const { scheme = '', host = '', port, path = '', query = '' } = groups as Readonly<Record<string, string | undefined>>;
  if (port !== undefined && (Number(port) < 1 || Number(port) > MAX_PORT)) return null;
  const authority = port === undefined ? host : `${host}:${port}`;
  return { scheme: scheme.toLowerCase(), host: host.replace(/^\[|\]$/g, ''), authority, path, query };
}

/** `newUrl` with the port of `asked`, the URL that was asked for, where it names none and `asked` does. */
export function withPortOf(newUrl: string, asked: string): string {
  const port = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*:(\d+)(?=[/?#]|$)/i.exec(asked)?.[1];
  if (port === undefined) return newUrl;
  return newUrl.replace(/^([a-z][a-z\d+.-]*:\/\/(?:\[[^\]]*\]|[^/?#:]*))(?=[/?#]|$)/i, `$1:${port}`);
}
