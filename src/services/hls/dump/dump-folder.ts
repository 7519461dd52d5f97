/** Writes the files of one dump, one after the other. Pauses while the disk refuses writes, and ends after any other failure. */
import { constants } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskRetry } from '../../../core/tasks/disk-retry.ts';
import { writeFileAtomic } from '../../../state/atomic-file.ts';
import type { Clock } from '../../../util/clock.ts';
import { hasRoom } from '../../../util/disk-space.ts';
import { syncSemaphore } from '../../../util/semaphore.ts';

/** Maximum of segment bytes that wait for the disk: with more, the dump fails, because the disk is too slow. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Faults that may pass: no space, a full quota, a read-only file system, an I/O error. */
const PASSING: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'];
/** Overwrites a file of an earlier dump, but does not follow a link in its place. */
const NEW_BYTES = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/** The folder, and the callbacks about its state. */
export interface DumpFolderOptions {
  /** Absolute. */
  readonly path: string;
  readonly clock: Clock;
  /**
   * The disk refuses writes for now: files that cannot wait are missed until it accepts them again. The returned promise must not reject.
   */
  readonly onPaused?: (error: unknown) => Promise<void> | void;
  readonly onResumed?: () => void;
  /** A file was written for the first time. */
  readonly onWritten?: (path: string) => void;
  /** The dump has failed and starts nothing new. Called once. */
  readonly onFailed: (error: unknown) => void;
  /** Called once, when the writes in flight at the failure have ended; `settled` awaits the returned promise. */
  readonly onFailureSettled: () => Promise<void> | void;
}

/** Reports the first failure only and ignores everything after it. Needs no closing: await `settled`. */
export class DumpFolder {
  readonly #options: DumpFolderOptions;
  /** Files that were written at least once. */
  readonly #written = new Set<string>();
  readonly #retry: DiskRetry;
  #paused = false;
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #failed = false;

  constructor(options: DumpFolderOptions) {
    this.#options = options;
    this.#retry = new DiskRetry(options.clock);
  }

  /** Settles when everything so far is written or has failed. Never rejects. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /**
   * Runs `work` after all earlier work; `bytes` of a segment wait with it. With `missed`, a fault that may pass does not end the dump:
   * `missed` is called for this work and for later work, until the disk accepts files again.
   */
  enqueue(work: () => Promise<void>, bytes = 0, missed: (() => void) | null = null): void {
    if (this.#failed) return;
    this.#waiting += bytes;
    if (this.#waiting > MAX_WAITING_BYTES) {
      this.#fail(new Error(`the disk is too slow: more than ${MAX_WAITING_BYTES} bytes wait for it`));
      // The disk may be in the middle of a file.
      this.#tail = this.#tail.then(() => this.#options.onFailureSettled());
      return;
    }
    this.#tail = this.#tail.then(async () => {
      if (this.#failed) return;
      if (this.#paused && missed !== null && !this.#retry.isDue(() => hasRoom(this.#options.path))) {
        missed();
        this.#waiting -= bytes;
        return;
      }
      try {
        await work();
        if (this.#paused && missed !== null) this.#resume();
      } catch (error) {
        if (missed !== null && PASSING.includes((error as NodeJS.ErrnoException | null)?.code)) {
          await this.#pause(error);
          missed();
          this.#waiting -= bytes;
          return;
        }
        // The disk was too slow before it failed, which was reported.
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

  /** Discards the list of written files: the dump has ended. */
  forget(): void {
    this.#written.clear();
  }

  /** Writes a file once. It is on disk when this resolves, so no playlist names a file that a power failure could lose. */
  async write(name: string, bytes: Uint8Array): Promise<void> {
    const path = this.#pathOf(name);
    try {
      await syncSemaphore.take(() => writeFile(path, bytes, { flush: true, flag: NEW_BYTES }));
    } catch (error) {
      // A partial segment is useless, and its space is needed. A link of another user is left alone.
      if (PASSING.includes((error as NodeJS.ErrnoException).code)) await rm(path, { force: true }).catch(() => undefined);
      throw error;
    }
    this.#note(name);
  }

  /** Replaces a file: readers find the old or the new text. */
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

  async #pause(error: unknown): Promise<void> {
    this.#retry.failed();
    if (this.#paused) return;
    this.#paused = true;
    await this.#options.onPaused?.(error);
  }

  #resume(): void {
    this.#paused = false;
    this.#options.onResumed?.();
  }

  #fail(error: unknown): void {
    this.#failed = true;
    this.#options.onFailed(error);
  }
}
