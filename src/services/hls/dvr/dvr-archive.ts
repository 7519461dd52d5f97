/** Files of segments that left memory but that viewers can still rewind to. */
import { rm } from 'node:fs/promises';
import type { RunFolder } from './run-folder.ts';

/** Maximum of segments that wait for the disk: further segments are lost. */
const MAX_WRITES = 16;

/** The files of one stream, in a folder that `close` removes. File operations run one after the other. */
export class DvrArchive {
  readonly #folder: RunFolder;
  #waiting = 0;
  #chain: Promise<void> = Promise.resolve();
  #closed = false;
  #failures = 0;

  /** The archive owns `folder` from here on. */
  constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  /** Failed writes and removals of files, and segments lost because the disk could not keep up. */
  get failures(): number {
    return this.#failures;
  }

  /** Settles when all earlier operations are done. */
  get settled(): Promise<void> {
    return this.#chain;
  }

  /**
   * Writes `read()` to a file and calls `done` with its path, or with null if that failed or `read` returned null because the bytes are no
   * longer needed. Nothing is called after `close`. Returns false, and calls nothing, if too many writes wait.
   */
  write(name: string, read: () => readonly Uint8Array[] | null, done: (path: string | null) => void): boolean {
    if (this.#waiting >= MAX_WRITES) {
      this.#failures += 1;
      this.#folder.complain(new Error('the disk cannot keep up'));
      return false;
    }
    this.#waiting += 1;
    this.#enqueue(async () => {
      const path = this.#closed ? null : await this.#writeFile(name, read());
      this.#waiting -= 1;
      if (!this.#closed) done(path);
    });
    return true;
  }

  remove(path: string): void {
    this.#enqueue(() => rm(path, { force: true }));
  }

  /** Removes all files. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#enqueue(() => this.#folder.remove());
  }

  async #writeFile(name: string, bytes: readonly Uint8Array[] | null): Promise<string | null> {
    if (bytes === null) return null;
    try {
      return await this.#folder.write(name, bytes);
    } catch {
      this.#failures += 1;
      return null;
    }
  }

  #enqueue(operation: () => Promise<void>): void {
    this.#chain = this.#chain.then(operation).catch(() => {
      this.#failures += 1;
    });
  }
}
