/** One request to a stream, in the form for its views. */

import type { CrossDomainPolicy } from '../../access/cross-domains.ts';
import { DRAINING } from '../../core/drain.ts';
import { UNKNOWN_STREAM } from '../../core/unknown-stream.ts';
import type { TrustedProxies } from '../../util/trusted-proxies.ts';
import { acceptsGzip } from '../../wire/http/accept-encoding.ts';
import { readRange } from '../../wire/http/byte-range.ts';
import { queryValue } from '../../wire/http/request-target.ts';
import type { Span } from '../feed/messages.ts';
import { sliceSpans, spansLength } from '../feed/spans.ts';
import type { ByteSink, DeliveryExchange, ViewerAdmission } from '../feed/view.ts';
import type { Followers, KeptBody } from '../http/answer-link.ts';
import { type AbortListener, type AnswerSink, bodyLength, type IncomingRequest, type SentListener } from '../http/answer-sink.ts';
import type { MemoryFile } from '../http/direct-sender.ts';
import type { HttpCounters } from '../http-counters.ts';
import type { AnswerCache } from './answer-cache.ts';
import type { BlockTable } from './block-table.ts';
import type { HotFiles } from './hot-files.ts';
import type { FileLease, SharedFiles } from './shared-files.ts';
import type { TextCoder } from './text-coder.ts';

/** Headers of every answer, complete lines. */
export const COMMON_HEADERS = 'Server: Millrace\r\nVary: Origin\r\n';
/** For texts: a shared cache must not send gzip to clients that do not accept it. */
const VARY_CODING = 'Vary: Accept-Encoding\r\n';
const GZIP = 'Content-Encoding: gzip\r\n';
const IDENTITY = 'Content-Encoding: identity\r\n';
const TEXT_TYPE = 'Content-Type: text/plain\r\n';
const UNTAILORED = { tailLength: 0, places: new Uint32Array(), sums: new Uint32Array() };

/** Why there is no answer for a viewer. */
export const RefusalText = {
  NO_HOST: 'no virtual host serves this host name\n',
  NO_PATH: 'there is nothing at this path: streams are at /APP/STREAM/FILE\n',
  NO_STREAM: 'there is no such stream: its application does not exist, or nothing is published under this name\n',
  NO_MAP: `${UNKNOWN_STREAM}\n`,
  NO_FILE: 'the stream has no such file\n',
  NO_SESSION: 'a viewer session is needed: request the playlist of the stream first\n',
  FILE_GONE: 'this part of the stream has expired\n',
  BUSY: 'the server is overloaded: try again\n',
  DRAINING: `${DRAINING}\n`,
  STOPPING: 'the server is stopping\n',
} as const;

/** The feed whose view gets the request: its rules, and its byte counter. */
export interface ServedFeed {
  readonly feed: number;
  readonly policy: CrossDomainPolicy;
  /** Bytes of answers since the last report. */
  bytesSent: number;
}

/** Dependencies shared by all deliveries of a thread. */
export interface DeliveryServices {
  readonly blocks: BlockTable;
  readonly coder: TextCoder;
  readonly files: SharedFiles;
  readonly hot: HotFiles;
  /** Null: nothing is kept. */
  readonly answers: AnswerCache | null;
  /** Proxies whose headers about clients are trusted. */
  readonly proxies: TrustedProxies;
  readonly counters: Pick<HttpCounters, 'overloads'>;
  /** Deliveries passed to a view that are neither answered nor aborted. */
  readonly waiting: Set<Delivery>;
}

/**
 * Created by the router and answered once, by a view or by `withdraw`. Borrowed blocks and files are returned when the answer is sent or
 * the client has left.
 */
export class Delivery implements DeliveryExchange, AbortListener, SentListener {
  readonly method: 'GET' | 'HEAD';
  readonly file: string;
  readonly query: string;
  readonly admission: ViewerAdmission | null;
  readonly #vhost: string;
  readonly #services: DeliveryServices;
  readonly #request: IncomingRequest;
  readonly #sink: AnswerSink;
  #feed: ServedFeed;
  #viewer: ByteSink | null = null;
  #done = false;
  #onAbort: (() => void) | null = null;
  #spans: readonly Span[] | null = null;
  #lease: FileLease | null = null;
  #memoryFile: MemoryFile | null = null;
  #followers: Followers | null = null;

  constructor(
    services: DeliveryServices,
    request: IncomingRequest,
    sink: AnswerSink,
    target: { vhost: string; file: string; query: string; feed: ServedFeed; admission: ViewerAdmission | null },
  ) {
    this.#services = services;
    this.#request = request;
    this.#sink = sink;
    this.#feed = target.feed;
    this.method = request.method === 'HEAD' ? 'HEAD' : 'GET';
    this.#vhost = target.vhost;
    this.file = target.file;
    this.query = target.query;
    this.admission = target.admission;
  }

  get done(): boolean {
    return this.#done;
  }

  get heldFor(): number {
    return this.#sink.heldFor;
  }

  get remoteAddress(): string {
    return this.#services.proxies.clientOf(this.#sink.remoteAddress, this.#request.header('x-forwarded-for'));
  }

  /** The feed whose view gets the request next. */
  offerTo(feed: ServedFeed): void {
    this.#feed = feed;
  }

  billTo(viewer: ByteSink): void {
    this.#viewer = viewer;
  }

  queryValue(key: string): string | undefined {
    return this.query === '' ? undefined : queryValue(this.query, key);
  }

  header(name: string): string | undefined {
    return this.#request.header(name);
  }

  onAbort(callback: () => void): void {
    if (!this.#done) this.#onAbort = callback;
  }

  respond(status: number, headers: readonly string[], body: readonly Uint8Array[]): void {
    if (this.#done) return;
    this.#answer(status, this.#block(headers), body, bodyLength(body));
  }

  respondTailored(status: number, headers: readonly string[], pieces: readonly string[], tail: string): void {
    if (this.#done) return;
    const gzip = acceptsGzip(this.#request.header('accept-encoding'));
    const { coder } = this.#services;
    const body = gzip ? coder.gzipTailored(pieces, tail, this.#isAwaited) : coder.textTailored(pieces, tail);
    const block = `${this.#block(headers)}${VARY_CODING}${gzip ? GZIP : IDENTITY}`;
    if (this.#isKept(status, pieces) && tail === `?session=${this.#viewer?.token}`) {
      const layout = coder.layout(pieces, tail, gzip ? 'gzip' : 'identity');
      if (layout !== null) this.#keep(block, body.length, { bytes: [body], tailLength: tail.length, ...layout });
    }
    this.#answer(status, block, [body], body.length);
  }

  respondSpans(status: number, headers: readonly string[], spans: readonly Span[]): void {
    if (this.#done) return;
    const size = spansLength(spans);
    this.#respondRanged(status, headers, size, (offset, length) => {
      const wanted = length === size ? spans : sliceSpans(spans, offset, length);
      const body = this.#services.blocks.acquire(wanted);
      if (body === null) return null;
      this.#spans = wanted;
      if (this.method !== 'GET' || wanted !== spans || !this.#sink.takesMemoryFiles) return body;
      this.#memoryFile = this.#services.hot.memoryFile(spans, body, size, this.#isAwaited);
      if (this.#isKept(status, spans)) this.#keep(this.#block(headers), size, { bytes: this.#memoryFile ?? body, ...UNTAILORED });
      return body;
    });
  }

  respondFile(status: number, headers: readonly string[], path: string): void {
    if (this.#done) return;
    this.#services.files
      .borrow(path)
      .then(
        (lease) => this.#respondLease(status, headers, lease),
        () => this.refuse(404, RefusalText.FILE_GONE),
      )
      .catch((error: unknown) => this.#sink.fail(error));
  }

  /** Answers with a text that repeats nothing of the request; `lines` are complete and end with CRLF each. */
  refuse(status: number, words: string, lines = ''): void {
    if (this.#done) return;
    this.#answer(status, `${COMMON_HEADERS}${this.#crossDomains()}${lines}${TEXT_TYPE}`, words, words.length);
  }

  /** The view answers later. */
  hold(): void {
    this.#services.waiting.add(this);
    this.#sink.wait(this);
    if (!this.#isForAll()) return;
    const { feed } = this.#feed;
    const variant = this.#services.answers?.variantOf(this.#request, this.#vhost, feed) ?? null;
    if (variant !== null) this.#followers = this.#sink.lead({ target: this.#request.target, variant, feed });
  }

  aborted(): void {
    if (this.#done) return;
    this.#done = true;
    this.#services.waiting.delete(this);
    this.admission?.leave();
    const callback = this.#onAbort;
    this.#onAbort = null;
    callback?.();
    this.#endLead();
  }

  /** Takes the request back from its view and answers with a text. */
  withdraw(status: number, words: string, lines = ''): void {
    if (this.#done) return;
    const callback = this.#onAbort;
    this.#onAbort = null;
    this.refuse(status, words, lines);
    callback?.();
  }

  sent(): void {
    const spans = this.#spans;
    this.#spans = null;
    if (spans !== null) this.#services.blocks.release(spans);
    this.#lease?.release();
    this.#lease = null;
  }

  #respondLease(status: number, headers: readonly string[], lease: FileLease | null): void {
    if (lease === null) {
      this.#services.counters.overloads += 1;
      this.withdraw(503, RefusalText.BUSY, 'Retry-After: 1\r\n');
      return;
    }
    if (this.#done) {
      lease.release();
      return;
    }
    const { bytes } = lease;
    this.#lease = lease;
    this.#respondRanged(status, headers, bytes.length, (offset, length) => [bytes.subarray(offset, offset + length)]);
  }

  /** Answers with all of a body, or the requested range. `take` returns the bytes; null: they are gone. */
  #respondRanged(
    status: number,
    headers: readonly string[],
    size: number,
    take: (offset: number, length: number) => readonly Uint8Array[] | null,
  ): void {
    const range = status === 200 && this.method === 'GET' ? this.#range(size) : null;
    if (range === 'unsatisfiable') {
      this.#answer(416, `${this.#block(headers)}Content-Range: bytes */${size}\r\n`, '', 0);
      return;
    }
    const body = range === null ? take(0, size) : take(range.offset, range.length);
    if (body === null) {
      // The view lists released bytes: no answer is better than bytes of another file.
      this.#answer(503, this.#block([]), '', 0);
    } else if (range === null) this.#answer(status, this.#block(headers), body, size);
    else {
      const line = `Content-Range: bytes ${range.offset}-${range.offset + range.length - 1}/${size}\r\n`;
      this.#answer(206, `${this.#block(headers)}${line}`, body, range.length);
    }
  }

  #answer(status: number, block: string, body: string | readonly Uint8Array[], length: number): void {
    this.#done = true;
    this.#onAbort = null;
    this.#services.waiting.delete(this);
    this.admission?.leave();
    const bytes = block.length + (this.method === 'HEAD' ? 0 : length);
    this.#feed.bytesSent += bytes;
    this.#viewer?.countBytes(bytes);
    this.#sink.answer(status, block, body, this.#spans === null && this.#lease === null ? null : this, this.#memoryFile);
    this.#endLead();
  }

  #endLead(): void {
    const followers = this.#followers;
    this.#followers = null;
    followers?.end();
  }

  /** Others wait for the same answer. */
  get #isAwaited(): boolean {
    return this.#followers !== null && this.#followers.count > 0;
  }

  /** The answer is the same for every session, and was requested before. */
  #isKept(status: number, identity: object): boolean {
    if (status !== 200 || !this.#isForAll()) return false;
    return this.#services.answers?.isWanted(identity) === true || this.#isAwaited;
  }

  /** All sessions get the same answer to this request. */
  #isForAll(): boolean {
    if (this.#services.answers === null || this.method !== 'GET' || this.admission !== null) return false;
    // An answer that creates a session is specific to its viewer.
    const token = this.#viewer?.token;
    return token !== undefined && token === this.queryValue('session');
  }

  #keep(block: string, length: number, body: KeptBody): void {
    const { feed } = this.#feed;
    const variant = this.#services.answers?.variantOf(this.#request, this.#vhost, feed) ?? null;
    if (variant === null) return;
    const head = `${block}Content-Length: ${length}\r\n\r\n`;
    this.#sink.keep({ target: this.#request.target, variant, feed, head, billed: block.length + length, body });
  }

  #block(headers: readonly string[]): string {
    let block = COMMON_HEADERS + this.#crossDomains();
    for (let n = 0; n < headers.length; n += 1) block += `${headers[n]}\r\n`;
    return block;
  }

  #crossDomains(): string {
    return crossDomainBlock(this.#feed.policy, this.#request);
  }

  #range(size: number): ReturnType<typeof readRange> {
    const header = this.#request.header('range');
    // There are no validators, so a conditional range is never fresh.
    if (header === undefined || this.#request.header('if-range') !== undefined) return null;
    return readRange(header, size);
  }
}

/** The CORS lines for a request. */
export function crossDomainBlock(policy: CrossDomainPolicy, request: IncomingRequest): string {
  return policy.headers(request.header('origin'), request.header('access-control-request-headers')).block;
}
