/** The web console on the API ports, and the page at their root. Its files need no token; the page's API requests do. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CONSOLE_IMPORTS, consoleFiles } from '../pages/console-page.ts';
import { frontPage, hostOnly, wantsPage } from '../pages/front-page.ts';
import type { PageFile, PageFiles } from '../pages/page-files.ts';
import { contentPolicy, PAGE_HEADERS } from '../pages/page-headers.ts';
import { acceptsGzip } from '../wire/http/accept-encoding.ts';
import { PRODUCT } from './envelope.ts';

/** Media ports to which pages of the console connect. */
export interface MediaPorts {
  readonly plain: readonly number[];
  readonly tls: readonly number[];
}

const SERVER = ['Server', PRODUCT];
const FOLDER = '/console/';
const PAGE = 'index.html';
const FRONT = frontPage(
  'Millrace',
  ['This is the management port of a Millrace media server.'],
  [
    ['console/', 'Console'],
    ['health', 'Health'],
  ],
);
/** The page's files change only with the server: browsers revalidate them each time, and mostly get no new copy. */
const CACHE = ['Cache-Control', 'no-cache'];

/** One for each API server. Owns no sockets. */
export class ConsoleSite {
  readonly #ports: MediaPorts;
  #files: PageFiles | null = null;

  constructor(ports: MediaPorts) {
    this.#ports = ports;
  }

  /** Whether a request is for a page; `path` is that of its target. A request for the root with a token comes from a program. */
  wants({ method, headers }: IncomingMessage, path: string): boolean {
    if (method !== 'GET' && method !== 'HEAD') return false;
    if (path === '/') return headers.authorization === undefined && wantsPage(headers.accept);
    return path === '/console' || path.startsWith(FOLDER);
  }

  /** Answers a request for which `wants` was true; rejects if a file of the console cannot be read. */
  async answer(request: IncomingMessage, response: ServerResponse, path: string, host: string): Promise<void> {
    if (path === '/') {
      send(request, response, 200, { type: 'text/html; charset=utf-8', policy: contentPolicy(null, null), body: Buffer.from(FRONT) });
      return;
    }
    if (path === '/console') {
      // A relative URL, because a proxy may serve the API below another path.
      response.writeHead(308, [...SERVER, ...PAGE_HEADERS, 'Location', 'console/', 'Content-Length', '0']);
      response.end();
      return;
    }
    const name = path.slice(FOLDER.length);
    this.#files ??= consoleFiles();
    const file = await this.#files.take(name === '' ? PAGE : name);
    if (file === null) {
      const body = Buffer.from('The console has no such file.\n');
      send(request, response, 404, { type: 'text/plain; charset=utf-8', policy: contentPolicy(null, null), body });
      return;
    }
    const { plain: plainPorts, tls: tlsPorts } = this.#ports;
    const policy = contentPolicy(CONSOLE_IMPORTS, { host: hostOnly(host), plainPorts, tlsPorts });
    sendFile(request, response, file, policy);
  }
}

interface Sendable {
  readonly type: string;
  readonly policy: string;
  readonly body: Buffer;
  /** Further header names and values, alternating. */
  readonly more?: readonly string[];
}

function sendFile(request: IncomingMessage, response: ServerResponse, { type, body, gzip, etag }: PageFile, policy: string): void {
  const more = ['ETag', etag, ...CACHE, 'Vary', 'Accept-Encoding'];
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, [...SERVER, ...more]);
    response.end();
  } else if (gzip !== null && acceptsGzip(request.headers['accept-encoding'])) {
    send(request, response, 200, { type, policy, body: gzip, more: [...more, 'Content-Encoding', 'gzip'] });
  } else send(request, response, 200, { type, policy, body, more });
}

function send({ method }: IncomingMessage, response: ServerResponse, status: number, { type, policy, body, more = [] }: Sendable): void {
  const length = ['Content-Length', String(body.length)];
  response.writeHead(status, [
    ...SERVER,
    ...PAGE_HEADERS,
    ...['Content-Security-Policy', policy],
    ...['Content-Type', type],
    ...length,
    ...more,
  ]);
  if (method === 'HEAD') response.end();
  else response.end(body);
}
