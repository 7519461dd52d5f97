/** Appends to one file, off the event loop and in order. */
import { type FileHandle, open } from 'node:fs/promises';
import type { QueueGauge } from '../../util/queue-gauge.ts';
import { syncSemaphore } from '../../util/semaphore.ts';

/** Bytes that may wait for the disk, unless told otherwise. The owner stops handing in media beyond it: see `full`. */
export const MAX_UNWRITTEN_BYTES = 16 * 1024 * 1024;
/** Buffers the system takes in one call (IOV_MAX). */
const MAX_BUFFERS_PER_WRITE = 1024;
/** Interval of fsync, ms: the maximum that a power failure can lose. */
const SYNC_INTERVAL_MS = 5000;
const FILE_MODE = 0o644;

/** Path and callbacks. */
export interface FileSinkOptions {
  /** A function is asked once `prepare` is done. */
  readonly path: string | (() => string);
  /** Runs before the file is made. */
  readonly prepare?: () => Promise<void>;
  /** The file exists; `inode` stays the same when it is renamed. */
  readonly onMade?: (inode: string) => void;
  /** Called once, if the file cannot be made or written; later data is discarded. */
  readonly onError: (error: Error) => void;
  /** Bytes that may wait. */
  readonly limit?: number;
  /** Counts the waiting bytes. */
  readonly gauge?: QueueGauge;
}

/**
 * A new file, written at its end. The caller closes it. `write` never blocks and accepts any amount: check `full` first and drop
 * dispensable packets.
 */
export class FileSink {
  readonly #path: string | (() => string);
  readonly #limit: number;
  readonly #onError: (error: Error) => void;
  readonly #gauge: QueueGauge | null;
  readonly #opening: Promise<void>;
  #file: FileHandle | null = null;
  #made = false;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #accepted = 0;
  /** Bytes in the file, including the remains of a failed write. */
  #written = 0;
  /** Ends of the calls of `write` that are not wholly in the file. */
  readonly #ends: number[] = [];
  /** End of the last call that is wholly in the file. */
  #whole = 0;
  #pumping: Promise<void> | null = null;
  #syncing: Promise<void> | null = null;
  #syncedAt = performance.now();
  #error: Error | null = null;
  #closing: Promise<void> | null = null;
  #noting: Promise<void> | null = null;

  constructor({ path, prepare, onMade, onError, limit = MAX_UNWRITTEN_BYTES, gauge }: FileSinkOptions) {
    this.#path = path;
    this.#limit = limit;
    this.#onError = onError;
    this.#gauge = gauge ?? null;
    this.#opening = this.#open(prepare, onMade);
  }

  get path(): string {
    return typeof this.#path === 'string' ? this.#path : this.#path();
  }

  /** Bytes accepted so far, including waiting ones. */
  get bytes(): number {
    return this.#accepted;
  }

  /** More waits for the disk than should: drop until this is false again. */
  get full(): boolean {
    return this.#waitingBytes >= this.#limit;
  }

  /** The file is there, and it is this sink's. */
  get made(): boolean {
    return this.#made;
  }

  /** Reason of a failure. */
  get error(): Error | null {
    return this.#error;
  }

  /** Appends `chunks`. The first is copied, because containers write it again; the others must stay as they are. */
  write(chunks: readonly Uint8Array[]): void {
    if (this.#error !== null || this.#closing !== null) return;
    const before = this.#accepted;
    for (let index = 0; index < chunks.length; index += 1) {
      const chunk = chunks[index];
      if (chunk === undefined || chunk.length === 0) continue;
      this.#waiting.push(index === 0 ? new Uint8Array(chunk) : chunk);
      this.#waitingBytes += chunk.length;
      this.#accepted += chunk.length;
    }
    if (this.#accepted > before) this.#gauge?.came(this.#accepted - before);
    this.#ends.push(this.#accepted);
    this.#pumping ??= this.#pump();
  }

  /** Writes the rest, syncs and closes the file. Idempotent; never rejects: see `error`. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #open(prepare: FileSinkOptions['prepare'], onMade: FileSinkOptions['onMade']): Promise<void> {
    try {
      await prepare?.();
      this.#file = await open(this.path, 'wx', FILE_MODE);
      this.#made = true;
      if (onMade !== undefined) this.#noting = this.#file.stat({ bigint: true }).then(({ ino }) => onMade(String(ino)));
      // Waited for at the end only: writes must not wait for it.
      this.#noting?.catch(() => undefined);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #pump(): Promise<void> {
    await this.#opening;
    const file = this.#file;
    try {
      while (this.#waiting.length > 0 && this.#error === null && file !== null) {
        const batch = this.#waiting.splice(0, MAX_BUFFERS_PER_WRITE);
        await writeAll(file, batch, (bytes) => this.#wrote(bytes));
        this.#syncNow(file);
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#pumping = null;
  }

  #wrote(bytes: number): void {
    this.#written += bytes;
    this.#waitingBytes -= bytes;
    this.#gauge?.went(bytes);
    for (let end = this.#ends[0]; end !== undefined && end <= this.#written; end = this.#ends[0]) {
      this.#whole = end;
      this.#ends.shift();
    }
  }

  /** Runs beside the writes, so that a slow disk delays only the sync. */
  #syncNow(file: FileHandle): void {
    if (this.#syncing !== null || performance.now() - this.#syncedAt < SYNC_INTERVAL_MS) return;
    this.#syncedAt = performance.now();
    this.#syncing = syncSemaphore
      .take(() => file.datasync())
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#syncing = null;
      });
  }

  async #end(): Promise<void> {
    await this.#opening;
    await this.#pumping;
    await this.#syncing;
    await this.#noting?.catch((error: unknown) => this.#fail(error));
    const file = this.#file;
    this.#file = null;
    if (file === null) return;
    try {
      // A full disk takes part of a write: half a fragment or frame is useless, and its space is needed.
      if (this.#written > this.#whole) await file.truncate(this.#whole);
      if (this.#error === null) await syncSemaphore.take(() => file.datasync());
    } catch (error) {
      this.#fail(error);
    }
    await file.close().catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    if (this.#error !== null) return;
    this.#error = error instanceof Error ? error : new Error(String(error));
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#gauge?.dropAll();
    this.#onError(this.#error);
  }
}

/** Writes all `chunks`, even if the system accepts them in small pieces; `wrote` gets the size of each. */
async function writeAll(file: FileHandle, chunks: Uint8Array[], wrote: (bytes: number) => void): Promise<void> {
  let rest = chunks;
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest);
    if (bytesWritten === 0) throw new Error('the file system took no bytes');
    wrote(bytesWritten);
    rest = remaining(rest, bytesWritten);
  }
}

function remaining(chunks: Uint8Array[], written: number): Uint8Array[] {
  let left = written;
  let index = 0;
  for (let chunk = chunks[0]; chunk !== undefined && left >= chunk.length; chunk = chunks[index]) {
    left -= chunk.length;
    index += 1;
  }
  const [first, ...others] = chunks.slice(index);
  return first === undefined ? [] : [first.subarray(left), ...others];
}
