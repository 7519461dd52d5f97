/** Reads parts of a file. */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, readlink } from 'node:fs/promises';
import type { AllowedFolders } from '../util/allowed-folders.ts';

/** Bytes anywhere in a file. */
export interface FileBytes {
  readonly size: number;
  /** Fresh memory with exactly `length` bytes. Rejects when the file is shorter, or closed. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** Owned by its opener, which calls `close`. The size is that at the opening: a file that grows meanwhile is read no further. */
export class OpenFile implements FileBytes {
  readonly size: number;
  /** Another one when the file may have been written since. */
  readonly identity: string;
  readonly #handle: FileHandle;
  /** Bytes read since the file was opened. */
  bytesRead = 0;
  readonly #closing = new AbortController();

  private constructor(handle: FileHandle, { dev, ino, size, mtimeNs }: BigIntStats) {
    this.#handle = handle;
    this.size = Number(size);
    this.identity = [dev, ino, size, mtimeNs].join(' ');
  }

  /**
   * Rejects if the file cannot be opened or is not a regular file. With `folders` also if it lies outside them: the target of a path may
   * have changed since it was checked.
   */
  static async open(path: string, folders?: AllowedFolders): Promise<OpenFile> {
    // A pipe would wait here for its writer for ever.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await handle.stat({ bigint: true });
      if (!status.isFile()) throw new Error(`${path} is not a file`);
      await folders?.checkLinks(await placeOf(handle, path));
      return new OpenFile(handle, status);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** For processes that inherit it. They use a place in the file of their own, which `read` does not. */
  get descriptor(): number {
    return this.#handle.fd;
  }

  /** Aborted by `close`. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const buffer = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#handle.read(buffer, done, length - done, offset + done);
      if (bytesRead === 0) throw new Error(`the file ends at byte ${offset + done}, ${length - done} more were expected`);
      done += bytesRead;
      this.bytesRead += bytesRead;
    }
    return buffer;
  }

  /** Reads in progress are finished first. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#handle.close().catch(() => undefined);
  }
}

/** Where an open file lies; `path` on systems that do not tell. */
async function placeOf({ fd }: FileHandle, path: string): Promise<string> {
  try {
    return await readlink(`/proc/self/fd/${fd}`);
  } catch {
    return path;
  }
}
