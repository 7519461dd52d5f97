/** The ports of the delivery side, and which threads have opened them. */
import type { ListenRequest, ToThread } from '../thread-protocol.ts';
import type { ActivationPort } from './activation-port.ts';

interface Entry {
  readonly id: number;
  readonly request: ListenRequest;
  /** 0 until a thread has bound it. */
  port: number;
  /** The activation port with early connections; null if there is none, or a thread has taken it over. */
  held: Pick<ActivationPort, 'descriptor' | 'close'> | null;
  /** The thread that takes over the activation port; 0 for none. */
  taker: number;
  readonly asked: Set<number>;
  readonly settled: Set<number>;
  readonly resolve: (port: number) => void;
  readonly reject: (error: Error) => void;
}

/** Access to the threads, and the callback for ports that only some could open. */
export interface PortRegistryOptions {
  /** Threads that run now, in order. */
  readonly threads: () => readonly number[];
  readonly post: (thread: number, message: ToThread) => void;
  /** A thread could not open a port that another thread has. */
  readonly onFailed: (thread: number, port: number, message: string) => void;
}

/** One thread binds first, and all other threads bind the port it got: so port 0 works, and a taken port fails once. */
export class PortRegistry {
  readonly #options: PortRegistryOptions;
  readonly #entries = new Map<number, Entry>();
  #nextId = 1;

  constructor(options: PortRegistryOptions) {
    this.#options = options;
  }

  /**
   * Opens a port in all threads; resolves with its number when all have it, rejects if the first cannot bind. A port with an activation
   * port is already open, and the first thread that starts takes it over.
   */
  open(request: ListenRequest, held: ActivationPort | null = null): { readonly id: number; readonly opened: Promise<number> } {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const id = this.#nextId;
    this.#nextId += 1;
    const entry: Entry = { id, request, port: held?.port ?? 0, held, taker: 0, asked: new Set(), settled: new Set(), resolve, reject };
    this.#entries.set(id, entry);
    if (held === null) this.#askFirst(entry);
    else for (const thread of this.#options.threads()) this.#ask(entry, thread);
    if (held !== null) resolve(held.port);
    return { id, opened: promise };
  }

  /** Removes a port; false if it is unknown. */
  close(id: number): boolean {
    const entry = this.#entries.get(id);
    entry?.reject(new Error('the port was closed'));
    entry?.held?.close();
    return this.#entries.delete(id);
  }

  /** Closes ports that no thread has taken over. Idempotent. */
  stop(): void {
    for (const { held } of this.#entries.values()) held?.close();
  }

  /** A thread has (re)started. */
  threadStarted(thread: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.port !== 0) this.#ask(entry, thread);
      else this.#askFirst(entry);
    }
  }

  threadGone(thread: number): void {
    for (const entry of this.#entries.values()) {
      entry.asked.delete(thread);
      entry.settled.delete(thread);
      if (entry.taker === thread) entry.taker = 0;
      if (entry.port === 0) this.#askFirst(entry);
      else this.#check(entry);
    }
  }

  listening(thread: number, id: number, port: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.settled.add(thread);
    if (entry.taker === thread) this.#leaveHeld(entry);
    if (entry.port === 0) {
      entry.port = port;
      for (const other of this.#options.threads()) this.#ask(entry, other);
    }
    this.#check(entry);
  }

  failed(thread: number, id: number, message: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    if (entry.port === 0) {
      this.#entries.delete(id);
      entry.reject(new Error(message));
      return;
    }
    this.#options.onFailed(thread, entry.port, message);
    entry.settled.add(thread);
    // A connection must not wait on a port that no thread answers.
    if (entry.taker === thread) this.#leaveHeld(entry);
    this.#check(entry);
  }

  #askFirst(entry: Entry): void {
    if (entry.asked.size > 0) return;
    const [first] = this.#options.threads();
    if (first !== undefined) this.#ask(entry, first);
  }

  #ask(entry: Entry, thread: number): void {
    if (entry.asked.has(thread)) return;
    entry.asked.add(thread);
    const port = entry.port === 0 ? entry.request.port : entry.port;
    const request = { ...entry.request, port };
    if (entry.held === null || entry.taker !== 0) {
      this.#options.post(thread, { type: 'listen', listener: entry.id, request, first: entry.port === 0 });
      return;
    }
    entry.taker = thread;
    this.#options.post(thread, { type: 'listen', listener: entry.id, request, first: false, held: entry.held.descriptor });
  }

  #leaveHeld(entry: Entry): void {
    entry.held?.close();
    entry.held = null;
    entry.taker = 0;
  }

  #check(entry: Entry): void {
    if (this.#options.threads().every((thread) => entry.settled.has(thread))) entry.resolve(entry.port);
  }
}
