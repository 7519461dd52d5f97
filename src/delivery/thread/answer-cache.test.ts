/** Answers that the addon gives: byte for byte those of JavaScript, whatever is asked and however it comes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { loadAddon } from '../../native/addon.ts';
import { systemClock } from '../../util/clock.ts';
import { acceptsGzip } from '../../wire/http/accept-encoding.ts';
import { readRange } from '../../wire/http/byte-range.ts';
import { decodePath, queryValue, splitTarget } from '../../wire/http/request-target.ts';
import type { AnswerSink, IncomingRequest } from '../http/answer-sink.ts';
import { HttpListener } from '../http/http-listener.ts';
import { DateLine } from '../http/status-line.ts';
import { newHttpCounters } from '../http-counters.ts';
import { DEFAULT_HTTP_LIMITS } from '../http-limits.ts';
import { AnswerCache, type DirectSession, NO_SLOT } from './answer-cache.ts';
import { TextCoder } from './text-coder.ts';

const { addon } = loadAddon();
const FEED = 7;
const TOKENS = ['0abc-d_Efg', 'another_1'];
const LINES = '#EXT-X-PART:URI="part_1_0_video_key_llhls.m4s';
const TEXTS = new Map(
  ['/app/s/a.m3u8', '/app/s/b.m3u8', '/app/s/ü.m3u8'].map((path, n) => [path, [`${path}\n${LINES}`, `"\n${n}`, '"\n']]),
);

/** Answers by nothing but the request, as a view does; with a cache it keeps what it may. */
class PureHandler {
  readonly #coder = new TextCoder();
  readonly #cache: AnswerCache | null;
  readonly #sessions = new Map<string, DirectSession & { bytes: number }>();

  constructor(cache: AnswerCache | null) {
    this.#cache = cache;
    for (const token of TOKENS) {
      const session = {
        ...{ token, expiresAt: Number.POSITIVE_INFINITY, slot: NO_SLOT, bytes: 0 },
        answered: (bytes: number): void => {
          session.bytes += bytes;
        },
      };
      this.#sessions.set(token, session);
      cache?.open(session, FEED);
    }
  }

  get billed(): number {
    return [...this.#sessions.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  handle(request: IncomingRequest, sink: AnswerSink): void {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      sink.answer(405, '', `${request.method}\n`, null);
      return;
    }
    const { path, query } = splitTarget(request.target);
    const pieces = TEXTS.get(decodePath(path));
    const token = queryValue(query, 'session') ?? '';
    if (pieces === undefined || !this.#sessions.has(token)) {
      sink.answer(pieces === undefined ? 404 : 401, '', '', null);
      return;
    }
    const gzip = acceptsGzip(request.header('accept-encoding'));
    const tail = `?session=${token}`;
    const body = gzip ? this.#coder.gzipTailored(pieces, tail) : this.#coder.textTailored(pieces, tail);
    const block = `Origin: ${request.header('origin')}\r\nQuery: ${query.slice(query.indexOf('&') + 1)}\r\nGzip: ${gzip}\r\n`;
    const range = readRange(request.header('range') ?? '', body.length);
    if (range !== null) {
      sink.answer(range === 'unsatisfiable' ? 416 : 206, block, range === 'unsatisfiable' ? '' : [body.subarray(range.offset)], null);
      return;
    }
    const variant = request.method === 'GET' ? (this.#cache?.variantOf(request, 'default', FEED) ?? null) : null;
    const layout = this.#coder.layout(pieces, tail, gzip ? 'gzip' : 'identity');
    if (variant !== null && layout !== null) {
      const head = `${block}Content-Length: ${body.length}\r\n\r\n`;
      const kept = { bytes: [body], tailLength: tail.length, ...layout };
      sink.keep({ target: request.target, variant, feed: FEED, head, billed: body.length, body: kept });
    }
    sink.answer(200, block, [body], null);
  }
}

/** The same numbers in each run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const PATHS = [
  '/app/s/a.m3u8',
  '/app/s/a.m3u8',
  '/app/s/a.m3u8',
  '/app/s/b.m3u8',
  '/app/s/%61.m3u8',
  '/app/s/ü.m3u8',
  '/app/s/c',
  '/',
  '*',
];
const QUERIES = [
  ...Array(8).fill(`?session=${TOKENS[0]}`),
  ...Array(4).fill(`?session=${TOKENS[1]}`),
  ...[`?session=${TOKENS[0]}&_HLS_msn=1`, `?session=${TOKENS[0]}&_HLS_msn=1&_HLS_part=0`, `?_HLS_msn=1&session=${TOKENS[0]}`],
  ...[`?session=${TOKENS[0]}?x`, `?session=${TOKENS[0]}#x`, '?session=', '?session=forged', '', '?', `?session=${TOKENS[0]}%20`],
  ...[`?session=${TOKENS[0]}&session=forged`, `?session=%30abc-d_Efg`, `?session=${TOKENS[0]}&`, `?session=${'x'.repeat(3000)}`],
];
const METHODS = [...Array(12).fill('GET'), 'HEAD', 'POST', 'get', 'GETS', ''];
const VERSIONS = [...Array(12).fill(' HTTP/1.1'), ' HTTP/1.0', ' HTTP/1.2', ' HTTP/2', '  HTTP/1.1', '\tHTTP/1.1'];
const HEADERS = [
  ...Array(6).fill(''),
  ...['Accept-Encoding: gzip\r\n', 'Accept-Encoding: gzip, br\r\n', 'accept-encoding: gzip;q=0\r\n', 'Origin: http://a.example\r\n'],
  ...['Range: bytes=3-\r\n', 'Range: bytes=9999-\r\n', 'Connection: keep-alive\r\n', 'Connection: close\r\n', 'Content-Length: 0\r\n'],
  ...[
    'Content-Length: 3\r\n',
    'Expect: 100-continue\r\n',
    'X: y\n',
    ' folded\r\n',
    'X : y\r\n',
    'Host: b\r\n',
    'X: \0\r\n',
    `X: ${'y'.repeat(5000)}\r\n`,
  ],
];

function requestOf(pick: (below: number) => number): string {
  const of = (list: readonly string[]): string => list[pick(list.length)] ?? '';
  // Most are what a player sends, so that there is something to answer from.
  if (pick(3) > 0) return `GET ${of(PATHS.slice(0, 4))}${of(QUERIES.slice(0, 14))} HTTP/1.1\r\nHost: a\r\n${of(HEADERS.slice(0, 8))}\r\n`;
  const whole = `${of(METHODS)} ${of(PATHS)}${of(QUERIES)}${of(VERSIONS)}\r\n${pick(9) === 0 ? '' : 'Host: a\r\n'}${of(HEADERS)}${of(HEADERS)}\r\n`;
  if (pick(6) > 0) return whole;
  const at = pick(whole.length);
  return `${whole.slice(0, at)}${String.fromCharCode(pick(256))}${whole.slice(at + pick(2))}`;
}

describe.skipIf(addon === null)('answers without JavaScript', () => {
  const counters = { plain: newHttpCounters(), kept: newHttpCounters() };
  const feeds: number[] = [];
  let cache: AnswerCache;
  let handler: PureHandler;
  const listeners: HttpListener[] = [];
  const ports: number[] = [];

  beforeAll(async () => {
    cache = new AnswerCache(addon!, counters.kept, (feed, bytes) => feeds.push(feed, bytes), 100);
    handler = new PureHandler(cache);
    const common = { limits: DEFAULT_HTTP_LIMITS, date: new DateLine(systemClock), commonHeaders: 'Server: test\r\n' };
    listeners.push(new HttpListener({ ...common, handler: new PureHandler(null), counters: counters.plain }));
    listeners.push(new HttpListener({ ...common, handler, counters: counters.kept, answers: cache }));
    for (const listener of listeners) ports.push(await listener.listen({ host: '127.0.0.1', port: 0 }));
  });

  afterAll(async () => {
    await Promise.all(listeners.map((listener) => listener.close(0)));
  });

  /** Requests with their pieces: a piece is sent when the one before was answered, or has arrived at least. */
  async function exchange(port: number, pieces: readonly string[]): Promise<string> {
    const client = await RawClient.open(port, { allowHalfOpen: true });
    for (const piece of pieces) {
      if (client.ended) break;
      const before = client.text.length;
      client.send(piece);
      if (piece.endsWith('\r\n\r\n')) await client.until((text) => client.ended || isWhole(text.slice(before)));
    }
    client.socket.end();
    const text = await client.end();
    client.destroy();
    return text.replace(/Date: [^\r]*\r\n/g, '');
  }

  test('match the answers of JavaScript for the same bytes', async () => {
    const pick = random(20_261_128);
    for (let round = 0; round < 120; round += 1) {
      const pieces: string[] = [];
      for (let n = pick(5); n >= 0; n -= 1) {
        const request = requestOf(pick);
        const cut = pick(8) === 0 ? pick(request.length) : 0;
        if (cut > 0) pieces.push(request.slice(0, cut), request.slice(cut));
        else pieces.push(pick(10) === 0 ? request + requestOf(pick) : request);
      }
      const [plain, kept] = await Promise.all(ports.map((port) => exchange(port, pieces)));
      expect(kept, JSON.stringify(pieces)).toBe(plain);
      if (round === 60) cache.changed(FEED);
    }
    const before = counters.kept.requests;
    cache.collect();
    const direct = counters.kept.requests - before;
    expect(direct).toBeGreaterThan(30);
    expect(counters.kept.requests).toBe(counters.plain.requests);
    expect(counters.kept.statuses).toEqual(counters.plain.statuses);
    expect(counters.kept.bytesSent).toBe(counters.plain.bytesSent);
    expect(feeds[0]).toBe(FEED);
    expect(feeds[1]).toBe(handler.billed);
  });
});

/** A head and as many bytes as it tells of; nothing more is sent for a HEAD request. */
function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = Number(/Content-Length: (\d+)/.exec(text)?.[1] ?? 0);
  return text.length >= end + 4 + length || /^HTTP\/1.1 (?:200|206)/.test(text) === false || text.length === end + 4;
}
