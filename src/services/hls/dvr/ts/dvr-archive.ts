/** Files of segments that left memory but can still be rewound to. */
import { rm } from 'node:fs/promises';
import type { RunFolder } from '../run-folder.ts';

/** Segments waiting for the disk; more means it cannot keep up. */
const MAX_WRITES = 16;

/** The files of one stream, in a directory of this run that goes when it is closed. One file operation after the other. */
export class DvrArchive {
  readonly #folder: RunFolder;
  #waiting = 0;
  #chain: Promise<void> = Promise.resolve();
  #closed = false;
  #failures = 0;

  constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  /** Segments lost because the disk failed or could not keep up. */
  get failures(): number {
    return this.#failures;
  }

  /** Settles when everything asked for so far is done. */
  get settled(): Promise<void> {
    return this.#chain;
  }

  /** Writes `read()` to a file and calls `done` with its path, or with null when that failed. Nothing is called after `close`. */
  write(name: string, read: () => readonly Uint8Array[], done: (path: string | null) => void): void {
    if (this.#waiting >= MAX_WRITES) {
      this.#failures += 1;
      this.#folder.complain(new Error('the disk cannot keep up'));
      done(null);
      return;
    }
    this.#waiting += 1;
    this.#enqueue(async () => {
      this.#waiting -= 1;
      if (this.#closed) return;
      const path = await this.#writeFile(name, read());
      if (!this.#closed) done(path);
    });
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

  async #writeFile(name: string, bytes: readonly Uint8Array[]): Promise<string | null> {
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
