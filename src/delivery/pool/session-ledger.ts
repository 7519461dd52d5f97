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

  /** Adds bytes sent to viewers. */
  countBytes({ sightings, bytes }: SessionBytes): void {
    sightings.forEach((sighting, n) => {
      this.#entries.get(keyOf(sighting))?.handle?.countBytes(bytes[n] ?? 0);
    });
  }

  /** A thread has ended: its viewers may return through another one. */
  threadGone(thread: number): void {
    for (const { sighting, threads } of [...this.#entries.values()]) {
      if (threads.has(thread)) this.closed(thread, sighting, 'the delivery thread ended');
    }
  }

  /** The feed has ended: later reports of the threads about it are ignored. */
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
