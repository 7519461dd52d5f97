/** Items that are files. */
import type { Logger } from '../util/logger.ts';
import { OpenFile } from './file-bytes.ts';
import type { ItemSource } from './item-source.ts';
import { type FileEvent, type MediaFile, openMediaFile } from './media-file.ts';
import type { MediaRoot } from './media-root.ts';
import { WindowBytes } from './window-bytes.ts';

/** A file below the media root, from a position on. */
export class FileSource implements ItemSource {
  readonly live = false;
  readonly start: number;
  readonly #file: MediaFile;
  readonly #close: () => void;

  private constructor(file: MediaFile, start: number, close: () => void) {
    this.#file = file;
    this.start = start;
    this.#close = close;
  }

  /** Rejects when the file lies elsewhere, cannot be opened or is none that can be played. `position`: ms. */
  static async open(
    url: string,
    { root, position, signal, logger }: { root: MediaRoot; position: number; signal: AbortSignal; logger: Logger },
  ): Promise<FileSource> {
    const bytes = await root.open(url);
    const close = (): void => void bytes.close();
    try {
      // A disk that hung may answer when nobody waits any more.
      signal.throwIfAborted();
      const file = await openMediaFile(new WindowBytes(bytes), logger);
      const start = await file.start();
      if (position > 0) await file.seek(position / 1000);
      else file.rewind();
      signal.throwIfAborted();
      return new FileSource(file, start, close);
    } catch (error) {
      close();
      throw error;
    }
  }

  next(): Promise<FileEvent | null> {
    return this.#file.next();
  }

  close(): void {
    this.#close();
  }
}

/** Milliseconds of what the file at `path` shows. Rejects when it cannot be read, or does not tell. */
export async function lengthOf(path: string, logger: Logger): Promise<number> {
  const bytes = await OpenFile.open(path);
  try {
    return await lengthOfBytes(bytes, logger);
  } finally {
    await bytes.close();
  }
}

/** The same for an open file, which stays the caller's. */
export async function lengthOfBytes(bytes: OpenFile, logger: Logger): Promise<number> {
  const file = await openMediaFile(new WindowBytes(bytes), logger);
  const seconds = await file.length();
  if (seconds === null) throw new Error('the file does not tell how long it is');
  return seconds * 1000;
}
