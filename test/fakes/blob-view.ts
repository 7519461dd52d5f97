/** A view for tests: a shelf of files that its packager fills, with sessions and blocking requests. */
import type { Span } from '../../src/delivery/feed/messages.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../../src/delivery/feed/view.ts';

export type BlobUpdate =
  | { readonly put: string; readonly spans: readonly Span[] }
  /** Pieces of a text, without the tails between them. */
  | { readonly put: string; readonly text: readonly string[] }
  | { readonly put: string; readonly path: string }
  | { readonly drop: string }
  | { readonly crash: true };

type Item = { readonly spans: readonly Span[] } | { readonly text: readonly string[] } | { readonly path: string };

/** Longer than any test. */
const DEADLINE_MS = 60_000;

export class BlobView implements DeliveryView {
  readonly #context: ViewContext;
  readonly #items = new Map<string, Item>();
  readonly #waiting = new Map<DeliveryExchange, () => void>();

  constructor(_settings: unknown, context: ViewContext) {
    this.#context = context;
  }

  update(payload: unknown): void {
    const update = payload as BlobUpdate;
    if ('crash' in update) {
      setImmediate(() => {
        throw new Error('crash on demand');
      });
    } else if ('drop' in update) this.#items.delete(update.drop);
    else {
      this.#items.set(update.put, update);
      for (const [exchange, cancel] of this.#waiting) {
        if (exchange.file !== `wait-${update.put}`) continue;
        cancel();
        this.#waiting.delete(exchange);
        this.#send(exchange, update);
      }
    }
  }

  handle(exchange: DeliveryExchange): boolean {
    const { file } = exchange;
    if (file === 'throw') throw new Error('this view is broken');
    if (/^(?:ts:)?new-session(?:\.m3u8)?$/.test(file))
      exchange.respondTailored(200, [], [this.#context.createSession(exchange)?.token ?? 'full'], '');
    else if (file === 'base.m3u8') exchange.respond(200, [], [Buffer.from(exchange.admission?.base ?? 'none')]);
    else if (file === 'need-session') {
      const session = this.#context.session(exchange);
      exchange.respond(session === null ? 401 : 200, [], [Buffer.from(session?.token ?? '')]);
    } else if (file.startsWith('wait-')) this.#wait(exchange);
    else {
      if (file.startsWith('open-')) this.#context.noteReader();
      const item = this.#items.get(file);
      if (item === undefined) return false;
      this.#send(exchange, item);
    }
    return true;
  }

  close(): void {
    for (const [exchange, cancel] of this.#waiting) {
      cancel();
      exchange.respond(404, [], []);
    }
    this.#waiting.clear();
  }

  #wait(exchange: DeliveryExchange): void {
    const item = this.#items.get(exchange.file.slice('wait-'.length));
    if (item !== undefined) {
      this.#send(exchange, item);
      return;
    }
    const cancel = this.#context.schedule(DEADLINE_MS, () => {
      this.#waiting.delete(exchange);
      exchange.respond(504, [], []);
    });
    this.#waiting.set(exchange, cancel);
    exchange.onAbort(() => {
      cancel();
      this.#waiting.delete(exchange);
    });
  }

  #send(exchange: DeliveryExchange, item: Item): void {
    if ('text' in item)
      exchange.respondTailored(200, ['Content-Type: application/vnd.apple.mpegurl', 'Cache-Control: no-cache, no-store'], item.text, '');
    else if ('path' in item) exchange.respondFile(200, ['Content-Type: video/mp4'], item.path);
    else exchange.respondSpans(200, ['Content-Type: video/mp4'], item.spans);
  }
}
