/** The redirect URL of a control server: `scheme://host[:port]/app/stream[/file][?query]`. */

/** Maximum length, characters. */
const MAX_LENGTH = 4096;
/** Brackets enclose an IPv6 address. Nothing is decoded; a second `?` ends the query, as everywhere. */
const PATTERN =
  /^(?<scheme>[a-z][a-z\d+.-]*):\/\/(?<host>\[[\da-f:.]+\]|[^\s/?#@:[\]]+)(?::(?<port>\d{1,5}))?(?<path>\/[^\s/?#"\\]+\/[^\s/?#"\\]+(?:\/[^\s?#"\\]*)?)(?:\?(?<query>[^\s?#]*))?$/iu;
const MAX_PORT = 65_535;

/** The parts of the URL, as written. */
export interface NewUrl {
  /** Lower case. */
  readonly scheme: string;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  /** Host and port in the form of the URL. */
  readonly authority: string;
  /** At least application and stream. */
  readonly path: string;
  /** Without the question mark; '' for none. */
  readonly query: string;
}

/** Null for a text without application and stream on a host. */
export function readNewUrl(text: string): NewUrl | null {
  if (text.length > MAX_LENGTH || !text.isWellFormed()) return null;
  const groups = PATTERN.exec(text)?.groups;
  if (groups === undefined) return null;
  const { scheme = '', host = '', port, path = '', query = '' } = groups as Readonly<Record<string, string | undefined>>;
  if (port !== undefined && (Number(port) < 1 || Number(port) > MAX_PORT)) return null;
  const authority = port === undefined ? host : `${host}:${port}`;
  return { scheme: scheme.toLowerCase(), host: host.replace(/^\[|\]$/g, ''), authority, path, query };
}

/** `newUrl` with the port of `asked`, the requested URL, if only `asked` has a port. */
export function withPortOf(newUrl: string, asked: string): string {
  const port = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*:(\d+)(?=[/?#]|$)/i.exec(asked)?.[1];
  if (port === undefined) return newUrl;
  return newUrl.replace(/^([a-z][a-z\d+.-]*:\/\/(?:\[[^\]]*\]|[^/?#:]*))(?=[/?#]|$)/i, `$1:${port}`);
}
