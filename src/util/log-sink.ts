/** The output of the log: a descriptor that may be slow, full or gone, none of which may hold up the server or end it. */
import fs from 'node:fs';

/** Limit of queued text, characters; a line beyond it is dropped and counted. */
export const MAX_QUEUED = 1_048_576;
/** Limit of one write, characters. */
const MAX_WRITTEN = 65_536;
/** Interval of attempts while the reader is behind, ms. */
const BUSY_MS = 100;
/** Interval of attempts while the disk is full or the reader is gone, ms. */
const FAULT_MS = 1000;
/** Time for queued lines when the process ends, ms. */
const END_MS = 300;
const NAP_MS = 10;
/** Waiting on it is a sleep: nothing ever notifies it. */
const NEVER_WOKEN = new Int32Array(new SharedArrayBuffer(4));

/** The functions of `node:fs` that the sink uses. */
export interface SinkFiles {
  write(descriptor: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void): void;
  writeSync(descriptor: number, bytes: Uint8Array): number;
}

/** Where a log sink writes. */
export interface LogSinkOptions {
  readonly descriptor: number;
  /**
   * `never`: a write that would have to wait fails with EAGAIN, so it is made at once. `file`: a write may wait for a disk, so it is made
   * on a thread of the pool.
   */
  readonly waits: 'never' | 'file';
  /** Lines were dropped, and there is room again: the callback logs their number. */
  readonly onDropped: (lines: number) => void;
  /** Default: the real ones. */
  readonly files?: SinkFiles;
}

/**
 * Writes lines in order, one write at a time, and holds `MAX_QUEUED` characters while the descriptor accepts none. Never throws: failed
 * writes are retried, and dropped lines are reported as a number when the descriptor works again. The owner calls `close`.
 */
export class LogSink {
  readonly #options: LogSinkOptions;
  readonly #files: SinkFiles;
  #lines: string[] = [];
  #queued = 0;
  /** The rest of a partial write, which must come before all other lines. */
  #begun: Uint8Array | null = null;
  /** A write is in progress; it is followed by the lines that arrive meanwhile. */
  #isWriting = false;
  /** A thread of the pool is writing `#begun`. */
  #isAway = false;
  #retry: NodeJS.Timeout | null = null;
  #dropped = 0;
  #closed = false;
  #onIdle: (() => void) | null = null;

  constructor(options: LogSinkOptions) {
    this.#options = options;
    this.#files = options.files ?? fs;
  }

  /** Dropped lines that are not reported yet. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes `line`, which ends with its newline. Never throws, never waits. */
  write(line: string): void {
    if (this.#closed || this.#queued + line.length > MAX_QUEUED) {
      this.#dropped += 1;
      return;
    }
    this.#lines.push(line);
    this.#queued += line.length;
    if (!this.#isWriting && this.#retry === null) this.#pump();
  }

  /** Resolves when nothing is queued, at the latest after `deadlineMs`. */
  async idle(deadlineMs: number): Promise<void> {
    if (this.#isEmpty) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, deadlineMs);
    this.#onIdle = resolve;
    await promise;
    clearTimeout(timer);
  }

  /**
   * Writes the queue before it returns, as far as the descriptor takes it within 0.3 s; later lines are dropped. For the end of the
   * process. Idempotent.
   */
  close(): void {
    if (this.#closed) return;
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#writeRest();
    this.#closed = true;
  }

  get #isEmpty(): boolean {
    return this.#begun === null && this.#lines.length === 0;
  }

  #pump(): void {
    this.#isWriting = true;
    for (let bytes = this.#next(); bytes !== null; bytes = this.#next()) {
      if (this.#options.waits === 'file') {
        this.#isAway = true;
        this.#files.write(this.#options.descriptor, bytes, (error, written) => this.#onWritten(error, written));
        return;
      }
      try {
        this.#took(this.#files.writeSync(this.#options.descriptor, bytes));
      } catch (error) {
        this.#tryLater(error);
        return;
      }
    }
    this.#isWriting = false;
    this.#onIdle?.();
    this.#onIdle = null;
  }

  #onWritten(error: Error | null, written: number): void {
    this.#isAway = false;
    if (error === null) this.#took(written);
    if (this.#closed) return;
    if (error === null) this.#pump();
    else this.#tryLater(error);
  }

  /** The rest of a partial write, or the next lines; null if there are none. */
  #next(): Uint8Array | null {
    if (this.#begun !== null) return this.#begun;
    if (this.#lines.length === 0) this.#tellDropped();
    if (this.#lines.length === 0) return null;
    let length = 0;
    let count = 0;
    while (count < this.#lines.length && length < MAX_WRITTEN) {
      length += this.#lines[count]?.length ?? 0;
      count += 1;
    }
    this.#begun = Buffer.from(this.#lines.splice(0, count).join(''));
    this.#queued -= length;
    return this.#begun;
  }

  #took(written: number): void {
    const rest = this.#begun?.subarray(written);
    this.#begun = rest === undefined || rest.length === 0 ? null : rest;
  }

  #tryLater(error: unknown): void {
    this.#isWriting = false;
    const wait = (error as NodeJS.ErrnoException).code === 'EAGAIN' ? BUSY_MS : FAULT_MS;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.#pump();
    }, wait).unref();
  }

  /** The callback adds a line about the dropped lines, which is written next. */
  #tellDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.#options.onDropped(dropped);
  }

  #writeRest(): void {
    // A thread of the pool finishes its write, because the process waits for these threads at its end.
    if (this.#isAway) this.#begun = null;
    this.#isAway = false;
    this.#isWriting = true;
    const deadline = performance.now() + END_MS;
    for (let bytes = this.#next(); bytes !== null; bytes = this.#next()) {
      try {
        this.#took(this.#files.writeSync(this.#options.descriptor, bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > deadline) return;
        Atomics.wait(NEVER_WOKEN, 0, 0, NAP_MS);
      }
    }
  }
}
