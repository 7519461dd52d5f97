/** Writes the files of one dump one after the other, and nothing more after a failure. */
import { constants } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../state/atomic-file.ts';
import { syncTurns } from '../../util/turns.ts';

/** Bytes of segments that may wait for the disk; a dump that needs more ends with an error, for it may not have holes. */
const WAITING_BYTES = 64 * 1024 * 1024;
/** A file of an earlier dump is overwritten; a link that somebody put in its place is not followed. */
const NEW_BYTES = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

export interface DumpFolderOptions {
  /** Absolute. */
  readonly path: string;
  /** A file was written for the first time. */
  readonly onWritten?: (path: string) => void;
  /** Nothing more is begun. Called once. */
  readonly onFailed: (error: unknown) => void;
  /** What was under way then has ended. Called once; what it returns is awaited by `settled`. */
  readonly onFailureSettled: () => Promise<void> | void;
}

export class DumpFolder {
  readonly #options: DumpFolderOptions;
  /** Files that were written at least once. */
  readonly #written = new Set<string>();
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #failed = false;

  constructor(options: DumpFolderOptions) {
    this.#options = options;
  }

  /** Settles when everything handed over so far is on disk or has failed. Never rejects. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /** Runs `work` behind everything before it; `bytes` wait with it. */
  enqueue(work: () => Promise<void>, bytes = 0): void {
    if (this.#failed) return;
    this.#waiting += bytes;
    if (this.#waiting > WAITING_BYTES) {
      this.#fail(new Error(`the disk is too slow: more than ${WAITING_BYTES} bytes wait for it`));
      // It may be in the middle of a file.
      this.#tail = this.#tail.then(() => this.#options.onFailureSettled());
      return;
    }
    this.#tail = this.#tail.then(async () => {
      if (this.#failed) return;
      try {
        await work();
      } catch (error) {
        // The disk was too slow before it failed: that has been told.
        if (this.#failed) return;
        this.#fail(error);
        await this.#options.onFailureSettled();
      }
      this.#waiting -= bytes;
    });
  }

  /** True once `write` or `replace` has made the file. */
  has(name: string): boolean {
    return this.#written.has(name);
  }

  /** Forgets the names of what was written: nothing more will be. */
  forget(): void {
    this.#written.clear();
  }

  /** A file that is written once. On disk when it resolves, so that no playlist names what a loss of power takes. */
  async write(name: string, bytes: Uint8Array): Promise<void> {
    await syncTurns.take(() => writeFile(this.#pathOf(name), bytes, { flush: true, flag: NEW_BYTES }));
    this.#note(name);
  }

  /** A file that changes: readers find the old or the new text. */
  async replace(name: string, text: string): Promise<void> {
    await writeFileAtomic(this.#pathOf(name), text);
    this.#note(name);
  }

  #pathOf(name: string): string {
    return join(this.#options.path, name);
  }

  #note(name: string): void {
    if (this.#written.has(name)) return;
    this.#written.add(name);
    this.#options.onWritten?.(this.#pathOf(name));
  }

  #fail(error: unknown): void {
    this.#failed = true;
    this.#options.onFailed(error);
  }
}
