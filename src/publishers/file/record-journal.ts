/** Which temporary file belongs to which recording: what the next start finishes when this process cannot. */
import { readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DocumentFolder } from '../../state/document-folder.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Logger } from '../../util/logger.ts';
import { fitName, giveName } from './final-name.ts';
import { finalise } from './finalise.ts';
import type { RecordContainerName } from './record-container.ts';
import type { RecordInfoFiles } from './record-info-file.ts';
import { containerOf, expandPath, namesOf, type PathValues } from './record-path.ts';
import { tsMilliseconds } from './ts-length.ts';

/** What the name of an information file grows by while it is replaced or set aside, bytes. */
const INFO_SUFFIX_BYTES = 32;

/** Everything needed to finish a file without the process that began it. Paths are absolute templates with macros. */
export interface RecordingNote {
  /** Key of the task; its totals grow with what a next start finishes. */
  readonly task: string;
  /** The file that is being written. */
  readonly temporary: string;
  /** The `RootPath` that it must not leave; null for none, and missing in notes of earlier versions. */
  readonly root?: string | null;
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

  /** For a file that could not even be made. Never rejects. */
  async abandon(key: string): Promise<FinishedRecording> {
    await this.#forget(key);
    return EMPTY;
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

  /**
   * Finishes what `load` gave, one after the other, each where `foldersOf` allows; `onFinished` is told of each that has its name
   * now. Never rejects.
   */
  async recover(
    left: readonly OpenRecording[],
    foldersOf: (note: RecordingNote) => AllowedFolders,
    onFinished: (note: RecordingNote, file: FinishedRecording) => Promise<void>,
  ): Promise<void> {
    const newest = new Map<string, number>();
    for (const { note } of left)
      newest.set(note.values.transactionId, Math.max(newest.get(note.values.transactionId) ?? 0, note.values.sequence));
    for (const { key, note } of left) {
      const folders = foldersOf(note);
      const writtenAt = await this.#writtenAt(key, note, folders);
      if (writtenAt === null) continue;
      const lastSequence = note.values.sequence === newest.get(note.values.transactionId);
      const end = { finishTime: Math.round(writtenAt), recordTime: null, lastSequence };
      const file = await this.finish(key, note, end, folders);
      if (file.outcome === 'left') continue;
      this.#logger.info(
        { recording: note.values.id, file: file.path, bytes: file.bytes },
        `recording of the last run was finished: ${file.path ?? 'it was empty'}`,
      );
      // One that only had to be made plain was counted when it got its name.
      if (file.outcome === 'finished' && note.moved === null) await onFinished(note, file);
    }
  }

  /** When the file was written last, ms since the epoch; null when there is nothing to finish, or nothing now. */
  async #writtenAt(key: string, note: RecordingNote, folders: AllowedFolders): Promise<number | null> {
    const file = note.moved ?? note.temporary;
    try {
      const writtenAt = await lastWritten(file);
      if (writtenAt !== null) return writtenAt;
      // It got its name just before the end, or was never made.
      if (note.moved === null) await this.#completeNamed(note, folders);
      await this.#forget(key);
    } catch (error) {
      this.#logger.warn(
        { err: error, recording: note.values.id, file },
        `recording of the last run cannot be finished now; the next start tries again: ${messageOf(error)}`,
      );
    }
    return null;
  }

  /** Makes files whole that got their name fragmented, and whose note could not be told so. Rejects when one should be tried again. */
  async #completeNamed(note: RecordingNote, folders: AllowedFolders): Promise<void> {
    const names = containerOf(note.filePath) === 'mp4' ? namesOf(note.filePath, note.values) : null;
    if (names === null) return;
    await folders.checkLinks(names.folder);
    for (const entry of await readdir(names.folder, { withFileTypes: true })) {
      if (!entry.isFile() || !names.pattern.test(entry.name)) continue;
      const path = join(names.folder, entry.name);
      try {
        const { outcome } = await finalise(path);
        if (outcome === 'finalised')
          this.#logger.info({ recording: note.values.id, file: path }, `recording of the last run was finalised: ${path}`);
      } catch (error) {
        // What the disk refuses may work later; what is no recording stays as it is.
        if ((error as NodeJS.ErrnoException).errno !== undefined) throw error;
      }
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
    // A link may have come into the path since the file was made.
    await folders.checkLinks(present);
    if ((await lastWritten(present)) === null) {
      logger.warn({}, 'recording is gone: somebody removed its file');
      return this.abandon(key);
    }
    const values = { ...note.values, endTime: end.finishTime };
    const target = expandPath(note.filePath, values);
    const { state, durationMs } = await this.#complete(present, containerOf(target), { measured: end.recordTime === null, logger });
    if (state === 'empty') {
      await rm(present, { force: true });
      return this.abandon(key);
    }
    const recordTime = Math.round(end.recordTime ?? durationMs ?? Math.max(0, end.finishTime - note.values.startTime));
    const path = note.moved ?? (await giveName(present, target, folders));
    const { size } = await stat(path);
    const about = { path, size, recordTime, infoPath: fitName(expandPath(note.infoPath, values), '', INFO_SUFFIX_BYTES), folders, logger };
    if (note.moved === null) await this.#tell(note, end, about);
    // The file has its name, whatever becomes of the note: the next start looks for it by that.
    if (state === 'complete') await this.#forget(key);
    else
      await this.#documents
        .save(key, { ...note, moved: path })
        .catch((error: unknown) => logger.warn({ err: error }, 'note of a fragmented recording could not be told its name'));
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

/** When the file was written last, ms since the epoch; null when it is gone. Rejects when that cannot be told: its volume may not be there. */
async function lastWritten(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await stat(dirname(path));
    return null;
  }
}

function isNote(value: unknown): value is Omit<RecordingNote, 'task'> & { readonly task?: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { task, temporary, root, filePath, infoPath, values, metadata, createdTime, moved } = value as Record<string, unknown>;
  const texts = [task ?? '', root ?? '', temporary, filePath, infoPath, metadata].every((text) => typeof text === 'string');
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
