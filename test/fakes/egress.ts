/** Stands in for the egress pool: keeps blocks in memory and feeds one view as an egress thread would. */
import type { EgressPort, Outlet, Span } from '../../src/publishers/outlet/messages.ts';
import type { DeliveryExchange, OutletView, ViewContext, ViewerSession } from '../../src/publishers/outlet/view.ts';

type OutletRequest = Parameters<EgressPort['openOutlet']>[0];

/** Small, so that segments cross block boundaries. */
const BLOCK_LENGTH = 300_000;

export interface FakeAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly text: string;
}

export class FakeEgress implements EgressPort {
  readonly context = new FakeViewContext();
  readonly updates: unknown[] = [];
  readonly released: Span[] = [];
  readonly stored: Span[] = [];
  request: OutletRequest | null = null;
  closed = 0;
  view: OutletView | null = null;
  readonly #createView: (settings: unknown, context: ViewContext) => OutletView;
  readonly #blocks: { readonly bytes: Uint8Array; used: number }[] = [];

  constructor(createView: (settings: unknown, context: ViewContext) => OutletView) {
    this.#createView = createView;
  }

  openOutlet(request: OutletRequest): Outlet {
    this.request = request;
    this.view = this.#createView(structuredClone(request.settings), this.context);
    return {
      id: 1,
      update: (payload) => {
        this.updates.push(payload);
        this.view?.update(structuredClone(payload));
      },
      store: (chunks) => chunks.flatMap((chunk) => this.#store(chunk)),
      read: (spans) => spans.map((span) => this.bytesOf(span)),
      release: (spans) => void this.released.push(...spans),
      close: () => {
        this.closed += 1;
        this.view?.close();
      },
    };
  }

  /** A view that starts now, as after the crash of a thread. */
  restartedView(): OutletView {
    const view = this.#createView(this.request?.settings, this.context);
    for (const payload of this.request?.snapshot() ?? []) view.update(structuredClone(payload));
    return view;
  }

  /** Asks `view` for a file; null when it says that the file is not its own. */
  get(
    fileAndQuery: string,
    options: { readonly view?: OutletView | null; readonly address?: string; readonly agent?: string } = {},
  ): FakeAnswer | null {
    const exchange = new FakeExchange(fileAndQuery, this, options.address ?? '192.0.2.1', options.agent);
    const view = options.view ?? this.view;
    return view?.handle(exchange) === true ? exchange.answer : null;
  }

  bytesOf({ block, offset, length }: Span): Uint8Array {
    return this.#blocks[block]!.bytes.subarray(offset, offset + length);
  }

  #store(chunk: Uint8Array): Span[] {
    const spans: Span[] = [];
    let from = 0;
    while (from < chunk.length) {
      let block = this.#blocks.at(-1);
      if (block === undefined || block.used === BLOCK_LENGTH) {
        block = { bytes: new Uint8Array(BLOCK_LENGTH), used: 0 };
        this.#blocks.push(block);
      }
      const length = Math.min(chunk.length - from, BLOCK_LENGTH - block.used);
      block.bytes.set(chunk.subarray(from, from + length), block.used);
      spans.push({ block: this.#blocks.length - 1, offset: block.used, length });
      block.used += length;
      from += length;
    }
    this.stored.push(...spans);
    return spans;
  }
}

/** Counts what views ask for; sessions are always valid. */
export class FakeViewContext implements ViewContext {
  readonly viewers: { readonly key: string; readonly ttlMs: number }[] = [];

  createSession(): ViewerSession {
    return { token: 'token' };
  }

  session(): ViewerSession | null {
    return { token: 'token' };
  }

  countViewer(exchange: DeliveryExchange, ttlMs: number): void {
    this.viewers.push({ key: `${exchange.remoteAddress} ${exchange.header('user-agent') ?? ''}`, ttlMs });
  }

  schedule(): () => void {
    return () => undefined;
  }

  now(): number {
    return 0;
  }
}

class FakeExchange implements DeliveryExchange {
  readonly method = 'GET';
  readonly file: string;
  readonly query: string;
  readonly remoteAddress: string;
  answer: FakeAnswer | null = null;
  readonly #egress: FakeEgress;
  readonly #agent: string | undefined;

  constructor(fileAndQuery: string, egress: FakeEgress, remoteAddress: string, agent: string | undefined) {
    const [file = '', query = ''] = fileAndQuery.split('?');
    this.file = file;
    this.query = query;
    this.remoteAddress = remoteAddress;
    this.#egress = egress;
    this.#agent = agent;
  }

  get done(): boolean {
    return this.answer !== null;
  }

  queryValue(key: string): string | undefined {
    return new URLSearchParams(this.query).get(key) ?? undefined;
  }

  header(name: string): string | undefined {
    return name === 'user-agent' ? this.#agent : undefined;
  }

  onAbort(): void {
    // Every answer comes at once.
  }

  respond(status: number, headers: readonly string[], body: readonly Uint8Array[]): void {
    if (this.answer !== null) throw new Error('answered twice');
    const bytes = new Uint8Array(Buffer.concat(body));
    this.answer = { status, headers, body: bytes, text: Buffer.from(bytes).toString() };
  }

  respondSpans(status: number, headers: readonly string[], spans: readonly Span[]): void {
    this.respond(
      status,
      headers,
      spans.map((span) => this.#egress.bytesOf(span)),
    );
  }

  respondFile(): void {
    throw new Error('no view that uses this fake serves files');
  }

  respondText(status: number, headers: readonly string[], text: string): void {
    this.respond(status, headers, [Buffer.from(text)]);
  }
}
