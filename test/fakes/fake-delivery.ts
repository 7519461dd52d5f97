/** A delivery pool with one pretended thread: feeds, shared memory, sessions, exchanges and a manual clock. */
import type { DeliveryFeed, FeedOpener, Span } from '../../src/delivery/feed/messages.ts';
import type { ByteSink, DeliveryExchange, DeliveryView, ViewContext, ViewerAdmission } from '../../src/delivery/feed/view.ts';

type OpenRequest = Parameters<FeedOpener['openFeed']>[0];

/** An answer of a view. */
export interface FakeResponse {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly text: string;
  /** Path of the file; null for an answer in bytes. */
  readonly path: string | null;
}

/** The client of a request, if it matters. */
export interface FakeClient {
  readonly address?: string;
  readonly agent?: string;
  /** The client was admitted; prefix of the media playlists' names, for a playlist at the address of another stream. */
  readonly base?: string;
}

/** Time and sessions of the pretended thread. */
export class FakeViewContext implements ViewContext {
  guarded = false;
  #now = 0;
  #sessions = 0;
  /** Address, User-Agent and time to live of each viewer counted without a session. */
  readonly viewers: { readonly address: string; readonly agent: string | undefined; readonly ttlMs: number }[] = [];
  /** Number of requests of clients that are not viewers. */
  readers = 0;
  /** Number of requests that a full room refused. */
  overloads = 0;
  /** True: clients get no sessions. */
  full = false;
  /** True: viewers without a session are refused. */
  refusing = false;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  createSession(): { token: string } | null {
    if (this.full) return null;
    this.#sessions += 1;
    return { token: `${this.#sessions}_FakeKey1` };
  }

  session(exchange: DeliveryExchange): { token: string } | null {
    const token = exchange.queryValue('session');
    return token !== undefined && /^\d+_FakeKey1$/.test(token) ? { token } : null;
  }

  countViewer(exchange: DeliveryExchange, ttlMs: number): boolean {
    this.viewers.push({ address: exchange.remoteAddress, agent: exchange.header('user-agent'), ttlMs });
    return !this.refusing;
  }

  noteReader(): void {
    this.readers += 1;
  }

  noteOverload(): void {
    this.overloads += 1;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  now(): number {
    return this.#now;
  }

  get sessions(): number {
    return this.#sessions;
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Advances the clock and runs due timers in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    while (true) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.callback();
    }
    this.#now = end;
  }
}

/** One request; `response` is null while it is held. */
export class FakeExchange implements DeliveryExchange {
  readonly method = 'GET';
  readonly file: string;
  readonly query: string;
  readonly remoteAddress: string;
  readonly admission: ViewerAdmission | null;
  heldFor = 0;
  response: FakeResponse | null = null;
  #gone = false;
  #onAbort: (() => void) | null = null;
  readonly #read: (spans: readonly Span[]) => readonly Uint8Array[];
  readonly #agent: string | undefined;

  constructor(target: string, read: (spans: readonly Span[]) => readonly Uint8Array[], client: FakeClient = {}) {
    this.remoteAddress = client.address ?? '192.0.2.1';
    this.#agent = client.agent;
    const callbacks = { entered: () => undefined, leave: () => undefined };
    const nobodyCares = { expiresAt: Number.POSITIVE_INFINITY, sent: true, ticket: undefined, ...callbacks };
    this.admission = client.base === undefined ? null : { ...nobodyCares, protocol: 'llhls', base: client.base };
    const mark = target.indexOf('?');
    this.file = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? '' : target.slice(mark + 1);
    this.#read = read;
  }

  get done(): boolean {
    return this.#gone || this.response !== null;
  }

  queryValue(key: string): string | undefined {
    return new URLSearchParams(this.query).get(key) ?? undefined;
  }

  header(name: string): string | undefined {
    return name === 'user-agent' ? this.#agent : undefined;
  }

  /** Nothing is counted here. */
  billTo(_viewer: ByteSink): void {}

  onAbort(callback: () => void): void {
    this.#onAbort = callback;
  }

  /** The client leaves. */
  abort(): void {
    this.#gone = true;
    this.#onAbort?.();
  }

  respond(status: number, headers: readonly string[], body: readonly Uint8Array[]): void {
    this.#answer(status, headers, Buffer.concat(body), null);
  }

  respondSpans(status: number, headers: readonly string[], spans: readonly Span[]): void {
    this.#answer(status, headers, Buffer.concat(this.#read(spans)), null);
  }

  respondFile(status: number, headers: readonly string[], path: string): void {
    this.#answer(status, headers, new Uint8Array(), path);
  }

  respondTailored(status: number, headers: readonly string[], pieces: readonly string[], tail: string): void {
    this.#answer(status, headers, Buffer.from(pieces.join(tail)), null);
  }

  #answer(status: number, headers: readonly string[], body: Uint8Array, path: string | null): void {
    if (this.done) throw new Error(`${this.file} was answered twice`);
    this.response = { status, headers, body, text: Buffer.from(body).toString(), path };
    this.answered();
  }

  /** Called when `response` is set. */
  protected answered(): void {}
}

/** A feed whose updates reach its view at once, through structured clone as between threads. */
export class FakeFeed implements DeliveryFeed {
  watched = true;
  readonly id: number;
  readonly request: OpenRequest;
  readonly view: DeliveryView;
  readonly updates: unknown[] = [];
  closed = false;
  readonly #blocks = new Map<number, Uint8Array>();
  #nextBlock = 1;

  constructor(id: number, request: OpenRequest, view: DeliveryView) {
    this.id = id;
    this.request = request;
    this.view = view;
  }

  /** Bytes stored and not released. */
  get storedBytes(): number {
    let sum = 0;
    for (const block of this.#blocks.values()) sum += block.length;
    return sum;
  }

  update(payload: unknown): void {
    if (this.closed) throw new Error('update after close');
    const copy = structuredClone(payload);
    this.updates.push(copy);
    this.view.update(copy);
  }

  store(chunks: readonly Uint8Array[]): readonly Span[] {
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const block = new Uint8Array(new SharedArrayBuffer(length));
    let offset = 0;
    for (const chunk of chunks) {
      block.set(chunk, offset);
      offset += chunk.length;
    }
    const id = this.#nextBlock;
    this.#nextBlock += 1;
    this.#blocks.set(id, block);
    return [{ block: id, offset: 0, length }];
  }

  read = (spans: readonly Span[]): readonly Uint8Array[] =>
    spans.map((span) => {
      const block = this.#blocks.get(span.block);
      if (block === undefined) throw new Error(`block ${span.block} was released`);
      return block.subarray(span.offset, span.offset + span.length);
    });

  release(spans: readonly Span[]): void {
    for (const span of spans) if (!this.#blocks.delete(span.block)) throw new Error(`block ${span.block} was released twice`);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#blocks.clear();
    this.view.close();
  }
}

/** Packagers open feeds here; `createView` makes the view that a delivery thread would make for the feed's kind. */
export class FakeDelivery implements FeedOpener {
  readonly context = new FakeViewContext();
  readonly feeds: FakeFeed[] = [];
  readonly #createView: (settings: unknown, context: ViewContext) => DeliveryView;

  constructor(createView: (settings: unknown, context: ViewContext) => DeliveryView) {
    this.#createView = createView;
  }

  openFeed(request: OpenRequest): FakeFeed {
    const view = this.#createView(structuredClone(request.settings), this.context);
    const feed = new FakeFeed(this.feeds.length + 1, request, view);
    this.feeds.push(feed);
    return feed;
  }

  /** The feed opened last. */
  get feed(): FakeFeed {
    const feed = this.feeds.at(-1);
    if (feed === undefined) throw new Error('no feed was opened');
    return feed;
  }

  /** Sends a request for `target` (`file?query`) to the last feed; null when the view does not know the file. */
  request(target: string, client: FakeClient = {}): FakeExchange | null {
    const exchange = new FakeExchange(target, this.feed.read, client);
    return this.feed.view.handle(exchange) ? exchange : null;
  }

  /** As `request`, for requests that are answered at once. */
  get(target: string, client: FakeClient = {}): FakeResponse {
    const response = this.request(target, client)?.response ?? null;
    if (response === null) throw new Error(`${target} was not answered`);
    return response;
  }
}
