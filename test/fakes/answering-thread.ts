/** A delivery thread with a stream whose view has small answers, and viewers on plain sockets. */
import { connect, type Socket } from 'node:net';
import { OPEN_ADMISSION } from '../../src/delivery/admission.ts';
import type { Span } from '../../src/delivery/feed/messages.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../../src/delivery/feed/view.ts';
import { DEFAULT_DELIVERY_LIMITS } from '../../src/delivery/pool/delivery-limits.ts';
import { DeliveryThread } from '../../src/delivery/thread/delivery-thread.ts';
import type { DeliveryLimits, FromThread, ThreadReport, ToThread } from '../../src/delivery/thread-protocol.ts';
import { systemClock } from '../../src/util/clock.ts';
import { until } from '../harness/poll.ts';

/** Larger than the buffers of both ends; equal to the limit of an image. */
export const LARGE = 8 * 1024 * 1024;
const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const HOSTS: ToThread = { type: 'hosts', hosts: [{ name: 'default', hostNames: ['*'] }] };
/** The playlist that creates a session. */
const BEGINNING = ['to ', ''];
const FILES: Readonly<Record<string, readonly Span[]>> = {
  small: [{ block: 1, offset: 5, length: 10_000 }],
  large: [{ block: 1, offset: 0, length: LARGE }],
};

/**
 * Serves a text with the viewer's session, and files. An update changes the text. Requests for `later` wait for the next text; an empty
 * text is a 404.
 */
class TestView implements DeliveryView {
  /** Requested files. */
  readonly asked: string[] = [];
  /** How long each request for `later` had waited before the view got it, ms. */
  readonly heldFor: number[] = [];
  /** Sessions of the requests for `later`. */
  readonly heldBy: string[] = [];
  readonly #context: ViewContext;
  readonly #waiting = new Set<() => void>();
  #pieces: readonly string[] = ['first ', '\n', '.'];

  constructor(context: ViewContext) {
    this.#context = context;
  }

  update(payload: unknown): void {
    this.#pieces = payload === '' ? [] : [`${String(payload)} `, '\n', '.'];
    this.close();
  }

  handle(exchange: DeliveryExchange): boolean {
    if (exchange.file === 'list.m3u8')
      exchange.respondTailored(200, [], BEGINNING, `?session=${this.#context.createSession(exchange)?.token}`);
    else {
      this.asked.push(exchange.file);
      const session = this.#context.session(exchange);
      if (exchange.file === 'later') {
        this.heldFor.push(exchange.heldFor);
        this.heldBy.push(session?.token ?? '');
      }
      const spans = FILES[exchange.file];
      if (session === null) exchange.respond(401, [], []);
      else if (exchange.file === 'later' && this.#pieces.length > 0) this.#hold(exchange, session.token);
      else if (this.#pieces.length === 0) exchange.respond(404, [], []);
      else if (spans !== undefined) exchange.respondSpans(200, [], spans);
      else exchange.respondTailored(200, [], this.#pieces, `?session=${session.token}`);
    }
    return true;
  }

  close(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const answer of waiting) answer();
  }

  #hold(exchange: DeliveryExchange, token: string): void {
    const answer = (): void => {
      if (this.#pieces.length === 0) exchange.respond(404, [], []);
      else exchange.respondTailored(200, [], this.#pieces, `?session=${token}`);
    };
    this.#waiting.add(answer);
    exchange.onAbort(() => this.#waiting.delete(answer));
  }
}

/** A viewer with one connection, whose answers are read in order. */
export class PlainViewer {
  readonly socket: Socket;
  /** Received bytes. */
  received = 0;
  /** The server has ended the connection. */
  ended = false;
  readonly #chunks: Buffer[] = [];

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.received += chunk.length;
    });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.ended = true;
    });
  }

  /** `lines`: further complete headers. */
  ask(file: string, token: string, lines = ''): void {
    this.socket.write(`GET /app/s/${file}?session=${token} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`);
  }

  /** The status and text of the next answer. */
  async text(): Promise<string> {
    const { head, body } = await this.answer();
    return `${head.slice(9, 12)} ${body.toString('latin1')}`;
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

/** The thread, and its messages. `close` ends it and its viewers. */
export class AnsweringThread {
  readonly thread: DeliveryThread;
  readonly posted: FromThread[] = [];
  readonly #views: TestView[] = [];
  readonly #viewers: PlainViewer[] = [];
  port = 0;
  /** Bytes sent for sessions. */
  sent = 0;

  private constructor(changes: Partial<DeliveryLimits>) {
    const limits = { ...DEFAULT_DELIVERY_LIMITS, reportInterval: 50, stopGrace: 50, ...changes };
    this.thread = new DeliveryThread({
      settings: {
        ...{ incarnation: 1, secret: new Uint8Array(32), limits, admission: { ...OPEN_ADMISSION, threads: 1, slot: 1 } },
        ...{ http2: false, foreign: null, pages: null, logConnections: true },
      },
      views: {
        llhls: (_settings, context) => {
          const view = new TestView(context);
          this.#views.push(view);
          return view;
        },
      },
      clock: systemClock,
      post: (message) => this.posted.push(message),
    });
  }

  static async start(changes: Partial<DeliveryLimits> = {}): Promise<AnsweringThread> {
    const started = new AnsweringThread(changes);
    const memory = new SharedArrayBuffer(LARGE);
    Buffer.from(memory).fill(Buffer.from(Array.from({ length: 251 }, (_, n) => n)));
    const address = { vhost: 'default', app: 'app', stream: 's' };
    started.thread.receive([
      HOSTS,
      { type: 'block-add', block: 1, buffer: memory },
      { type: 'feed-open', feed: 3, kind: 'llhls', address, crossDomains: null, settings: null },
      { type: 'listen', listener: 1, request: { host: '127.0.0.1', port: 0, tls: false }, first: true },
    ]);
    started.port = (await until('the port', () => started.told('listening')[0] ?? null, WAIT)).port;
    return started;
  }

  /** Files that were requested from JavaScript. */
  get asked(): readonly string[] {
    return this.#views.flatMap((view) => view.asked);
  }

  /** How long the requests for `later` had waited before JavaScript got them, ms. */
  get heldFor(): readonly number[] {
    return this.#views.flatMap((view) => view.heldFor);
  }

  /** Sessions of the requests for `later` that JavaScript got. */
  get heldBy(): readonly string[] {
    return this.#views.flatMap((view) => view.heldBy);
  }

  /** The newest report. */
  get report(): ThreadReport {
    return this.told('report').at(-1) as ThreadReport;
  }

  told<Type extends FromThread['type']>(type: Type): Extract<FromThread, { type: Type }>[] {
    return this.posted.filter((message): message is Extract<FromThread, { type: Type }> => message.type === type);
  }

  update(payload: string): void {
    this.thread.receive([{ type: 'feed-update', feed: 3, payload }]);
  }

  /** Announces the same hosts again, as after a change of their rules. */
  changeHosts(): void {
    this.thread.receive([HOSTS]);
  }

  open(): PlainViewer {
    const viewer = new PlainViewer(this.port);
    this.#viewers.push(viewer);
    return viewer;
  }

  /** The token of a new session. */
  async session(): Promise<string> {
    const viewer = this.open();
    viewer.ask('list.m3u8', '');
    const token = String((await viewer.answer()).body).slice('to ?session='.length);
    this.sent += viewer.received;
    viewer.socket.destroy();
    return token;
  }

  /** Requests `file` until the addon answers it without JavaScript; returns that answer. */
  async warm(viewer: PlainViewer, file: string, token: string): Promise<string> {
    for (let times = 0; times < 10; times += 1) {
      const before = this.asked.length;
      viewer.ask(file, token);
      const answer = await viewer.text();
      if (this.asked.length === before) return answer;
    }
    throw new Error('it is never answered without JavaScript');
  }

  close(): void {
    for (const viewer of this.#viewers) viewer.socket.destroy();
    this.thread.receive([{ type: 'stop' }]);
  }
}
