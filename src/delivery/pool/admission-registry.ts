/** Clients admitted by control servers over HTTP, until their sessions have ended in all threads. */
import type { AdmissionText, SessionSighting } from '../thread-protocol.ts';

interface Entry {
  readonly record: AdmissionText;
  /** The thread that asked, and its number for the request, by which it reports the end; null: `closed` reports it. */
  asked: { readonly thread: number; readonly ticket: number } | null;
  closed: () => void;
}

/**
 * `onOver`: ended admissions can be taken (`takeOver`). `adopt` takes over an admission of a thread that died, and returns the function
 * that reports the end.
 */
export interface AdmissionRegistryOptions {
  readonly onOver: () => void;
  readonly adopt: (record: AdmissionText) => () => void;
}

/** Every admission ends once: with its session, in the thread of the session, or here if that thread has died. */
export class AdmissionRegistry {
  readonly #options: AdmissionRegistryOptions;
  readonly #entries = new Map<string, Entry>();
  /** Ended tickets, by the thread to notify. */
  #over = new Map<number, number[]>();

  constructor(options: AdmissionRegistryOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** A session of an admission by `thread` began. `exists`: the session is counted, and its end will be reported. */
  bind(thread: number, { ticket, record }: { readonly ticket: number; readonly record: AdmissionText }, session: BoundSession): void {
    const asked = { thread, ticket };
    if (session.exists) this.#entries.set(keyOf(session.sighting), { record, asked, closed: () => this.#tell(asked) });
    else this.#tell(asked);
  }

  /** An existing session, whose end `closed` reports. */
  enterSession(sighting: SessionSighting, record: AdmissionText, closed: () => void): void {
    this.#entries.set(keyOf(sighting), { record, asked: null, closed });
  }

  /** The record of its admission; undefined without one. */
  sessionOver(sighting: SessionSighting): AdmissionText | undefined {
    const key = keyOf(sighting);
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    entry?.closed();
    return entry?.record;
  }

  /** Ended tickets by thread, since the last call. */
  takeOver(): ReadonlyMap<number, readonly number[]> {
    const over = this.#over;
    if (over.size > 0) this.#over = new Map();
    return over;
  }

  /** The thread has reported all ends itself. */
  threadStopped(thread: number): void {
    for (const [key, entry] of this.#entries) if (entry.asked?.thread === thread) this.#entries.delete(key);
  }

  /** Its sessions may continue in other threads. */
  threadGone(thread: number): void {
    for (const entry of this.#entries.values()) if (entry.asked?.thread === thread) this.#takeOn(entry);
  }

  /** All threads have ended: remaining admissions are over. Idempotent. */
  close(): void {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    for (const entry of entries) {
      if (entry.asked !== null) this.#takeOn(entry);
      entry.closed();
    }
  }

  #takeOn(entry: Entry): void {
    entry.asked = null;
    entry.closed = this.#options.adopt(entry.record);
  }

  #tell({ thread, ticket }: { readonly thread: number; readonly ticket: number }): void {
    const tickets = this.#over.get(thread);
    if (tickets === undefined) this.#over.set(thread, [ticket]);
    else tickets.push(ticket);
    this.#options.onOver();
  }
}

/** A session as reported by the threads; `exists`: it is counted. */
export interface BoundSession {
  readonly sighting: SessionSighting;
  readonly exists: boolean;
}

function keyOf({ feed, session }: SessionSighting): string {
  return `${feed}/${session}`;
}
