/** Temporary files of running recordings: the next start finishes them if this process cannot. */
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DocumentFolder } from '../../state/document-folder.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import { fitName, giveName } from './final-name.ts';
import { finalise } from './finalise.ts';
import type { RecordContainerName } from './record-container.ts';
import type { RecordInfoFiles } from './record-info-file.ts';
import { containerOf, expandPath, namesOf } from './record-path.ts';
import { parseRecordingNote, type RecordingNote } from './recording-note.ts';
import { tsMilliseconds } from './ts-length.ts';

/** Extra length of an information file's name while it is replaced or set aside, bytes. */
const INFO_SUFFIX_BYTES = 32;
/** Errors of a disk without space, or without space for this user. */
const DISK_FULL: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT'];
/** A write without space is retried after this, ms, then after twice the time each. */
const FIRST_RETRY_MS = 5000;
const MAX_RETRY_MS = 5 * 60_000;
/** Names tried for a file that is being recorded. */
const MAX_NAMES = 10_000;
/** Maximum of files that wait for disk space; further ones wait for the next start. */
const MAX_WAITING = 1000;

/** How a recording ended. */
export interface RecordingEnd {
  /** ms since the epoch. */
  readonly finishTime: number;
  /** Recorded media, ms; null if it must be read from the file. */
  readonly recordTime: number | null;
  readonly lastSequence: boolean;
}

/** A file that has ended. */
export interface FinishedRecording {
  /** `finished`: it has its name; `empty`: nothing was in it and it was removed; `left`: it is tried again. */
  readonly outcome: 'finished' | 'empty' | 'left';
  readonly path: string | null;
  readonly bytes: number;
  /** Media in it, ms. */
  readonly durationMs: number;
}

/**
 * Called with the key of a file that has its name, before its note goes: a file is in the totals of its task for sure once this
 * resolves. False leaves the note to the next start, which counts it unless that was done. Never rejects.
 */
export type CountFile = (key: string, file: FinishedRecording, note: RecordingNote) => Promise<boolean>;

/** How a file is finished. */
export interface FinishMeans {
  readonly folders: AllowedFolders;
  readonly count: CountFile;
}

/** Where the file of a note is. */
interface Place {
  readonly path: string;
  /** It has its name. */
  readonly named: boolean;
  /** ms since the epoch. */
  readonly writtenAt: number;
}

/** A recording that the last process left open. */
export interface OpenRecording {
  readonly key: string;
  readonly note: RecordingNote;
}

/** Called with a renamed file before its note is deleted, and again with one that was finalised later. Never rejects. */
export type ListFile = (key: string, file: FinishedRecording, note: RecordingNote) => Promise<void>;

const EMPTY: FinishedRecording = { outcome: 'empty', path: null, bytes: 0, durationMs: 0 };

/** A file that found no room. */
interface WaitingRecording {
  readonly end: RecordingEnd;
  readonly means: FinishMeans;
}

/** The recordings that are open, on disk. */
export class RecordJournal {
  readonly #documents: DocumentFolder;
  readonly #info: RecordInfoFiles;
  readonly #logger: Logger;
  /** The notes that are on disk, or may be, by key. */
  readonly #notes = new Map<string, RecordingNote>();
  /** By key. */
  readonly #waiting = new Map<string, WaitingRecording>();
  readonly #firstRetryMs: number;
  #retryMs: number;
  #timer: NodeJS.Timeout | null = null;
  #retrying: Promise<void> | null = null;
  #closed = false;
  /** Called with each finished file. */
  list: ListFile = () => Promise.resolve();

  /** Its maker calls `close`. */
  constructor(documents: DocumentFolder, info: RecordInfoFiles, logger: Logger, firstRetryMs = FIRST_RETRY_MS) {
    this.#documents = documents;
    this.#info = info;
    this.#logger = logger;
    this.#firstRetryMs = firstRetryMs;
    this.#retryMs = firstRetryMs;
  }

  /** Leaves files that wait for space to the next start. Resolves when no retry is running. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#retrying;
  }

  /**
   * Resolves with the note when it is stored: from then on the file will be finished, even if this process dies. Media waits in memory
   * until then, so there is no sync. A temporary name that is taken gets a number. Rejects with the file system's error.
   */
  async open(key: string, note: RecordingNote): Promise<RecordingNote> {
    for (let number = 0; number < MAX_NAMES; number += 1) {
      const temporary = number === 0 ? note.temporary : fitName(note.temporary, `_${number}`);
      if (this.#isTaken(temporary)) continue;
      const own = { ...note, temporary };
      // Reserved before the write, so that no other recording gets the name.
      this.#notes.set(key, own);
      if (await isThere(temporary)) continue;
      await this.#documents.saveSoon(key, own);
      return own;
    }
    throw new Error(`${note.temporary} and ${MAX_NAMES} names beside it are taken`);
  }

  #isTaken(temporary: string): boolean {
    for (const note of this.#notes.values()) if (note.temporary === temporary) return true;
    return false;
  }

  /** The file exists. Without this in its note, a file whose process dies right after the rename is finalised but not counted. */
  made(key: string, note: RecordingNote, inode: string): void {
    const known = { ...note, inode };
    this.#notes.set(key, known);
    this.#documents
      .saveSoon(key, known)
      .catch((error: unknown) =>
        this.#logger.warn({ err: error, file: note.temporary }, 'the note of a recording could not be updated with its file'),
      );
  }

  /** There may be a note with this key. */
  isOpen(key: string): boolean {
    return this.#notes.has(key);
  }

  /**
   * Finishes the file of `note`: finalises MP4, gives it its name without replacing another file, and lists it in the information file.
   * Failures are logged, and the note stays in the journal for the next start if that can help. A full disk is retried before.
   */
  finish(key: string, note: RecordingNote, end: RecordingEnd, means: FinishMeans): Promise<FinishedRecording> {
    return this.#tryFinish(key, note, end, { ...means, path: note.temporary, named: false });
  }

  async #tryFinish(
    key: string,
    note: RecordingNote,
    end: RecordingEnd,
    means: FinishMeans & Pick<Place, 'path' | 'named'>,
  ): Promise<FinishedRecording> {
    const logger = this.#logger.child({ recording: note.values.id, file: means.path });
    try {
      return await this.#finish(key, note, end, { ...means, logger });
    } catch (error) {
      const isFull = this.#waitWhenFull(error, key, end, means);
      const next = isFull ? 'it is tried again later' : 'the next start tries again';
      logger.error({ err: error }, `recording could not be given its name; ${next}: ${messageOf(error)}`);
      return { outcome: 'left', path: means.path, bytes: 0, durationMs: 0 };
    }
  }

  /** For a file that could not even be made. Never rejects. */
  async abandon(key: string): Promise<FinishedRecording> {
    await this.#forget(key);
    return EMPTY;
  }

  /** Recordings that the last process left open. Call once, before anything is opened. */
  async load(): Promise<OpenRecording[]> {
    const open: OpenRecording[] = [];
    for (const { key, value } of await this.#documents.load()) {
      const note = parseRecordingNote(value);
      if (note === null) {
        await this.#documents.setAside(key, 'it does not describe a recording');
        continue;
      }
      this.#notes.set(key, note);
      open.push({ key, note });
    }
    return open;
  }

  /**
   * Finishes the recordings that `load` returned, one after the other, in folders that `foldersOf` allows; `count` is called for each
   * finished file. Never rejects.
   */
  async recover(left: readonly OpenRecording[], foldersOf: (note: RecordingNote) => AllowedFolders, count: CountFile): Promise<void> {
    const newest = new Map<string, number>();
    for (const { note } of left)
      newest.set(note.values.transactionId, Math.max(newest.get(note.values.transactionId) ?? 0, note.values.sequence));
    for (const { key, note } of left) {
      const folders = foldersOf(note);
      const place = await this.#find(key, note, folders);
      if (place === null) continue;
      const lastSequence = note.values.sequence === newest.get(note.values.transactionId);
      const end = { finishTime: Math.round(place.writtenAt), recordTime: null, lastSequence };
      const file = await this.#tryFinish(key, note, end, { ...place, folders, count });
      if (file.outcome === 'left') continue;
      this.#logger.info(
        { recording: note.values.id, file: file.path, bytes: file.bytes },
        `recording of the last run was finished: ${file.path ?? 'it was empty'}`,
      );
    }
  }

  /** Null when there is nothing to finish, or nothing now. */
  async #find(key: string, note: RecordingNote, folders: AllowedFolders): Promise<Place | null> {
    const file = note.moved ?? note.temporary;
    try {
      const writtenAt = await lastWritten(file);
      const twin = writtenAt !== null && note.moved === null && (await stat(file)).nlink > 1 ? await this.#findNamed(note, folders) : null;
      if (twin !== null) {
        // Of two names the second is the final one.
        await folders.checkLinks(file);
        await rm(file);
        return twin;
      }
      if (writtenAt !== null) return { path: file, named: note.moved !== null, writtenAt };
      // It got its name just before the end, or was never made.
      const place = note.moved === null ? await this.#findNamed(note, folders) : null;
      if (place !== null) return place;
      await this.#forget(key);
    } catch (error) {
      this.#logger.warn(
        { err: error, recording: note.values.id, file },
        `recording cannot be finished now; the next start tries again: ${messageOf(error)}`,
      );
    }
    return null;
  }

  /**
   * Finds the file of a note without a name. Without the inode all candidates are finalised, and none is listed. Rejects if it should be
   * retried.
   */
  async #findNamed(note: RecordingNote, folders: AllowedFolders): Promise<Place | null> {
    const names = namesOf(note.filePath, note.values);
    if (names === null) return null;
    await folders.checkLinks(names.folder);
    for (const entry of await readdir(names.folder, { withFileTypes: true })) {
      if (!entry.isFile() || !names.pattern.test(entry.name)) continue;
      const path = join(names.folder, entry.name);
      if (note.inode !== undefined) {
        const { ino, mtimeMs } = await stat(path, { bigint: true });
        if (String(ino) === note.inode) return { path, named: true, writtenAt: Number(mtimeMs) };
        continue;
      }
      if (containerOf(path) !== 'mp4') continue;
      try {
        const { outcome } = await finalise(path);
        if (outcome === 'finalised')
          this.#logger.info({ recording: note.values.id, file: path }, `recording of the last run was finalised: ${path}`);
      } catch (error) {
        // A disk error may pass; a file that is not a recording stays unchanged.
        if ((error as NodeJS.ErrnoException).errno !== undefined) throw error;
      }
    }
    return null;
  }

  /** A remaining note is checked again at the next start. */
  async #forget(key: string): Promise<void> {
    try {
      await this.#documents.remove(key);
      this.#notes.delete(key);
    } catch (error) {
      this.#logger.warn({ err: error, key }, 'the note of a recording cannot be removed from the state folder');
    }
  }

  async #finish(
    key: string,
    note: RecordingNote,
    end: RecordingEnd,
    means: FinishMeans & Pick<Place, 'path' | 'named'> & { readonly logger: Logger },
  ): Promise<FinishedRecording> {
    const { path: present, named, folders, count, logger } = means;
    // A link may have come into the path since the file was made.
    await folders.checkLinks(present);
    if ((await lastWritten(present)) === null) {
      logger.warn({}, 'recording is missing: its file was removed');
      return this.abandon(key);
    }
    const values = { ...note.values, endTime: end.finishTime };
    const target = named ? present : expandPath(note.filePath, values);
    const { state, durationMs, error } = await this.#complete(present, containerOf(target), { measured: end.recordTime === null, logger });
    if (state === 'empty') {
      await rm(present, { force: true });
      return this.abandon(key);
    }
    const recordTime = Math.round(end.recordTime ?? durationMs ?? Math.max(0, end.finishTime - note.values.startTime));
    const path = named ? present : await giveName(present, target, folders);
    const { size } = await stat(path);
    const infoPath = fitName(expandPath(note.infoPath, values), '', INFO_SUFFIX_BYTES);
    const file: FinishedRecording = { outcome: 'finished', path, bytes: size, durationMs: recordTime };
    await this.list(key, file, note);
    // A moved file was listed and counted before: only its finalisation was missing.
    const isTold = note.moved !== null || (await this.#tell(note, end, { path, size, recordTime, infoPath, once: named, folders, logger }));
    const isCounted = note.moved !== null || (await count(key, file, note));
    const isKnown = isTold && isCounted;
    if (isKnown && state === 'complete') {
      await this.#forget(key);
      return file;
    }
    if (isKnown) {
      const moved = { ...(this.#notes.get(key) ?? note), moved: path };
      this.#notes.set(key, moved);
      // Otherwise the next start finds it by its inode.
      await this.#documents
        .save(key, moved)
        .catch((error: unknown) => logger.warn({ err: error }, 'the note of a fragmented recording could not be updated with its name'));
      this.#waitWhenFull(error, key, end, means);
    } else this.#wait(key, end, means);
    return file;
  }

  /** True when a full disk was the cause, and the file is tried again. */
  #waitWhenFull(error: unknown, key: string, end: RecordingEnd, means: FinishMeans): boolean {
    return DISK_FULL.includes((error as NodeJS.ErrnoException | null)?.code) && this.#wait(key, end, means);
  }

  /** Tries the file again after a while. False when it must wait for the next start. */
  #wait(key: string, end: RecordingEnd, { folders, count }: FinishMeans): boolean {
    if (this.#closed || !this.#notes.has(key) || this.#waiting.size >= MAX_WAITING) return false;
    this.#waiting.set(key, { end, means: { folders, count } });
    if (this.#retrying === null) this.#schedule();
    return true;
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const retry = this.#retry().catch((error: unknown) =>
        this.#logger.error({ err: error }, 'the retry of unfinished recordings failed'),
      );
      this.#retrying = retry.finally(() => {
        this.#retrying = null;
        this.#retryMs = this.#waiting.size === 0 ? this.#firstRetryMs : Math.min(2 * this.#retryMs, MAX_RETRY_MS);
        if (this.#waiting.size > 0 && !this.#closed) this.#schedule();
      });
    }, this.#retryMs).unref();
  }

  /** Never rejects. */
  async #retry(): Promise<void> {
    for (const [key, { end, means }] of [...this.#waiting]) {
      const note = this.#notes.get(key);
      this.#waiting.delete(key);
      if (note === undefined || this.#closed) continue;
      const place = await this.#find(key, note, means.folders);
      if (place === null) continue;
      await this.#tryFinish(key, note, end, { ...place, ...means });
      if (!this.#notes.has(key)) this.#logger.info({ recording: note.values.id }, 'recording was finished now that there is room');
    }
  }

  /** Finalises the file. If that fails the fragmented file is kept: it can be played. */
  async #complete(
    path: string,
    container: RecordContainerName,
    { measured, logger }: { readonly measured: boolean; readonly logger: Logger },
  ): Promise<Completed> {
    if ((await stat(path)).size === 0) return { state: 'empty', durationMs: null, error: null };
    if (container !== 'mp4') return { state: 'complete', durationMs: measured ? await tsMilliseconds(path) : null, error: null };
    try {
      const { outcome, truncated, durationMs } = await finalise(path);
      if (truncated > 0) logger.warn({ bytes: truncated }, `recording ended within a fragment: ${truncated} bytes of it were cut off`);
      return { state: outcome === 'empty' ? 'empty' : 'complete', durationMs, error: null };
    } catch (error) {
      logger.error({ err: error }, `recording stays fragmented, it could not be finalised: ${messageOf(error)}`);
      return { state: 'fragmented', durationMs: null, error };
    }
  }

  /** False when the disk is full, and a later attempt may help. */
  async #tell(
    note: RecordingNote,
    end: RecordingEnd,
    about: {
      readonly path: string;
      readonly size: number;
      readonly recordTime: number;
      readonly infoPath: string;
      readonly once: boolean;
      readonly folders: AllowedFolders;
      readonly logger: Logger;
    },
  ): Promise<boolean> {
    const { path, size, recordTime, infoPath, once, folders, logger } = about;
    const { transactionId, id, vhost, app, stream, sequence, startTime } = note.values;
    try {
      await folders.makeFolder(dirname(infoPath));
      const file = {
        ...{ transactionId, id, metadata: note.metadata, vhost, app, stream, filePath: path },
        ...{ recordBytes: size, recordTime, sequence, lastSequence: end.lastSequence },
        ...{ createdTime: note.createdTime, startTime, finishTime: end.finishTime },
      };
      await this.#info.append(infoPath, file, once);
      return true;
    } catch (error) {
      logger.error({ err: error, info: infoPath }, `information file of the recording could not be written: ${messageOf(error)}`);
      return !DISK_FULL.includes((error as NodeJS.ErrnoException).code);
    }
  }
}

interface Completed {
  readonly state: 'complete' | 'fragmented' | 'empty';
  /** Null when the file does not tell. */
  readonly durationMs: number | null;
  /** Why it is fragmented still. */
  readonly error: unknown;
}

/**
 * Time of the last write, ms since the epoch; null if the file is gone. Rejects if that cannot be determined, because its volume may be
 * missing.
 */
async function lastWritten(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await stat(dirname(path));
    return null;
  }
}

/** Whether a file, folder or link of this name exists; if that cannot be determined, creating it reports the error. */
async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch {
    return false;
  }
}
