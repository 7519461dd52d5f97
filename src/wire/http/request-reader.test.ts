import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_HTTP_LIMITS } from '../../delivery/http-limits.ts';
import { readFraming } from './framing.ts';
import { HttpFault } from './http-fault.ts';
import { RequestReader } from './request-reader.ts';

const CHROME = [
  'GET /app/stream/chunklist_0_video_j4QYcHK6_llhls.m3u8?session=39_UEt7QoBb&_HLS_msn=11&_HLS_part=3 HTTP/1.1',
  'Host: live.example.com:3333',
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Accept: */*',
  'Origin: https://player.example.com',
  'Accept-Encoding: gzip, deflate',
  'Accept-Language: en-US,en;q=0.9',
  '\r\n',
].join('\r\n');

interface Seen {
  method: string;
  target: string;
  host: string | undefined;
  persistent: boolean;
  body: boolean;
}

/** Feeds `chunks` one after the other and returns the requests, then perhaps the status of a fault. */
function read(chunks: readonly Buffer[]): (Seen | number)[] {
  const reader = new RequestReader(DEFAULT_HTTP_LIMITS);
  const seen: (Seen | number)[] = [];
  try {
    for (const chunk of chunks) {
      reader.push(chunk);
      for (let head = reader.next(); head !== null; head = reader.next()) {
        const { persistent, body } = readFraming(head);
        seen.push({ method: head.method, target: head.target, host: head.header('host'), persistent, body });
      }
    }
  } catch (error) {
    if (!(error instanceof HttpFault)) throw error;
    seen.push(error.status);
  }
  return seen;
}

const one = (text: string): (Seen | number)[] => read([Buffer.from(text, 'latin1')]);

describe('request reader', () => {
  test('reads a request of a browser', () => {
    expect(one(CHROME)).toEqual([
      {
        method: 'GET',
        target: '/app/stream/chunklist_0_video_j4QYcHK6_llhls.m3u8?session=39_UEt7QoBb&_HLS_msn=11&_HLS_part=3',
        host: 'live.example.com:3333',
        persistent: true,
        body: false,
      },
    ]);
  });

  test('joins repeated headers and finds them in any case', () => {
    const reader = new RequestReader(DEFAULT_HTTP_LIMITS);
    reader.push(Buffer.from('GET / HTTP/1.1\r\nhOsT: a\r\nX-One:  1 \r\nx-ONE:\t2\t\r\nX-Empty:\r\n\r\n'));
    const head = reader.next();
    expect(head?.header('host')).toBe('a');
    expect(head?.header('x-one')).toBe('1, 2');
    expect(head?.count('x-one')).toBe(2);
    expect(head?.header('x-empty')).toBe('');
    expect(head?.header('x-other')).toBeUndefined();
  });

  test('a head cut at any byte is read the same, and an incomplete head is not a request', () => {
    const bytes = Buffer.from(CHROME + CHROME.replace('Connection: keep-alive', 'Connection: close'));
    const whole = read([bytes]);
    expect(whole).toHaveLength(2);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
    }
    for (let at = 0; at < CHROME.length; at += 1) expect(one(CHROME.slice(0, at))).toEqual([]);
  });

  test('pipelined requests cut into pieces of any size read the same', () => {
    const bytes = Buffer.from(CHROME.repeat(30));
    const whole = read([bytes]);
    expect(whole).toHaveLength(30);
    for (let size = 1; size < 700; size += 13) {
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      expect(read(chunks)).toEqual(whole);
    }
  });

  test('empty lines before a request are counted however they arrive', () => {
    const reader = new RequestReader(DEFAULT_HTTP_LIMITS);
    const drip = (): void => {
      reader.push(Buffer.from('\r\n'));
      expect(reader.next()).toBeNull();
    };
    drip();
    drip();
    expect(drip).toThrow(HttpFault);
  });

  test.each([
    ['empty lines before the request', '\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a raw UTF-8 target', Buffer.from('GET /app/방송/x HTTP/1.1\r\nHost: a\r\n\r\n').toString('latin1')],
    ['HTTP/1.0 without Host', 'GET / HTTP/1.0\r\n\r\n'],
    ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
    ['an IPv6 host', 'GET / HTTP/1.1\r\nHost: [::1]:3333\r\n\r\n'],
    ['a length of zero', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'],
    ['a later minor version', 'GET / HTTP/1.7\r\nHost: a\r\n\r\n'],
    ['an absolute target', 'GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('accepts %s', (_name, text) => {
    expect(one(text)).toEqual([expect.objectContaining({ method: 'GET', body: false })]);
  });

  test.each([
    ['close', '1.1', 'Connection: close', false],
    ['close in a list', '1.1', 'Connection: foo, Close', false],
    ['nothing in 1.0', '1.0', 'X: y', false],
    ['keep-alive in 1.0', '1.0', 'Connection: Keep-Alive', true],
    ['nothing in 1.1', '1.1', 'X: y', true],
    ['another option in 1.1', '1.1', 'Connection: upgrade', true],
  ])('persistence with %s', (_name, version, header, persistent) => {
    expect(one(`GET / HTTP/${version}\r\nHost: a\r\n${header}\r\n\r\n`)).toEqual([expect.objectContaining({ persistent })]);
  });

  test('random bytes never do anything but fault or wait', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        for (const item of read([Buffer.from(bytes)])) expect([400, 414, 417, 431, 501, 505]).toContain(item);
      }),
      { numRuns: 500 },
    );
  });

  test('a request with random bytes changed is read the same in one piece and in two', () => {
    const good = Buffer.from(CHROME);
    const place = fc.tuple(fc.nat(good.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(place, { minLength: 1, maxLength: 4 }), fc.nat(good.length), (changes, cut) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        const whole = read([bytes]);
        const split = read([bytes.subarray(0, cut), bytes.subarray(cut)]);
        // A broken end of the head is found at once in one case and waits for more bytes in the other.
        if (whole.length > 0 && split.length > 0) expect(split.map(kind)).toEqual(whole.map(kind));
      }),
      { numRuns: 1000, examples: [[[[0, 33]], 1]] },
    );
  });

  test.each([
    ['a method that does not begin with a letter', '!ET / HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a version that ends with a bare LF', 'GET / HTTP/1.1\nHost: a\r\n\r\n', 400],
    ['a later version before a bare LF', 'GET / HTTP/2.0\r\nHost: a\nX: y\r\n\r\n', 505],
    ['an endless method before a bare LF', `${'M'.repeat(40)} / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n`, 501],
  ])('refuses %s cut at any byte', (_name, text, status) => {
    const bytes = Buffer.from(text);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual([status]);
    }
  });
});

/** A request by what matters, a fault by its status. */
function kind(item: Seen | number): string {
  return typeof item === 'number' ? `fault ${item}` : `${item.method} ${item.target}`;
}
