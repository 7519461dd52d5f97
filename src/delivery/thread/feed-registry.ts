/** The feeds of a delivery thread: maps streams to views. */

import type { CrossDomainRules } from '../../access/cross-domains.ts';
import type { StreamAddress } from '../../core/stream-address.ts';
import { forEachGuarded } from '../../util/guarded.ts';
import type { FeedMessage } from '../feed/messages.ts';
import type { ViewFactories } from '../feed/view.ts';
import type { AnswerCache } from './answer-cache.ts';
import { ThreadFeed, type ThreadFeedServices } from './thread-feed.ts';

/** Dependencies of the registry and its feeds. */
export interface RegistryServices extends ThreadFeedServices {
  /** The kept answers. */
  readonly answers: Pick<AnswerCache, 'changed' | 'closing' | 'forget'> | null;
  readonly views: ViewFactories;
}

/** The part of a path that names a stream. */
function pathOf({ app, stream }: StreamAddress): string {
  return `${app}/${stream}`;
}

/** Owns the views of its thread: they are closed with their feeds, or by `closeAll`. */
export class FeedRegistry {
  readonly #services: RegistryServices;
  readonly #feeds = new Map<number, { readonly feed: ThreadFeed; readonly address: StreamAddress }>();
  /** Virtual host → `<app>/<stream>` → feeds. */
  readonly #streams = new Map<string, Map<string, ThreadFeed[]>>();
  #defaults: CrossDomainRules = { urls: [], headers: [] };

  constructor(services: RegistryServices) {
    this.#services = services;
  }

  get size(): number {
    return this.#feeds.size;
  }

  setDefaults(rules: CrossDomainRules): void {
    this.#defaults = rules;
    for (const { feed } of this.#feeds.values()) feed.setDefaults(rules);
    this.#services.answers?.forget();
  }

  /** Applies a packager's message. Throws for a kind without a view, and passes on the view's exceptions. */
  apply(message: FeedMessage): void {
    if (message.type === 'feed-open') this.#open(message);
    else if (message.type === 'feed-update') {
      this.#services.answers?.changed(message.feed);
      this.#feeds.get(message.feed)?.feed.view.update(message.payload);
    } else this.#close(message.feed);
  }

  /** Feeds of a stream; undefined if there is no such stream. `key` is `<app>/<stream>`. */
  find(vhost: string, key: string): readonly ThreadFeed[] | undefined {
    return this.#streams.get(vhost)?.get(key);
  }

  /** The addon has sent `bytes` to viewers of a feed. */
  answered(id: number, bytes: number): void {
    const feed = this.#feeds.get(id)?.feed;
    if (feed === undefined) return;
    feed.bytesSent += bytes;
    feed.asked();
  }

  /** Called after each report. */
  look(): void {
    for (const { feed } of this.#feeds.values()) feed.look();
  }

  /** The thread has no viewers, and the main thread has that information. */
  rest(): void {
    for (const { feed } of this.#feeds.values()) feed.forget();
  }

  /** Calls `visit` with the bytes sent by each feed since the last call. */
  takeBytes(visit: (feed: number, bytes: number) => void): void {
    for (const { feed } of this.#feeds.values()) {
      if (feed.bytesSent === 0) continue;
      visit(feed.feed, feed.bytesSent);
      feed.bytesSent = 0;
    }
  }

  /** Feeds with an answer to a reader without a session since the last call. */
  takeRead(): readonly number[] {
    const read: number[] = [];
    for (const { feed } of this.#feeds.values()) {
      if (feed.hasReader) read.push(feed.feed);
      feed.hasReader = false;
    }
    return read;
  }

  /** An exception of a view is reported as a fault, and all other feeds are closed as well. */
  closeAll(): void {
    forEachGuarded(
      [...this.#feeds.keys()],
      (id) => this.#close(id),
      (_id, error) => this.#services.onFault(error),
    );
  }

  #open(message: Extract<FeedMessage, { type: 'feed-open' }>): void {
    const factory = this.#services.views[message.kind];
    if (factory === undefined) throw new TypeError(`no view for feeds of kind ${message.kind}`);
    const feed = new ThreadFeed(message, factory, this.#defaults, this.#services);
    this.#feeds.set(message.feed, { feed, address: message.address });
    const { vhost } = message.address;
    const streams = this.#streams.get(vhost) ?? new Map<string, ThreadFeed[]>();
    this.#streams.set(vhost, streams);
    const key = pathOf(message.address);
    streams.set(key, [...(streams.get(key) ?? []), feed]);
    // The new feed may have files with the names of kept answers.
    this.#services.answers?.forget();
  }

  #close(id: number): void {
    const entry = this.#feeds.get(id);
    if (entry === undefined) return;
    // Its view has to answer everyone who waits.
    this.#services.answers?.closing(id);
    this.#feeds.delete(id);
    this.#services.answers?.changed(id);
    const { vhost } = entry.address;
    const streams = this.#streams.get(vhost);
    const key = pathOf(entry.address);
    const left = (streams?.get(key) ?? []).filter((feed) => feed !== entry.feed);
    if (left.length > 0) streams?.set(key, left);
    else streams?.delete(key);
    if (streams?.size === 0) this.#streams.delete(vhost);
    entry.feed.close();
  }
}
