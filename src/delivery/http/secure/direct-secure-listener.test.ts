import { createHash, randomBytes } from 'node:crypto';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants, type OutgoingHttpHeaders } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { selfSigned } from '../../../../test/fakes/self-signed.ts';
import { loadAddon } from '../../../native/addon.ts';
import { systemClock } from '../../../util/clock.ts';
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from '../../http-limits.ts';
import type { AnswerSink, IncomingRequest } from '../answer-sink.ts';
import { DateLine } from '../status-line.ts';
import { DirectSecureListener } from './direct-secure-listener.ts';

const PAIR = selfSigned('localhost');
const HUGE = Array.from({ length: 40 }, () => randomBytes(1_000_000));
const HUGE_SUM = createHash('sha256');
for (const piece of HUGE) HUGE_SUM.update(piece);
const HUGE_DIGEST = HUGE_SUM.digest('hex');

/** Each request gets its own body. */
class TestHandler {
  readonly ends: boolean[] = [];
  readonly seen: { method: string; host: string | undefined; headers: Record<string, string | undefined> }[] = [];
  aborts = 0;
  held: AnswerSink[] = [];

  handle(request: IncomingRequest, sink: AnswerSink): void {
    const { target, method } = request;
    const [cookie, accept] = ['cookie', 'accept'].map((name) => request.header(name));
    this.seen.push({ method, host: request.header('host'), headers: { cookie, accept } });
    const listener = { sent: (complete: boolean) => void this.ends.push(complete) };
    if (target === '/huge') sink.answer(200, 'X-Kind: huge\r\n', HUGE, listener);
    else if (target === '/wait') {
      this.held.push(sink);
      sink.wait({ aborted: () => (this.aborts += 1) });
    } else if (target === '/take') {
      const taken = sink.takeOver();
      if (taken === null) sink.answer(501, '', 'no', null);
      else {
        taken.socket.write(`taken ${taken.bytes.length}\n`);
        taken.socket.pipe(taken.socket);
      }
    } else if (target === '/body' && request.body !== undefined) {
      sink.wait({ aborted: () => (this.aborts += 1) });
      void buffer(request.body).then((bytes) => sink.answer(200, '', `${bytes.length}`, null));
    } else if (target === '/throw') throw new Error('broken handler');
    else sink.answer(200, 'X-One: 1\r\nX-Two: a: b\r\n', [Buffer.from('<'), Buffer.from(target), Buffer.from('>')], listener);
  }
}

describe.skipIf(loadAddon().addon === null)('TLS past Node', () => {
  let handler: TestHandler;
  let listener: DirectSecureListener;
  let port: number;
  let reasons: string[];
  const sockets = new Set<TLSSocket>();
  const sessions = new Set<ClientHttp2Session>();

  async function listen(limits: Partial<HttpLimits> = {}): Promise<void> {
    await listener?.close(0);
    const made = DirectSecureListener.create({
      ...{ handler, http2: true, commonHeaders: 'Server: test\r\n', date: new DateLine(systemClock) },
      limits: { ...DEFAULT_HTTP_LIMITS, sweepInterval: 10, ...limits },
      onClosed: (_peer, reason) => reasons.push(reason),
    });
    if (made === null) throw new Error('the addon cannot do it');
    listener = made;
    listener.setCertificates([{ hostNames: ['localhost'], ...PAIR }]);
    port = await listener.listen({ host: '127.0.0.1', port: 0 });
  }

  beforeEach(async () => {
    handler = new TestHandler();
    reasons = [];
    await listen();
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    for (const session of sessions) session.destroy();
    sockets.clear();
    sessions.clear();
    await listener.close(0);
  });

  async function open(options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = tlsConnect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false, ...options });
    socket.on('error', () => {});
    sockets.add(socket);
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    return socket;
  }

  function session(): ClientHttp2Session {
    const made = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
    made.on('error', () => {});
    sessions.add(made);
    return made;
  }

  async function answerOf(stream: ClientHttp2Stream): Promise<{ headers: Record<string, unknown>; body: Buffer }> {
    let headers: Record<string, unknown> = {};
    stream.on('response', (got) => {
      headers = got;
    });
    const body = await buffer(stream);
    return { headers, body };
  }

  function get(path: string, headers: OutgoingHttpHeaders = {}) {
    return answerOf(session().request({ ':path': path, ...headers }));
  }

  /** Everything a socket says until it ends or `enough`. */
  function heard(socket: TLSSocket, enough: (text: string) => boolean = () => false): Promise<string> {
    return new Promise((resolve) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        if (enough(text)) resolve(text);
      });
      socket.once('close', () => resolve(text));
    });
  }

  test("answers pipelined requests of HTTP/1.1 in order, over every TLS version of Node's defaults", async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await open({ minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
      const all = heard(socket, (text) => text.includes('</c>'));
      socket.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n');
      expect((await all).match(/<\/.>/g)).toEqual(['</a>', '</b>', '</c>']);
      socket.destroy();
    }
    await expect(open({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' })).rejects.toThrow();
  });

  test.each(['HTTP/1.1', 'HTTP/2'])('gives a client of %s that reads slowly all of its bytes', async (version) => {
    const sum = createHash('sha256');
    let length = 0;
    if (version === 'HTTP/2') {
      const stream = session().request({ ':path': '/huge' });
      for await (const chunk of stream) {
        sum.update(chunk);
        length += chunk.length;
        if (length % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    } else {
      const socket = await open();
      socket.write('GET /huge HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      let head = '';
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        let body = chunk;
        if (!head.includes('\r\n\r\n')) {
          const at = chunk.indexOf('\r\n\r\n');
          head += chunk.toString('latin1', 0, at + 4);
          body = chunk.subarray(at + 4);
        }
        sum.update(body);
        length += body.length;
        if (length % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }
    expect([length, sum.digest('hex')]).toEqual([40_000_000, HUGE_DIGEST]);
    await expect.poll(() => handler.ends).toEqual([true]);
  });

  test('gives a whole connection of HTTP/1.1 away, both ways', async () => {
    const socket = await open();
    const payload = randomBytes(300_000).toString('hex');
    const all = heard(socket, (text) => text.length >= payload.length + 9);
    const request = 'GET /take HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\n\r\n';
    socket.write(request);
    await expect.poll(() => handler.seen.length).toBe(1);
    socket.write(payload);
    expect(await all).toBe(`taken ${request.length}\n${payload}`);
    socket.end();
    await expect.poll(() => socket.destroyed).toBe(true);
    await expect.poll(() => listener.connections).toBe(0);
  });

  test('HTTP/2: names, repeated headers, HEAD, and an exception of a handler', async () => {
    const { headers, body } = await get(Buffer.from('/päth').toString('latin1'), { accept: ['a', 'b'], cookie: 'x=1' });
    expect(headers).toMatchObject({ ':status': 200, 'x-one': '1', 'x-two': 'a: b', date: expect.stringMatching(/GMT$/) });
    expect(body.toString()).toBe('</päth>');
    expect(handler.seen[0]).toEqual({ method: 'GET', host: `localhost:${port}`, headers: { cookie: 'x=1', accept: 'a, b' } });
    const head = await get('/abc', { ':method': 'HEAD' });
    expect([head.headers['content-length'], head.body.length]).toEqual(['6', 0]);
    expect((await get('/throw')).headers[':status']).toBe(500);
    expect((await get('/x', { ':method': 'GET', 'content-length': '5' }).catch(() => null))?.headers[':status'] ?? 'reset').toBe('reset');
  });

  test('HTTP/2: a body larger than any window is read, an unread body is refused', async () => {
    const stream = session().request({ ':path': '/body', ':method': 'POST' });
    stream.end(randomBytes(400_000));
    expect((await answerOf(stream)).body.toString()).toBe('400000');
    const unread = session().request({ ':path': '/other', ':method': 'POST' });
    unread.write(randomBytes(400_000));
    const answer = answerOf(unread);
    expect((await answer).body.toString()).toBe('</other>');
    await expect.poll(() => unread.closed).toBe(true);
    expect(unread.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  });

  test('HTTP/2: concurrent requests wait and are answered, or dropped when they are reset or the client leaves', async () => {
    const client = session();
    const streams = Array.from({ length: 100 }, () => client.request({ ':path': '/wait' }));
    for (const stream of streams) stream.on('error', () => {});
    await expect.poll(() => handler.held.length).toBe(100);
    const answers = streams.slice(0, 50).map(answerOf);
    for (const [n, sink] of handler.held.slice(0, 50).entries()) sink.answer(200, '', `late ${n}`, null);
    expect((await Promise.all(answers)).map(({ body }) => body.toString())).toEqual(Array.from({ length: 50 }, (_, n) => `late ${n}`));
    for (const stream of streams.slice(50, 75)) stream.close(constants.NGHTTP2_CANCEL);
    await expect.poll(() => handler.aborts).toBe(25);
    client.destroy();
    await expect.poll(() => handler.aborts).toBe(50);
    expect(listener.connections).toBe(0);
    handler.held[99]?.answer(200, '', 'nobody hears', null);
  });

  test('HTTP/2: too many or too long headers fail only their request', async () => {
    await listen({ headerLines: 20, headerBytes: 4000 });
    const client = session();
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`x-${n}`, 'y']));
    const rejected = (headers: OutgoingHttpHeaders) => answerOf(client.request({ ':path': '/', ...headers })).then(String, () => 'reset');
    expect(await rejected(many)).toBe('reset');
    expect(await rejected({ long: 'y'.repeat(4000) })).toBe('reset');
    expect((await answerOf(client.request({ ':path': '/ok' }))).body.toString()).toBe('</ok>');
    expect(handler.seen.length).toBe(1);
  });

  test('HTTP/2: a flood of resets ends the connection', async () => {
    const resetting = session();
    for (let n = 0; n < 3000 && !resetting.destroyed; n += 1) {
      const stream = resetting.request({ ':path': '/wait' });
      stream.on('error', () => {});
      stream.close(constants.NGHTTP2_CANCEL);
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await expect.poll(() => resetting.destroyed).toBe(true);
    await expect.poll(() => listener.connections).toBe(0);
  });

  test('HTTP/2: a flood of pings whose answers are not read ends the connection', async () => {
    const socket = await open({ ALPNProtocols: ['h2'] });
    socket.pause();
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    // Windows as large as possible, and a request whose answer is not read, so that the answers to pings wait behind it.
    socket.write(Buffer.from('00000604000000000000047fffffff', 'hex'));
    socket.write(Buffer.from('0000040800000000007fff0000', 'hex'));
    socket.write(Buffer.from('00000c01050000000182 04052f68756765 87 410178'.replaceAll(' ', ''), 'hex'));
    await expect.poll(() => handler.seen.length).toBe(1);
    const pings = Buffer.concat(Array.from({ length: 200 }, () => Buffer.from('000008060000000000'.padEnd(34, '0'), 'hex')));
    socket.write(pings);
    await expect.poll(() => reasons).toContain('the client broke HTTP/2');
    await expect.poll(() => listener.connections).toBe(0);
  });

  test('HTTP/2: a client without requests, an idle client and one that does not read are disconnected', async () => {
    await listen({ headerTime: 100, idleTime: 150, sendTime: 200 });
    await open({ ALPNProtocols: ['h2'] });
    const idle = session();
    await answerOf(idle.request({ ':path': '/x' }));
    await expect.poll(() => reasons).toEqual(expect.arrayContaining(['nothing was asked', 'idle']));
    const stalled = session().request({ ':path': '/huge' });
    stalled.on('error', () => {});
    await expect.poll(() => handler.ends).toEqual([true, false]);
    const shaking = tlsConnect({ port, host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false });
    shaking.destroy();
    await expect.poll(() => listener.connections).toBe(0);
  });

  test('finishes its answers when it closes, and refuses new requests', async () => {
    const client = session();
    const waiting = answerOf(client.request({ ':path': '/wait' }));
    await expect.poll(() => handler.held.length).toBe(1);
    let gone = false;
    client.on('goaway', () => {
      gone = true;
    });
    const closed = listener.close(10_000);
    await expect.poll(() => gone).toBe(true);
    handler.held[0]?.answer(200, '', 'the last', null);
    expect((await waiting).body.toString()).toBe('the last');
    await closed;
    await expect.poll(() => listener.connections).toBe(0);
  });

  test('resumes sessions by tickets, and not with another certificate', async () => {
    const ticketOf = async (options: ConnectionOptions = {}): Promise<{ reused: boolean; ticket: Buffer }> => {
      const socket = await open({ maxVersion: 'TLSv1.2', ...options });
      const ticket = socket.getSession() ?? Buffer.alloc(0);
      const reused = socket.isSessionReused();
      socket.destroy();
      return { reused, ticket };
    };
    const { ticket } = await ticketOf();
    expect((await ticketOf({ session: ticket })).reused).toBe(true);
    listener.setCertificates([{ hostNames: ['localhost'], ...selfSigned('localhost') }]);
    expect((await ticketOf({ session: ticket })).reused).toBe(false);
  });

  test('refuses renegotiation', async () => {
    const socket = await open({ maxVersion: 'TLSv1.2' });
    const outcome = await new Promise<string>((resolve) => {
      socket.once('error', (error) => resolve(error.message));
      socket.once('close', () => resolve('closed'));
      if (!socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error === null ? 'renegotiated' : error.message)))
        resolve('not begun');
    });
    expect(outcome).not.toBe('renegotiated');
  });
});
