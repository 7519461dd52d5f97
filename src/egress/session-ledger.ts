/** Viewer sessions of all threads together: one viewer may be seen by several threads and counts once. */
import type { SessionSighting } from './thread-protocol.ts';

/** Told when a viewer of an outlet comes, and when the last thread has seen the end of it. */
export interface SessionListener {
  sessionOpened(sighting: SessionSighting): void;
  sessionClosed(sighting: SessionSighting, reason: string): void;
}

interface Entry {
  readonly sighting: SessionSighting;
  readonly threads: Set<number>;
}

export class SessionLedger {
  readonly #listener: SessionListener;
  readonly #entries = new Map<string, Entry>();

  constructor(listener: SessionListener) {
    this.#listener = listener;
  }

  get size(): number {
    return this.#entries.size;
  }

  opened(thread: number, sighting: SessionSighting): void {
    const key = keyOf(sighting);
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      entry.threads.add(thread);
      return;
    }
    this.#entries.set(key, { sighting, threads: new Set([thread]) });
    this.#listener.sessionOpened(sighting);
  }

  closed(thread: number, sighting: SessionSighting, reason: string): void {
    const key = keyOf(sighting);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.threads.delete(thread);
    if (entry.threads.size > 0) return;
    this.#entries.delete(key);
    this.#listener.sessionClosed(entry.sighting, reason);
  }

  /** A thread is gone: its viewers come back through another one, or not. */
  threadGone(thread: number): void {
    for (const { sighting, threads } of [...this.#entries.values()]) {
      if (threads.has(thread)) this.closed(thread, sighting, 'the egress thread ended');
    }
  }

  /** The outlet is gone: whatever the threads still say about it does not matter. */
  outletGone(outlet: number): void {
    for (const [key, entry] of this.#entries) {
      if (entry.sighting.outlet !== outlet) continue;
      this.#entries.delete(key);
      this.#listener.sessionClosed(entry.sighting, 'the stream ended');
    }
  }
}

function keyOf(sighting: SessionSighting): string {
  return `${sighting.outlet}/${sighting.session}`;
}
