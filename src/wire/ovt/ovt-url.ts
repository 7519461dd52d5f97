/** URLs in OVT requests: `ovt://host[:port]/app/stream`, or `ovts` for a connection with TLS. */

/** The port is the URL's, or the default. The application is without its virtual host, which the host name selects. */
export interface OvtUrl {
  /** The connection uses TLS. */
  readonly isSecure: boolean;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly app: string;
  readonly stream: string;
}

/** The default of the reference server. */
const OVT_DEFAULT_PORT = 9000;
/** Text after the stream names parts of it, or is meant for other programs. */
const PATTERN = /^ovt(s?):\/\/(?:[^@/?#]*@)?(\[[0-9a-f:.]+\]|[^:/?#@[\]\s]+)(?::(\d{1,5}))?\/([^/?#\s]+)\/([^/?#\s]+)(?:[/?#]\S*)?$/i;

/** Parses a URL; null for any other text. */
export function parseOvtUrl(text: string): OvtUrl | null {
  const match = PATTERN.exec(text);
  if (match === null) return null;
  const [, secure = '', host = '', port, app = '', stream = ''] = match;
  const number = port === undefined ? OVT_DEFAULT_PORT : Number(port);
  if (number < 1 || number > 65_535) return null;
  return { isSecure: secure !== '', host: host.replace(/^\[|\]$/g, ''), port: number, app: unescaped(app), stream: unescaped(stream) };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
