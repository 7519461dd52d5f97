/** Which temporary file belongs to which recording: what the next start finishes when this process cannot. */
import { link, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DocumentFolder, StoredDocument } from '../../state/document-folder.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Logger } from '../../util/logger.ts';
import { finalise } from './finalise.ts';
import type { RecordInfoFiles } from './record-info-file.ts';
import { containerOf, expandPath, numbered, type PathValues } from './record-path.ts';

/** Names tried beside a target that exists already. */
const MOST_NUMBERS = 10_000;

/** Everything needed to finish a file without the process that began it. Paths are absolute templates with macros. */
export interface RecordingNote {
  /** The file that is being written. */
  readonly temporary: string;
  readonly filePath: string;
  readonly infoPath: string;
  readonly values: Omit<PathValues, 'endTime'>;
  readonly metadata: string;
  /** ms since the epoch. */
  readonly createdTime: number;
  /** Where the file went before it could be finished; null as long as it is the temporary one. */
  readonly moved: string | null;
}

/** How a recording ended. */
export interface RecordingEnd {
  /** ms since the epoch. */
  readonly finishTime: number;
  /** ms. */
  readonly recordTime: number;
  readonly lastSequence: boolean;
}

/** A finished file; `path` is null when nothing was in it and it was removed. */
export interface FinishedRecording {
  readonly path: string | null;
  readonly bytes: number;
}

/** The recordings that are open, on disk. */
export class RecordJournal {
  readonly #documents: DocumentFolder;
  readonly #info: RecordInfoFiles;
  readonly #logger: Logger;

  constructor(documents: DocumentFolder, info: RecordInfoFiles, logger: Logger) {
    this.#documents = documents;
    this.#info = info;
    this.#logger = logger;
  }

  /** Resolves when the note is on disk: from then on the file will be finished, whatever happens to this process. */
  open(key: string, note: RecordingNote): Promise<void> {
    return this.#documents.save(key, note);
  }

  /**
   * Finishes the file of `note`: finalises MP4, gives it its name without replacing another file, tells it in the
   * information file. What fails is logged, and stays in the journal for the next start when that can help.
   */
  async finish(key: string, note: RecordingNote, end: RecordingEnd, folders: AllowedFolders): Promise<FinishedRecording> {
    const logger = this.#logger.child({ recording: note.values.id, file: note.moved ?? note.temporary });
    try {
      return await this.#finish(key, note, end, { folders, logger });
    } catch (error) {
      logger.error({ err: error }, `recording could not be given its name; the next start tries again: ${messageOf(error)}`);
      return { path: note.moved ?? note.temporary, bytes: 0 };
    }
  }

  /** What the last process left open. Call once, before anything is opened. */
  load(): Promise<StoredDocument[]> {
    return this.#documents.load();
  }

  /** Finishes what `load` gave, one after the other. Never rejects. */
  async recover(left: readonly StoredDocument[], folders: AllowedFolders): Promise<void> {
    for (const { key, value } of left) {
      if (!isNote(value)) {
        await this.#documents.setAside(key, 'it does not describe a recording');
        continue;
      }
      const file = await stat(value.moved ?? value.temporary).catch(() => null);
      if (file === null) {
        // It was renamed just before the end, or never made.
        await this.#forget(key);
        continue;
      }
      const finishTime = Math.round(file.mtimeMs);
      const recordTime = Math.max(0, finishTime - value.values.startTime);
      const { path, bytes } = await this.finish(key, value, { finishTime, recordTime, lastSequence: true }, folders);
      this.#logger.info(
        { recording: value.values.id, file: path, bytes },
        `recording of the last run was finished: ${path ?? 'it was empty'}`,
      );
    }
  }

  /** A note that stays is looked at again at the next start. */
  async #forget(key: string): Promise<void> {
    await this.#documents.remove(key).catch((error: unknown) => this.#logger.warn({ err: error, key }, 'note of a recording stays behind'));
  }

  async #finish(
    key: string,
    note: RecordingNote,
    end: RecordingEnd,
    { folders, logger }: { readonly folders: AllowedFolders; readonly logger: Logger },
  ): Promise<FinishedRecording> {
    const present = note.moved ?? note.temporary;
    if (!(await exists(present))) {
      // It could not even be made.
      await this.#documents.remove(key);
      return { path: null, bytes: 0 };
    }
    const values = { ...note.values, endTime: end.finishTime };
    const target = expandPath(note.filePath, values);
    const state = await this.#complete(present, containerOf(target), logger);
    if (state === 'empty') {
      await rm(present, { force: true });
      await this.#documents.remove(key);
      return { path: null, bytes: 0 };
    }
    const path = note.moved ?? (await place(present, target, folders));
    const { size } = await stat(path);
    if (note.moved === null) await this.#tell(note, end, { path, size, infoPath: expandPath(note.infoPath, values), folders, logger });
    if (state === 'complete') await this.#documents.remove(key);
    else await this.#documents.save(key, { ...note, moved: path });
    return { path, bytes: size };
  }

  /** A fragmented file that could not be finalised is kept as it is: it plays. */
  async #complete(path: string, container: string, logger: Logger): Promise<'complete' | 'fragmented' | 'empty'> {
    if (container !== 'mp4') return (await stat(path)).size === 0 ? 'empty' : 'complete';
    if ((await stat(path)).size === 0) return 'empty';
    try {
      const { outcome, truncated } = await finalise(path);
      if (truncated > 0) logger.warn({ bytes: truncated }, `recording ended within a fragment: ${truncated} bytes of it were cut off`);
      return outcome === 'empty' ? 'empty' : 'complete';
    } catch (error) {
      logger.error({ err: error }, `recording stays fragmented, it could not be finalised: ${messageOf(error)}`);
      return 'fragmented';
    }
  }

  async #tell(
    note: RecordingNote,
    end: RecordingEnd,
    about: {
      readonly path: string;
      readonly size: number;
      readonly infoPath: string;
      readonly folders: AllowedFolders;
      readonly logger: Logger;
    },
  ): Promise<void> {
    const { path, size, infoPath, folders, logger } = about;
    const { transactionId, id, vhost, app, stream, sequence, startTime } = note.values;
    try {
      await folders.makeFolder(dirname(infoPath));
      await this.#info.append(infoPath, {
        ...{ transactionId, id, metadata: note.metadata, vhost, app, stream, filePath: path },
        ...{ recordBytes: size, recordTime: end.recordTime, sequence, lastSequence: end.lastSequence },
        ...{ createdTime: note.createdTime, startTime, finishTime: end.finishTime },
      });
    } catch (error) {
      logger.error({ err: error, info: infoPath }, `information file of the recording could not be written: ${messageOf(error)}`);
    }
  }
}

/** Gives `from` the name `target`, or one with a number when that is taken, and returns it. */
async function place(from: string, target: string, folders: AllowedFolders): Promise<string> {
  await folders.makeFolder(dirname(target));
  for (let number = 0; number < MOST_NUMBERS; number += 1) {
    const path = number === 0 ? target : numbered(target, number);
    try {
      await link(from, path);
      await unlink(from);
      return path;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST') {
        if (!(await isSameFile(from, path))) continue;
        // The last process had come as far as the second name.
        await unlink(from);
        return path;
      }
      if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EMLINK') throw error;
      // A file system without hard links.
      if (await exists(path)) continue;
      await rename(from, path);
      return path;
    }
  }
  throw new Error(`${target} and ${MOST_NUMBERS} names beside it are taken`);
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(one), stat(other)]);
  return a.ino === b.ino && a.dev === b.dev;
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

function isNote(value: unknown): value is RecordingNote {
  if (typeof value !== 'object' || value === null) return false;
  const { temporary, filePath, infoPath, values, metadata, createdTime, moved } = value as Record<string, unknown>;
  const texts = [temporary, filePath, infoPath, metadata].every((text) => typeof text === 'string');
  return (
    texts &&
    typeof values === 'object' &&
    values !== null &&
    typeof createdTime === 'number' &&
    (moved === null || typeof moved === 'string')
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
