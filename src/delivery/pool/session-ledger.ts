/** Viewer sessions of all threads: one viewer may be reported by several threads and counts once. */
import type { SessionHandle } from '../../core/publishing.ts';
import type { SessionBytes, SessionSighting } from '../thread-protocol.ts';

/** Called when a viewer of a feed arrives, and when the last thread has reported its end. */
export interface SessionListener {
  /** Returns the handle that counts the viewer; null: not counted. */
  sessionOpened(sighting: SessionSighting): SessionHandle | null;
  sessionClosed(sighting: SessionSighting, reason: string): void;
}

interface Entry {
  readonly sighting: SessionSighting;
  readonly handle: SessionHandle | null;
  readonly threads: Set<number>;
}

/** A viewer counts from its first report to its end in the last thread. Needs no closing: sessions end with their feed. */
export class SessionLedger {
  readonly #listener: SessionListener;
  /** By feed and then by session: the end of a stream looks at its own viewers only. */
  readonly #feeds = new Map<number, Map<string, Entry>>();
  #size = 0;

  constructor(listener: SessionListener) {
    this.#listener = listener;
  }

  get size(): number {
    return this.#size;
  }

  has(sighting: SessionSighting): boolean {
    return this.#entryOf(sighting) !== undefined;
  }

  opened(thread: number, sighting: SessionSighting): void {
    const entry = this.#entryOf(sighting);
    if (entry !== undefined) {
      entry.threads.add(thread);
      return;
    }
    const { feed, session } = sighting;
    const sessions = this.#feeds.get(feed) ?? new Map<string, Entry>();
    this.#feeds.set(feed, sessions);
    sessions.set(session, { sighting, handle: this.#listener.sessionOpened(sighting), threads: new Set([thread]) });
    this.#size += 1;
  }

  closed(thread: number, sighting: SessionSighting, reason: string): void {
    const entry = this.#entryOf(sighting);
    if (entry === undefined) return;
    entry.threads.delete(thread);
    if (entry.threads.size === 0) this.#end(entry, reason);
  }

  /** Adds bytes sent to viewers. */
  countBytes({ sightings, bytes }: SessionBytes): void {
    sightings.forEach((sighting, n) => {
      this.#entryOf(sighting)?.handle?.countBytes(bytes[n] ?? 0);
    });
  }

  /** A thread has ended: its viewers may return through another one. */
  threadGone(thread: number): void {
    for (const sessions of [...this.#feeds.values()]) {
      for (const { sighting, threads } of [...sessions.values()]) {
        if (threads.has(thread)) this.closed(thread, sighting, 'the delivery thread ended');
      }
    }
  }

  /** The feed has ended: later reports of the threads about it are ignored. */
  feedGone(feed: number): void {
    for (const entry of [...(this.#feeds.get(feed)?.values() ?? [])]) this.#end(entry, 'the stream ended');
  }

  #entryOf({ feed, session }: SessionSighting): Entry | undefined {
    return this.#feeds.get(feed)?.get(session);
  }

  #end({ sighting, handle }: Entry, reason: string): void {
    const { feed, session } = sighting;
    const sessions = this.#feeds.get(feed);
    if (sessions?.delete(session) === true) this.#size -= 1;
    if (sessions?.size === 0) this.#feeds.delete(feed);
    handle?.close(reason);
    this.#listener.sessionClosed(sighting, reason);
  }
}
