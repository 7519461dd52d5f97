import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { systemClock } from '../../util/clock.ts';
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from '../http-limits.ts';
import type { AnswerSink, IncomingRequest, TakenConnection } from './answer-sink.ts';
import { DirectSender } from './direct-sender.ts';
import { HttpListener } from './http-listener.ts';
import { DateLine } from './status-line.ts';

const GET = 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n';

/** Each of another letter. */
function piecesOf(count: number): Buffer[] {
  return Array.from({ length: count }, (_, n) => Buffer.alloc(1000, n));
}

/** Answers `/later…` when told, everything else at once with its own target. */
class TestHandler {
  readonly held: { target: string; sink: AnswerSink }[] = [];
  aborts = 0;
  sent: boolean[] = [];
  taken: TakenConnection | null = null;

  handle(request: IncomingRequest, sink: AnswerSink): void {
    const { target } = request;
    if (target.startsWith('/later')) {
      this.held.push({ target, sink });
      sink.wait({ aborted: () => (this.aborts += 1) });
    } else if (target === '/take') this.taken = sink.takeOver();
    else if (target === '/throw') throw new Error('broken handler');
    else if (target.startsWith('/big')) {
      const listener = { sent: (complete: boolean) => void this.sent.push(complete) };
      sink.answer(200, '', [Buffer.alloc(3_000_000, 'b'), Buffer.alloc(1_000_000, 'c')], listener);
    } else if (target === '/huge') {
      // More than the buffers of both ends take.
      sink.answer(200, '', [Buffer.alloc(40_000_000, 'h')], { sent: (complete: boolean) => void this.sent.push(complete) });
    } else if (target.startsWith('/pieces/')) {
      sink.answer(200, '', piecesOf(Number(target.slice(8))), null);
    } else if (target.startsWith('/text/')) sink.answer(200, '', 'é'.repeat(Number(target.slice(6))), null);
    else sink.answer(200, '', `<${request.method} ${target}>`, null);
  }
}

const direct = DirectSender.load();

// Without the addon there is one way.
const WAYS: [string, DirectSender | null][] = [['through Node.js', null]];
if (direct !== null) WAYS.push(['past Node.js', direct]);

describe.each(WAYS)('HTTP/1.x listener, answers sent %s', (_way, sender) => {
  let handler: TestHandler;
  let listener: HttpListener;
  let reasons: string[];
  const clients: RawClient[] = [];

  async function listen(limits: Partial<HttpLimits> = {}): Promise<number> {
    await listener?.close(0);
    listener = new HttpListener({
      handler,
      limits: { ...DEFAULT_HTTP_LIMITS, sweepInterval: 10, ...limits },
      date: new DateLine(systemClock),
      commonHeaders: 'Server: test\r\n',
      sender,
      onClosed: (_connection, reason) => reasons.push(reason),
    });
    return listener.listen({ host: '127.0.0.1', port: 0 });
  }

  async function open(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<RawClient> {
    const client = await RawClient.open(port, options);
    clients.push(client);
    return client;
  }

  beforeEach(() => {
    handler = new TestHandler();
    reasons = [];
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await listener.close(100);
    await expect.poll(() => listener.connections).toBe(0);
    expect(listener.counters.opened).toBe(listener.counters.closed);
  });

  test.each([
    ['garbage', '\x16\x03\x01\x02\x00', 400, 'does not begin with a method'],
    ['a lower-case method cut short', 'get / ', 400, 'does not begin with a method'],
    ['no target', 'GET HTTP/1.1\r\n\r\n', 400, 'target'],
    ['two blanks', 'GET  / HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'target'],
    ['a control character in the target', 'GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'target'],
    ['no version', 'GET /\r\n\r\n', 400, 'target'],
    ['blanks behind the version', 'GET / HTTP/1.1 \r\nHost: a\r\n\r\n', 400, 'version'],
    ['HTTP/2.0 in the clear', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 'HTTP/1.0 and HTTP/1.1'],
    ['HTTP/0.9 with version', 'GET / HTTP/0.9\r\n\r\n', 505, 'HTTP/1.0 and HTTP/1.1'],
    ['bare LF in the request line', 'GET / HTTP/1.1\nHost: a\n\n', 400, 'bare LF'],
    ['bare LF between headers', 'GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n', 400, 'bare LF'],
    ['bare CR in a value', 'GET / HTTP/1.1\r\nHost: a\r\nX: y\rz\r\n\r\n', 400, 'control character'],
    ['NUL in a value', 'GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n', 400, 'control character'],
    ['NUL in a name', 'GET / HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n', 400, 'header name'],
    ['a folded line', 'GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n', 400, 'folding'],
    ['a blank before the colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 400, 'before the colon'],
    ['no colon', 'GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n', 400, 'colon'],
    ['an empty name', 'GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n', 400, 'name is empty'],
    ['no Host', 'GET / HTTP/1.1\r\nX: y\r\n\r\n', 400, 'Host header is missing'],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'not one host name'],
    ['a bad Host', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 400, 'not one host name'],
    ['a signed length', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n', 400, 'Content-Length'],
    ['a hexadecimal length', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n', 400, 'Content-Length'],
    ['two lengths', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n', 400, 'Content-Length'],
    ['a length and chunks', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'in one request'],
    ['chunks in HTTP/1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'HTTP/1.0'],
    ['an unknown transfer encoding', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n', 501, 'transfer encoding'],
    ['a body with GET', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello', 400, 'body is not allowed'],
    ['chunks with GET', 'GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400, 'body is not allowed'],
    ['an unknown expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n', 417, '100-continue'],
    ['a long target', `GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414, 'longer than 8192'],
    ['a long target without end', `GET /${'x'.repeat(9000)}`, 414, 'longer than 8192'],
    ['a long method', `${'A'.repeat(40)} / HTTP/1.1\r\nHost: a\r\n\r\n`, 501, 'unknown method'],
    ['long headers', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(33_000)}\r\n\r\n`, 431, '32768 bytes'],
    ['long headers without end', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(33_000)}`, 431, '32768 bytes'],
    ['many headers', `GET / HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(100)}\r\n`, 431, '100 header lines'],
  ])('refuses %s in words and closes', async (_name, text, status, words) => {
    const client = await open(await listen());
    client.send(text);
    const answer = await client.end();
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain('\r\nConnection: close\r\n');
    expect(answer).toContain('\r\nServer: test\r\n');
    expect(answer.split('\r\n\r\n')[1]).toContain(words);
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
    expect(listener.counters.faults).toBe(1);
  });

  test('runs a timer only while there are connections', async () => {
    const started = vi.spyOn(globalThis, 'setInterval');
    const stopped = vi.spyOn(globalThis, 'clearInterval');
    try {
      // Of no other timer.
      const interval = 17;
      const port = await listen({ sweepInterval: interval });
      const timers = (): unknown[] =>
        started.mock.results.filter((_, n) => started.mock.calls[n]?.[1] === interval).map(({ value }) => value);
      const running = (): number => timers().filter((timer) => !stopped.mock.calls.some(([ended]) => ended === timer)).length;
      expect(running()).toBe(0);
      for (const turn of [1, 2]) {
        const pair = [await open(port), await open(port)];
        await expect.poll(() => listener.connections).toBe(2);
        expect([turn, timers().length, running()]).toEqual([turn, turn, 1]);
        for (const client of pair) client.destroy();
        await expect.poll(running).toBe(0);
      }
    } finally {
      started.mockRestore();
      stopped.mockRestore();
    }
  });

  test('keeps the connection, answers pipelined requests in order and counts them', async () => {
    const client = await open(await listen());
    client.send(`${GET}${GET.replace('/x', '/y')}HEAD /z HTTP/1.1\r\nHost: a\r\n\r\n`);
    const text = await client.until((got) => got.split('Content-Length').length === 4 && got.endsWith('\r\n\r\n'));
    expect(text.indexOf('<GET /x>')).toBeLessThan(text.indexOf('<GET /y>'));
    expect(text).not.toContain('<HEAD');
    expect(text).toContain('Content-Length: 9\r\n\r\n');
    client.send(GET);
    await client.until((got) => got.endsWith('<GET /x>'));
    expect(listener.counters).toMatchObject({ requests: 4, statuses: [0, 0, 4, 0, 0, 0] });
  });

  test('HTTP/1.0 closes unless asked to keep the connection', async () => {
    const port = await listen();
    const closing = await open(port);
    closing.send('GET /x HTTP/1.0\r\n\r\n');
    expect(await closing.end()).toContain('Connection: close\r\n');
    const keeping = await open(port);
    keeping.send('GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n');
    expect(await keeping.until((text) => text.endsWith('<GET /x>'))).toContain('Connection: keep-alive\r\n');
  });

  test('a request with a body ends its connection: later bytes are not read as a request', async () => {
    const client = await open(await listen());
    client.send(`POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${GET.length}\r\n\r\n${GET}`);
    const text = await client.end();
    expect(text).toContain('<POST /x>');
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test('a pipelined request is answered after the waiting request before it', async () => {
    const client = await open(await listen());
    client.send(`GET /later HTTP/1.1\r\nHost: a\r\n\r\n${GET}`);
    await expect.poll(() => handler.held.length).toBe(1);
    expect(client.text).toBe('');
    handler.held[0]!.sink.answer(200, '', 'late', null);
    const text = await client.until((got) => got.endsWith('<GET /x>'));
    expect(text.indexOf('late')).toBeLessThan(text.indexOf('<GET /x>'));
    expect(() => handler.held[0]!.sink.answer(200, '', 'again', null)).toThrow(TypeError);
  });

  test('requests after a waiting request are not read', async () => {
    const client = await open(await listen({ pipelinedBytes: 10_000 }));
    client.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => handler.held.length).toBe(1);
    const flood = Buffer.from(`${GET.repeat(99_999)}GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    client.socket.write(flood);
    handler.held[0]!.sink.answer(200, '', 'late', null);
    expect((await client.end(50_000)).split('<GET /x>').length).toBe(100_001);
  });

  test.each([
    ['resets', (client: RawClient) => client.socket.resetAndDestroy()],
    ['leaves', (client: RawClient) => client.destroy()],
    ['half-closes', (client: RawClient) => client.socket.end()],
  ])('a client that %s aborts its waiting request', async (_name, leave) => {
    const client = await open(await listen(), { allowHalfOpen: true });
    client.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => handler.held.length).toBe(1);
    leave(client);
    await expect.poll(() => handler.aborts).toBe(1);
    await expect.poll(() => listener.connections).toBe(0);
    expect(listener.counters.aborts).toBe(1);
  });

  test('a client that half-closes after its requests still gets all answers', async () => {
    const client = await open(await listen(), { allowHalfOpen: true });
    client.socket.end(`${GET}GET /big HTTP/1.1\r\nHost: a\r\n\r\n${GET}`);
    const text = await client.end();
    expect(text.split('<GET /x>')).toHaveLength(3);
    expect(text.split('c')).toHaveLength(1_000_001);
    expect(text.endsWith('<GET /x>')).toBe(true);
  });

  test('large answers arrive whole, and report that they were sent', async () => {
    const client = await open(await listen());
    client.send('GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const text = await client.end();
    const [, body] = text.split('\r\n\r\n');
    expect(body).toBe('b'.repeat(3_000_000) + 'c'.repeat(1_000_000));
    await expect.poll(() => handler.sent).toEqual([true]);
  });

  // The addon leaves more pieces and longer texts than it has room for to Node.js.
  test.each([
    ['63 pieces', '/pieces/63', Buffer.concat(piecesOf(63))],
    ['64 pieces', '/pieces/64', Buffer.concat(piecesOf(64))],
    ['a text of 60,000 letters', '/text/60000', Buffer.alloc(60_000, 0xe9)],
    ['a text of 70,000 letters', '/text/70000', Buffer.alloc(70_000, 0xe9)],
  ])('an answer of %s arrives whole', async (_name, target, body) => {
    const client = await open(await listen());
    client.send(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    const text = await client.end();
    expect(text.slice(text.indexOf('\r\n\r\n') + 4) === body.toString('latin1')).toBe(true);
  });

  test('a client that resets in the middle of an answer frees it', async () => {
    const client = await open(await listen());
    client.socket.pause();
    client.send('GET /huge HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => listener.counters.requests).toBe(1);
    client.socket.resetAndDestroy();
    await expect.poll(() => handler.sent).toEqual([false]);
  });

  test('a handler that throws is answered 500, and only that connection ends', async () => {
    const port = await listen();
    const client = await open(port);
    client.send('GET /throw HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(await client.end()).toMatch(/^HTTP\/1\.1 500 /);
    await expect.poll(() => reasons).toEqual(['the server failed on a request: Error: broken handler']);
    const other = await open(port);
    other.send(GET);
    await other.until((text) => text.endsWith('<GET /x>'));
  });

  test('an incomplete header is answered 408 in time', async () => {
    const client = await open(await listen({ headerTime: 1500, lingerTime: 50 }), { allowHalfOpen: true });
    client.send('GET / HTTP/1.1\r\nHo');
    expect(await client.end()).toMatch(/^HTTP\/1\.1 408 /);
    await expect.poll(() => listener.connections).toBe(0);
    // Once, although it does not go at once.
    expect(listener.counters).toMatchObject({ timeouts: 1, faults: 1, statuses: [0, 0, 0, 0, 1, 0] });
  });

  test('an idle connection is closed, a connection with a waiting request is not', async () => {
    const port = await listen({ idleTime: 100 });
    const waiting = await open(port);
    waiting.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
    const idle = await open(port);
    idle.send(GET);
    await idle.end();
    expect(waiting.ended).toBe(false);
    const answered = performance.now();
    handler.held[0]!.sink.answer(200, '', 'late', null);
    await waiting.until((text) => text.endsWith('late'));
    await waiting.end();
    // The time to be idle begins with the answer. Timers may be a little early.
    expect(performance.now() - answered).toBeGreaterThan(90);
  });

  test('empty lines without a request do not keep a connection open', async () => {
    const client = await open(await listen({ idleTime: 150 }));
    client.send(GET);
    const talk = setInterval(() => client.send('\r\n'), 20);
    await client.end();
    clearInterval(talk);
    // A third line is refused; two are no request either.
    await expect.poll(() => reasons).toHaveLength(1);
  });

  test('a connection without a request is closed after the same time as one with an incomplete request', async () => {
    const client = await open(await listen({ headerTime: 50 }));
    expect(await client.end()).toBe('');
    await expect.poll(() => reasons).toEqual(['nothing was asked']);
  });

  test('a client that does not read its answer is cut off', async () => {
    const client = await open(await listen({ sendTime: 100 }));
    client.socket.pause();
    client.send('GET /huge HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => handler.sent).toEqual([false]);
    expect(reasons).toEqual(['the client took an answer too slowly']);
  });

  test('a peer that does not close after a refusal is cut off', async () => {
    const client = await open(await listen({ lingerTime: 50 }), { allowHalfOpen: true });
    client.send('nonsense');
    expect(await client.end()).toMatch(/^HTTP\/1\.1 400 /);
    await expect.poll(() => listener.connections).toBe(0);
  });

  test('connections over the limit are refused', async () => {
    const port = await listen({ connections: 2 });
    for (let n = 0; n < 2; n += 1) {
      const client = await open(port);
      client.send(GET);
      await client.until((text) => text.endsWith('<GET /x>'));
    }
    const third = await open(port);
    await third.end();
    await expect.poll(() => listener.counters.refused).toBe(1);
  });

  test('a connection can be given away with every byte from the request on', async () => {
    const client = await open(await listen());
    client.send(GET);
    await client.until((text) => text.endsWith('<GET /x>'));
    client.send(`POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf`);
    await expect.poll(() => handler.taken?.bytes.toString()).toBe('POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf');
    expect(listener.connections).toBe(0);
    expect(reasons).toEqual(['handed over']);
    const socket = handler.taken!.socket;
    const more = new Promise((resolve) => socket.once('data', (chunk: Buffer) => resolve(chunk.toString())));
    socket.resume();
    client.send(' more');
    expect(await more).toBe(' more');
    socket.end('from the taker');
    expect((await client.end()).endsWith('from the taker')).toBe(true);
  });

  test('a close finishes the current answer and announces the close of the connection', async () => {
    const port = await listen();
    const waiting = await open(port);
    waiting.send('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => handler.held.length).toBe(1);
    const idle = await open(port);
    const closed = listener.close(5000);
    await idle.end();
    handler.held[0]!.sink.answer(200, '', 'late', null);
    expect(await waiting.end()).toContain('Connection: close\r\n');
    await closed;
    await listener.close(0);
  });
});
