/** Which temporary file belongs to which recording: what the next start finishes when this process cannot. */
import { link, rename, rm, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DocumentFolder } from '../../state/document-folder.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Logger } from '../../util/logger.ts';
import { finalise } from './finalise.ts';
import type { RecordContainerName } from './record-container.ts';
import type { RecordInfoFiles } from './record-info-file.ts';
import { containerOf, expandPath, numbered, type PathValues } from './record-path.ts';
import { tsMilliseconds } from './ts-length.ts';

/** Names tried beside a target that exists already. */
const MOST_NUMBERS = 10_000;

/** Everything needed to finish a file without the process that began it. Paths are absolute templates with macros. */
export interface RecordingNote {
  /** Key of the task; its totals grow with what a next start finishes. */
  readonly task: string;
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
  /** Media that was handed over, ms; null when the file itself must tell what of it is there. */
  readonly recordTime: number | null;
  readonly lastSequence: boolean;
}

/** A file that has ended. */
export interface FinishedRecording {
  /** `finished`: it has its name; `empty`: nothing was in it and it was removed; `left`: the next start tries again. */
  readonly outcome: 'finished' | 'empty' | 'left';
  readonly path: string | null;
  readonly bytes: number;
  /** Media in it, ms. */
  readonly durationMs: number;
}

/** A recording that the last process left open. */
export interface OpenRecording {
  readonly key: string;
  readonly note: RecordingNote;
}

const EMPTY: FinishedRecording = { outcome: 'empty', path: null, bytes: 0, durationMs: 0 };

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

  /**
   * Resolves when the note is there: from then on the file will be finished, whatever happens to this process. Media
   * waits in memory until then, so the disk itself is not waited for.
   */
  open(key: string, note: RecordingNote): Promise<void> {
    return this.#documents.saveSoon(key, note);
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
      return { outcome: 'left', path: note.moved ?? note.temporary, bytes: 0, durationMs: 0 };
    }
  }

  /** What the last process left open. Call once, before anything is opened. */
  async load(): Promise<OpenRecording[]> {
    const open: OpenRecording[] = [];
    for (const { key, value } of await this.#documents.load()) {
      // Notes of earlier versions name no task: their files are finished all the same.
      if (isNote(value)) open.push({ key, note: { ...value, task: value.task ?? '' } });
      else await this.#documents.setAside(key, 'it does not describe a recording');
    }
    return open;
  }

  /** Finishes what `load` gave, one after the other; `onFinished` is told of each that has its name now. Never rejects. */
  async recover(
    left: readonly OpenRecording[],
    folders: AllowedFolders,
    onFinished: (note: RecordingNote, file: FinishedRecording) => Promise<void>,
  ): Promise<void> {
    const newest = new Map<string, number>();
    for (const { note } of left)
      newest.set(note.values.transactionId, Math.max(newest.get(note.values.transactionId) ?? 0, note.values.sequence));
    for (const { key, note } of left) {
      const present = await stat(note.moved ?? note.temporary).catch(() => null);
      if (present === null) {
        // It was renamed just before the end, or never made.
        await this.#forget(key);
        continue;
      }
      const lastSequence = note.values.sequence === newest.get(note.values.transactionId);
      const end = { finishTime: Math.round(present.mtimeMs), recordTime: null, lastSequence };
      const file = await this.finish(key, note, end, folders);
      this.#logger.info(
        { recording: note.values.id, file: file.path, bytes: file.bytes },
        `recording of the last run was finished: ${file.path ?? 'it was empty'}`,
      );
      // One that only had to be made plain was counted when it got its name.
      if (file.outcome === 'finished' && note.moved === null) await onFinished(note, file);
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
      return EMPTY;
    }
    const values = { ...note.values, endTime: end.finishTime };
    const target = expandPath(note.filePath, values);
    const { state, durationMs } = await this.#complete(present, containerOf(target), { measured: end.recordTime === null, logger });
    if (state === 'empty') {
      await rm(present, { force: true });
      await this.#documents.remove(key);
      return EMPTY;
    }
    const recordTime = Math.round(end.recordTime ?? durationMs ?? Math.max(0, end.finishTime - note.values.startTime));
    const path = note.moved ?? (await place(present, target, folders));
    const { size } = await stat(path);
    const about = { path, size, recordTime, infoPath: expandPath(note.infoPath, values), folders, logger };
    if (note.moved === null) await this.#tell(note, end, about);
    if (state === 'complete') await this.#documents.remove(key);
    else await this.#documents.save(key, { ...note, moved: path });
    return { outcome: 'finished', path, bytes: size, durationMs: recordTime };
  }

  /** Makes the file whole. A fragmented one that could not be finalised is kept as it is: it plays. */
  async #complete(
    path: string,
    container: RecordContainerName,
    { measured, logger }: { readonly measured: boolean; readonly logger: Logger },
  ): Promise<Completed> {
    if ((await stat(path)).size === 0) return { state: 'empty', durationMs: null };
    if (container !== 'mp4') return { state: 'complete', durationMs: measured ? await tsMilliseconds(path) : null };
    try {
      const { outcome, truncated, durationMs } = await finalise(path);
      if (truncated > 0) logger.warn({ bytes: truncated }, `recording ended within a fragment: ${truncated} bytes of it were cut off`);
      return { state: outcome === 'empty' ? 'empty' : 'complete', durationMs };
    } catch (error) {
      logger.error({ err: error }, `recording stays fragmented, it could not be finalised: ${messageOf(error)}`);
      return { state: 'fragmented', durationMs: null };
    }
  }

  async #tell(
    note: RecordingNote,
    end: RecordingEnd,
    about: {
      readonly path: string;
      readonly size: number;
      readonly recordTime: number;
      readonly infoPath: string;
      readonly folders: AllowedFolders;
      readonly logger: Logger;
    },
  ): Promise<void> {
    const { path, size, recordTime, infoPath, folders, logger } = about;
    const { transactionId, id, vhost, app, stream, sequence, startTime } = note.values;
    try {
      await folders.makeFolder(dirname(infoPath));
      await this.#info.append(infoPath, {
        ...{ transactionId, id, metadata: note.metadata, vhost, app, stream, filePath: path },
        ...{ recordBytes: size, recordTime, sequence, lastSequence: end.lastSequence },
        ...{ createdTime: note.createdTime, startTime, finishTime: end.finishTime },
      });
    } catch (error) {
      logger.error({ err: error, info: infoPath }, `information file of the recording could not be written: ${messageOf(error)}`);
    }
  }
}

interface Completed {
  readonly state: 'complete' | 'fragmented' | 'empty';
  /** Null when the file does not tell. */
  readonly durationMs: number | null;
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

function isNote(value: unknown): value is Omit<RecordingNote, 'task'> & { readonly task?: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { task, temporary, filePath, infoPath, values, metadata, createdTime, moved } = value as Record<string, unknown>;
  const texts = [task ?? '', temporary, filePath, infoPath, metadata].every((text) => typeof text === 'string');
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
