/** When a delivery thread answers without JavaScript, and when not any more. */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon } from '../../native/addon.ts';
import { systemClock } from '../../util/clock.ts';
import { OPEN_ADMISSION } from '../admission.ts';
import type { Span } from '../feed/messages.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../feed/view.ts';
import { DEFAULT_DELIVERY_LIMITS } from '../pool/delivery-limits.ts';
import { sessionId } from '../session-token.ts';
import type { FromThread, ToThread } from '../thread-protocol.ts';
import { DeliveryThread } from './delivery-thread.ts';

const WAIT = { deadlineMs: 10_000, everyMs: 5 };
/** More than the buffers of both ends take, and as much as an image may have. */
const LARGE = 8 * 1024 * 1024;
const HOSTS: ToThread = { type: 'hosts', hosts: [{ name: 'default', hostNames: ['*'] }] };
/** Of the playlist that gives a session. */
const BEGINNING = ['to ', ''];
const FILES: Readonly<Record<string, readonly Span[]>> = {
  small: [{ block: 1, offset: 5, length: 10_000 }],
  large: [{ block: 1, offset: 0, length: LARGE }],
};

/** A text with the viewer's session, and files. An update is another text. */
class TestView implements DeliveryView {
  /** Files that were asked for here. */
  readonly asked: string[] = [];
  readonly #context: ViewContext;
  #pieces: readonly string[] = ['first ', '\n', '.'];

  constructor(context: ViewContext) {
    this.#context = context;
  }

  update(payload: unknown): void {
    this.#pieces = [`${String(payload)} `, '\n', '.'];
  }

  handle(exchange: DeliveryExchange): boolean {
    if (exchange.file === 'list.m3u8')
      exchange.respondTailored(200, [], BEGINNING, `?session=${this.#context.createSession(exchange)?.token}`);
    else {
      this.asked.push(exchange.file);
      const session = this.#context.session(exchange);
      const spans = FILES[exchange.file];
      if (session === null) exchange.respond(401, [], []);
      else if (spans !== undefined) exchange.respondSpans(200, [], spans);
      else exchange.respondTailored(200, [], this.#pieces, `?session=${session.token}`);
    }
    return true;
  }

  close(): void {}
}

/** One answer after the other; large ones are not looked through with each piece. */
class Client {
  readonly socket: Socket;
  /** All that came. */
  received = 0;
  readonly #chunks: Buffer[] = [];

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.received += chunk.length;
    });
    this.socket.on('error', () => {});
  }

  ask(file: string, token: string): void {
    this.socket.write(`GET /app/s/${file}?session=${token} HTTP/1.1\r\nHost: a\r\n\r\n`);
  }

  /** The next answer: its head and body. */
  async answer(): Promise<{ readonly head: string; readonly body: Buffer }> {
    const head = await until('a head', () => this.#head(), WAIT);
    const length = head.length + Number(/Content-Length: (\d+)/.exec(head)?.[1]);
    await until('the body', () => this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0) >= length, WAIT);
    const bytes = Buffer.concat(this.#chunks.splice(0));
    if (bytes.length > length) this.#chunks.push(bytes.subarray(length));
    return { head, body: bytes.subarray(head.length, length) };
  }

  #head(): string | null {
    const text = Buffer.concat(this.#chunks.slice(0, 2)).toString('latin1', 0, 2000);
    const end = text.indexOf('\r\n\r\n');
    return end < 0 ? null : text.slice(0, end + 4);
  }
}

const opened: DeliveryThread[] = [];
const clients: Client[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.socket.destroy();
  for (const thread of opened.splice(0)) thread.receive([{ type: 'stop' }]);
});

describe.skipIf(loadAddon().addon === null)('answers that are kept', () => {
  /** A thread with a viewer on one connection. */
  async function start(sendTime = DEFAULT_DELIVERY_LIMITS.http.sendTime) {
    const posted: FromThread[] = [];
    const views: TestView[] = [];
    const limits = { ...DEFAULT_DELIVERY_LIMITS, reportInterval: 50, stopGrace: 50, http: { ...DEFAULT_DELIVERY_LIMITS.http, sendTime } };
    const admission = { ...OPEN_ADMISSION, threads: 1, slot: 1 };
    const thread = new DeliveryThread({
      settings: {
        ...{ incarnation: 1, secret: new Uint8Array(32), limits, admission },
        http2: false,
        foreign: null,
        pages: null,
        logConnections: true,
      },
      views: {
        llhls: (_settings, context) => {
          views.push(new TestView(context));
          return views.at(-1) as TestView;
        },
      },
      ...{ clock: systemClock, post: (message) => posted.push(message) },
    });
    opened.push(thread);
    const memory = new SharedArrayBuffer(LARGE);
    Buffer.from(memory).fill(Buffer.from(Array.from({ length: 251 }, (_, n) => n)));
    const address = { vhost: 'default', app: 'app', stream: 's' };
    thread.receive([
      HOSTS,
      { type: 'block-add', block: 1, buffer: memory },
      { type: 'feed-open', feed: 3, kind: 'llhls', address, crossDomains: null, settings: null },
      { type: 'listen', listener: 1, request: { host: '127.0.0.1', port: 0, tls: false }, first: true },
    ]);
    const told = <Type extends FromThread['type']>(type: Type) =>
      posted.filter((message): message is Extract<FromThread, { type: Type }> => message.type === type);
    await until('the port', () => told('listening').length > 0, WAIT);
    const port = told('listening')[0]?.port ?? 0;
    const first = new Client(port);
    first.ask('list.m3u8', '');
    const token = String((await first.answer()).body).slice('to ?session='.length);
    first.socket.destroy();
    const open = (): Client => {
      const client = new Client(port);
      clients.push(client);
      return client;
    };
    return { thread, told, token, sent: first.received, open, asked: () => views.flatMap((view) => view.asked) };
  }

  /** Status and body. */
  async function get(client: Client, file: string, token: string): Promise<string> {
    client.ask(file, token);
    const { head, body } = await client.answer();
    return `${head.slice(9, 12)} ${body.toString('latin1')}`;
  }

  /** Asks until JavaScript is not asked any more. */
  async function warm(started: Awaited<ReturnType<typeof start>>, client: Client, file: string): Promise<string> {
    for (;;) {
      const before = started.asked().length;
      const answer = await get(client, file, started.token);
      if (started.asked().length === before) return answer;
      if (before > 10) throw new Error('it is never answered without JavaScript');
    }
  }

  test('are given until their feed changes, and counted', async () => {
    const started = await start();
    const { thread, told, token } = started;
    const client = started.open();
    expect(await warm(started, client, 'text')).toBe(`200 first ?session=${token}\n?session=${token}.`);
    const small = await warm(started, client, 'small');
    expect(small).toBe(`200 ${Buffer.from(Array.from({ length: 10_000 }, (_, n) => (n + 5) % 251)).toString('latin1')}`);
    thread.receive([{ type: 'feed-update', feed: 3, payload: 'second' }]);
    client.ask('text', token);
    const last = await client.answer();
    expect(String(last.body)).toBe(`second ?session=${token}\n?session=${token}.`);
    const counted = () => started.told('report').at(-1)?.http;
    // One for the session, then three of each file before it is answered without JavaScript, at least.
    await until('the count', () => counted()?.bytesSent === started.sent + client.received, WAIT);
    expect(counted()?.requests).toBeGreaterThanOrEqual(6);
    expect(counted()?.statuses[2]).toBe(counted()?.requests);
    expect(started.asked().length).toBeLessThan((counted()?.requests ?? 0) - 1);
    const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0);
    const feeds = told('report').flatMap((report) => report.bytes.filter((_number, n) => n % 2 === 1));
    expect(sum(told('report').flatMap((report) => report.sessionBytes.bytes))).toBe(sum(feeds));
    expect(sum(feeds)).toBeGreaterThan(client.received * 0.9);
    expect(sum(feeds)).toBeLessThan(started.sent + client.received);
  });

  test('are none of a playlist that gives a session', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    const answers = new Set<string>();
    for (let n = 0; n < 5; n += 1) answers.add(await get(client, 'list.m3u8', started.token));
    expect(answers.size).toBe(5);
  });

  test('are not for a session that was revoked', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([{ type: 'revoke', sessions: [sessionId(started.token)] }]);
    expect(await get(client, 'text', started.token)).toBe('401 ');
  });

  test('are forgotten with the rules they were made by', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([{ type: 'hosts', hosts: [] }]);
    expect(await get(client, 'text', started.token)).toMatch(/^404 /);
  });

  test('are not for a session that has not proven itself since rules have changed', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([HOSTS]);
    client.ask('list.m3u8', '');
    const other = String((await client.answer()).body).slice('to ?session='.length);
    await warm({ ...started, token: other }, client, 'text');
    const asked = started.asked().length;
    expect(await get(client, 'text', started.token)).toMatch(/^200 /);
    expect(started.asked().length).toBe(asked + 1);
  });

  test('end with their feed', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([{ type: 'feed-close', feed: 3 }]);
    expect(await get(client, 'text', started.token)).toMatch(/^404 /);
  });

  test('keep the order when a client asks on before it has read', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'large');
    await warm(started, client, 'small');
    const asked = started.asked().length;
    client.socket.pause();
    client.ask('large', started.token);
    const { received } = client;
    client.ask('small', started.token);
    client.socket.resume();
    const large = await client.answer();
    const small = await client.answer();
    expect([large.body.length, small.body.length]).toEqual([LARGE, 10_000]);
    expect(large.body.every((byte, n) => byte === n % 251)).toBe(true);
    expect(client.received - received).toBe(LARGE + 10_000 + large.head.length + small.head.length);
    // The second came while the first was sent, or with it.
    expect(started.asked().length - asked).toBeLessThanOrEqual(2);
  });

  test('are cut off for a client that does not take them', async () => {
    const started = await start(200);
    const client = started.open();
    await warm(started, client, 'large');
    const { timeouts } = started.told('report').at(-1)!.http;
    // One that has read much has a receive buffer into which all of it may fit.
    const slow = started.open();
    await get(slow, 'small', started.token);
    slow.socket.pause();
    slow.ask('large', started.token);
    await until('its end', () => started.told('report').at(-1)!.http.timeouts > timeouts, WAIT);
    await until('the other is left', () => started.told('report').at(-1)?.connections === 1, WAIT);
    expect(started.told('report').at(-1)!.http.timeouts).toBe(timeouts + 1);
  });

  test('are given to whoever leaves in the middle without harm to others', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'large');
    for (let n = 0; n < 10; n += 1) {
      const other = started.open();
      await get(other, 'small', started.token);
      other.socket.pause();
      other.ask('large', started.token);
      if (n % 2 === 0) other.socket.resetAndDestroy();
      else other.socket.destroy();
    }
    expect((await get(client, 'large', started.token)).length).toBe(LARGE + 4);
    await until('their ends', () => started.told('report').at(-1)?.connections === 1, WAIT);
  });
});
