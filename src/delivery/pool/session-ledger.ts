/** Viewer sessions of all threads together: one viewer may be seen by several threads and counts once. */
import type { SessionHandle } from '../../core/publishing.ts';
import type { SessionBytes, SessionSighting } from '../thread-protocol.ts';

/** Told when a viewer of a feed comes, and when the last thread has seen the end of it. */
export interface SessionListener {
  /** Returns where the viewer is counted; null: nowhere. */
  sessionOpened(sighting: SessionSighting): SessionHandle | null;
  sessionClosed(sighting: SessionSighting, reason: string): void;
}

interface Entry {
  readonly sighting: SessionSighting;
  readonly handle: SessionHandle | null;
  readonly threads: Set<number>;
}

/** A viewer counts from the first thread that saw it to the last. Needs no closing: sessions end with their feed. */
export class SessionLedger {
  readonly #listener: SessionListener;
  readonly #entries = new Map<string, Entry>();

  constructor(listener: SessionListener) {
    this.#listener = listener;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(sighting: SessionSighting): boolean {
    return this.#entries.has(keyOf(sighting));
  }

  opened(thread: number, sighting: SessionSighting): void {
    const key = keyOf(sighting);
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      entry.threads.add(thread);
      return;
    }
    this.#entries.set(key, { sighting, handle: this.#listener.sessionOpened(sighting), threads: new Set([thread]) });
  }

  closed(thread: number, sighting: SessionSighting, reason: string): void {
    const key = keyOf(sighting);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.threads.delete(thread);
    if (entry.threads.size === 0) this.#end(key, entry, reason);
  }

  /** Adds what viewers were sent. */
  countBytes({ sightings, bytes }: SessionBytes): void {
    sightings.forEach((sighting, n) => {
      this.#entries.get(keyOf(sighting))?.handle?.countBytes(bytes[n] ?? 0);
    });
  }

  /** A thread is gone: its viewers come back through another one, or not. */
  threadGone(thread: number): void {
    for (const { sighting, threads } of [...this.#entries.values()]) {
      if (threads.has(thread)) this.closed(thread, sighting, 'the delivery thread ended');
    }
  }

  /** The feed is gone: whatever the threads still say about it does not matter. */
  feedGone(feed: number): void {
    for (const [key, entry] of this.#entries) {
      if (entry.sighting.feed === feed) this.#end(key, entry, 'the stream ended');
    }
  }

  #end(key: string, { sighting, handle }: Entry, reason: string): void {
    this.#entries.delete(key);
    handle?.close(reason);
    this.#listener.sessionClosed(sighting, reason);
  }
}

function keyOf(sighting: SessionSighting): string {
  return `${sighting.feed}/${sighting.session}`;
}
