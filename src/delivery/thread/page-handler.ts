/**
 * Pages for users who open a media port in a browser. They show no names of running streams; their requests are subject to the same
 * access control as any player's.
 */
import { frontPage, hostOnly, wantsPage } from '../../pages/front-page.ts';
import type { PageFile, PageFiles } from '../../pages/page-files.ts';
import { contentPolicy, PAGE_HEADERS } from '../../pages/page-headers.ts';
import { mediaFrontPage, type PageSettings, PLAYER_IMPORTS, PLAYER_PAGE, playerFiles } from '../../pages/player-page.ts';
import { acceptsGzip } from '../../wire/http/accept-encoding.ts';
import { splitTarget } from '../../wire/http/request-target.ts';
import type { AnswerSink, IncomingRequest } from '../http/answer-sink.ts';

const SLASH = 0x2f;
const STREAM = /^\/[^/]+\/([^/]+)(\/?)$/;
const LINES = `Server: Millrace\r\n${linesOf(PAGE_HEADERS)}Cache-Control: no-cache\r\n`;
/** Players get another answer at the same URL. */
const VARY = 'Vary: Accept, Accept-Encoding\r\n';
const UNREADABLE = frontPage('Millrace', ['A file of this page cannot be read. The log of the server may say why.'], []);

/** One for each thread. */
export class PageHandler {
  readonly #settings: PageSettings;
  readonly #onFault: (error: unknown) => void;
  #blobs: PageFiles | null = null;

  constructor(settings: PageSettings, onFault: (error: unknown) => void) {
    this.#settings = settings;
    this.#onFault = onFault;
  }

  /** Answers GET and HEAD for a page or for a file of a page. False: the request is for something else. */
  take(request: IncomingRequest, sink: AnswerSink): boolean {
    // Most requests are for files of streams.
    if (isDeep(request.target)) return false;
    const { path, query, authority } = splitTarget(request.target);
    const host = hostOnly(authority ?? request.header('host') ?? '');
    const isFile = path.length > 1 && path.indexOf('/', 1) < 0;
    if (isFile) return this.#settings.player && this.#sendFile(request, sink, path.slice(1), '');
    if (!wantsPage(request.header('accept'))) return false;
    if (path === '/') {
      const page = mediaFrontPage(this.#settings, host, sink.secure);
      sink.answer(200, headLines('text/html; charset=utf-8', contentPolicy(null, null)), [Buffer.from(page)], null);
      return true;
    }
    const [, stream, slash] = (this.#settings.player && STREAM.exec(path)) || [];
    if (stream === undefined) return false;
    if (slash === '') return this.#sendFile(request, sink, PLAYER_PAGE, host);
    // The page finds its files beside its own address. Relative, for proxies with other paths.
    sink.answer(301, `${LINES}${VARY}Location: ../${asciiUrl(query === '' ? stream : `${stream}?${query}`)}\r\n`, '', null);
    return true;
  }

  /** False for a name that is not on the list. */
  #sendFile(request: IncomingRequest, sink: AnswerSink, name: string, host: string): boolean {
    const reading = this.#take(name);
    if (reading === null) return false;
    let isGone = false;
    sink.wait({
      aborted: () => {
        isGone = true;
      },
    });
    const coded = acceptsGzip(request.header('accept-encoding'));
    const known = request.header('if-none-match');
    reading.then(
      (file) => {
        if (!isGone) answer(sink, file, { coded, known, policy: this.#policy(host) });
      },
      (error: unknown) => {
        this.#onFault(error);
        if (!isGone) sink.answer(500, headLines('text/html; charset=utf-8', contentPolicy(null, null)), [Buffer.from(UNREADABLE)], null);
      },
    );
    return true;
  }

  #take(name: string): Promise<PageFile> | null {
    try {
      this.#blobs ??= playerFiles(this.#settings);
      return this.#blobs.take(name);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #policy(host: string): string {
    const { webrtc, llhls } = this.#settings;
    const known = (port: number | undefined): readonly number[] => (port === undefined ? [] : [port]);
    const plainPorts = [...new Set([...known(webrtc?.port), ...known(llhls?.port)])];
    const tlsPorts = [...new Set([...known(webrtc?.tlsPort), ...known(llhls?.tlsPort)])];
    return contentPolicy(PLAYER_IMPORTS, { host, plainPorts, tlsPorts });
  }
}

/** More than `/APP/STREAM/`, or no path at all. */
function isDeep(target: string): boolean {
  if (target.charCodeAt(0) !== SLASH) return true;
  const first = target.indexOf('/', 1);
  const second = first < 0 ? -1 : target.indexOf('/', first + 1);
  if (second < 0) return false;
  const query = target.indexOf('?');
  return second + 1 !== (query < 0 ? target.length : query) && (query < 0 || second < query);
}

/** A part of a URL as a header can carry it: some clients send raw UTF-8. */
function asciiUrl(text: string): string {
  return text.replace(/[^!-~]+/g, encodeURIComponent);
}

function answer(
  sink: AnswerSink,
  { type, body, gzip, etag }: PageFile,
  { coded, known, policy }: { readonly coded: boolean; readonly known: string | undefined; readonly policy: string },
): void {
  const lines = `${headLines(type, policy)}ETag: ${etag}\r\n`;
  if (known === etag) sink.answer(304, lines, '', null);
  else if (coded && gzip !== null) sink.answer(200, `${lines}Content-Encoding: gzip\r\n`, [gzip], null);
  else sink.answer(200, lines, [body], null);
}

function headLines(type: string, policy: string): string {
  return `${LINES}${VARY}Content-Type: ${type}\r\nContent-Security-Policy: ${policy}\r\n`;
}

function linesOf(pairs: readonly string[]): string {
  let lines = '';
  for (let index = 0; index < pairs.length; index += 2) lines += `${pairs[index]}: ${pairs[index + 1]}\r\n`;
  return lines;
}
