/** Items that are files. */

import type { FailedAttempts } from '../util/failed-attempts.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { OpenFile } from './file-bytes.ts';
import type { ItemOpening, ItemSource } from './item-source.ts';
import type { FfmpegFiles, FileEvent, MediaFile } from './media-file.ts';
import type { MediaRoot } from './media-root.ts';
import { openMediaFile } from './open-media-file.ts';
import { type ItemSubtitles, readSidecars } from './sidecars.ts';
import { WindowBytes } from './window-bytes.ts';

/** A reader that has read this much without reaching the start position stops when it is no longer needed. */
const MUCH_BYTES = 8_388_608;

const TOO_LONG = 'it takes too long to find where it is to be joined';

/** How files are found and read. */
export interface FileSourceOptions extends ItemOpening {
  readonly root: MediaRoot;
  /** Reads files that are neither MP4 nor MPEG-TS; null: such files are not supported. */
  readonly foreign: FfmpegFiles | null;
  /** Languages of subtitle files to look for beside it; default: none. */
  readonly languages?: readonly string[];
  readonly logger: Logger;
  /** Files that could not be opened, by their identities; default: each is tried every time. */
  readonly attempts?: FailedAttempts;
}

/** A file below the media root, from a position on. */
export class FileSource implements ItemSource {
  readonly live = false;
  readonly start: number;
  readonly subtitles: readonly ItemSubtitles[];
  readonly #file: MediaFile;
  readonly #close: () => void;

  private constructor(file: MediaFile, { start, subtitles }: Pick<FileSource, 'start' | 'subtitles'>, close: () => void) {
    this.subtitles = subtitles;
    this.#file = file;
    this.start = start;
    this.#close = close;
  }

  /** Rejects when the file lies elsewhere, cannot be opened or is none that can be played. */
  static async open(
    url: string,
    { root, foreign, position, signal, onSlow, logger, languages = [], attempts }: FileSourceOptions,
  ): Promise<FileSource> {
    const bytes = await root.open(url);
    const close = (): void => void bytes.close();
    // A search in the file ends as well.
    signal.addEventListener('abort', close, { once: true });
    try {
      // A disk that hung may answer after the caller has given up.
      signal.throwIfAborted();
      const known = attempts?.reasonOf(bytes.identity) ?? null;
      if (known !== null) throw new KnownFault(known);
      const file = await openAnyFile(bytes, { foreign, logger, onSlow });
      signal.throwIfAborted();
      const start = await file.start();
      if (position > 0) await file.seek(position / 1000);
      else file.rewind();
      const subtitles = languages.length > 0 ? await readSidecars(root, url, { languages, logger }) : [];
      signal.throwIfAborted();
      attempts?.succeeded(bytes.identity);
      return new FileSource(file, { start, subtitles }, close);
    } catch (error) {
      close();
      if (!signal.aborted && !(error instanceof KnownFault)) attempts?.failed(bytes.identity, messageOf(error));
      // Not a disk that hung, which may answer soon: the next try would read all of that again.
      else if (bytes.bytesRead >= MUCH_BYTES) attempts?.failed(bytes.identity, TOO_LONG);
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

/** The file was tried a moment ago, and is the same. */
class KnownFault extends Error {
  override readonly name = 'KnownFault';
}

/** Presentable duration of an open file, ms; the caller keeps the file. Rejects if it is unreadable, or the duration unknown. */
export async function lengthOfBytes(bytes: OpenFile, logger: Logger, foreign: FfmpegFiles | null = null): Promise<number> {
  const file = await openAnyFile(bytes, { foreign, logger, onSlow: () => undefined });
  const seconds = await file.length();
  if (seconds === null) throw new Error('the file has no duration');
  return seconds * 1000;
}

async function openAnyFile(
  bytes: OpenFile,
  { foreign, logger, onSlow }: Pick<FileSourceOptions, 'foreign' | 'logger' | 'onSlow'>,
): Promise<MediaFile> {
  if (foreign === null) return await openMediaFile(new WindowBytes(bytes), logger);
  return await openMediaFile(new WindowBytes(bytes), logger, async () => {
    onSlow();
    return await foreign.openFile(bytes, logger);
  });
}
