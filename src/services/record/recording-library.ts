/** Recorded files to be watched: listed by time, opened in the allowed folders, removed when they are too old or too large together. */
import { type BigIntStats, constants } from 'node:fs';
import { access, type FileHandle, lstat, open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ApplicationAddress } from '../../core/stream-address.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import { PathRefused } from '../../util/allowed-folders.ts';
import type { Clock } from '../../util/clock.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { IndexedRecording } from './indexed-recording.ts';
import { foldersBelow } from './record-place.ts';
import type { RecordingIndex } from './recording-index.ts';
import { layOut, type VodLayout } from './vod-segments.ts';
import { WatchTokens } from './watch-token.ts';

/** How long recorded files stay. */
export interface Retention {
  /** Seconds; 0: for ever. */
  readonly maxAge: number;
  /** Limit of all files of the application; 0: none. */
  readonly maxBytes: number;
}

/** A query for recordings of an application. Times are ms since the epoch. */
export interface RecordingQuery {
  readonly from: number;
  readonly to: number;
  /** Empty: of all streams. */
  readonly stream: string;
}

/** A file that is open; its opener closes it. */
export interface OpenedRecording {
  readonly file: FileHandle;
  readonly size: number;
}

/** Too many requests at once. */
export class LibraryBusy extends Error {
  override readonly name = 'LibraryBusy';
}

/** Counts of retention. */
export interface LibraryCounts {
  readonly removedForAge: number;
  readonly removedForSize: number;
  readonly removalFailures: number;
}

/** Dependencies of a library. */
export interface RecordingLibraryOptions {
  readonly index: RecordingIndex;
  /** Where recordings may lie. */
  readonly allowed: AllowedFolders;
  /** The present retention of an application; null: none. */
  readonly retentionOf: (owner: ApplicationAddress) => Retention | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

const SWEEP_MS = 60_000;
/** Maximum step of file times, ms. */
const ROUNDING_MS = 2000;
/** Files removed in one look: the disk has other things to do. */
const MAX_REMOVED = 200;
/** Layouts that are kept, and files that are read for theirs at once, and that wait for it. */
const MAX_LAYOUTS = 64;
const MAX_READING = 2;
const MAX_WAITING = 32;
/** Files checked at once. */
const MAX_CHECKS_AT_ONCE = 32;

/** The server has one. `start` begins retention, `stop` ends it. */
export class RecordingLibrary {
  readonly tokens = new WatchTokens();
  readonly #options: RecordingLibraryOptions;
  /** By key; the oldest go. */
  readonly #layouts = new Map<string, Promise<VodLayout>>();
  #reading = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #counts = { removedForAge: 0, removedForSize: 0, removalFailures: 0 };
  #timer: NodeJS.Timeout | null = null;
  #sweeping: Promise<void> | null = null;

  constructor(options: RecordingLibraryOptions) {
    this.#options = options;
  }

  get counts(): LibraryCounts {
    return this.#counts;
  }

  /** Files that are known, and their bytes. */
  get holdings(): { readonly files: number; readonly bytes: number } {
    const { size, bytes } = this.#options.index;
    return { files: size, bytes };
  }

  /** Applies retention now and every minute. */
  start(): void {
    void this.sweep();
    const look = guarded(this.#options.logger, 'the retention of recordings', () => void this.sweep());
    this.#timer ??= setInterval(look, SWEEP_MS).unref();
  }

  /** Resolves when no removal is running. Idempotent. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#sweeping;
    await this.#options.index.settled();
  }

  /** Recordings that overlap the requested time, oldest first. */
  find(owner: ApplicationAddress, { from, to, stream }: RecordingQuery): IndexedRecording[] {
    const found = this.#options.index.of(owner)?.between(from, to) ?? [];
    return stream === '' ? found : found.filter((entry) => entry.stream === stream);
  }

  /** The recording with this key, if it belongs to the application. */
  get({ vhost, app }: ApplicationAddress, key: string): IndexedRecording | null {
    const entry = this.#options.index.get(key);
    return entry !== undefined && entry.vhost === vhost && entry.app === app ? entry : null;
  }

  /** The `entries` whose files exist unchanged; the others are removed from the index as by `open`. */
  async present(entries: readonly IndexedRecording[]): Promise<IndexedRecording[]> {
    const there: IndexedRecording[] = [];
    for (let n = 0; n < entries.length; n += MAX_CHECKS_AT_ONCE) {
      const some = entries.slice(n, n + MAX_CHECKS_AT_ONCE);
      const found = await Promise.all(some.map((entry) => this.#isPresent(entry)));
      there.push(...some.filter((_, at) => found[at]));
    }
    return there;
  }

  /** Null if the file is gone, has been replaced, or lies outside the allowed folders. Rejects with the error of the disk. */
  async open(entry: IndexedRecording): Promise<OpenedRecording | null> {
    let file: FileHandle | null = null;
    try {
      await foldersBelow(entry.root, this.#options.allowed).checkLinks(entry.path);
      file = await open(entry.path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const stat = await file.stat({ bigint: true });
      if (isOurs(stat, entry)) return { file, size: entry.bytes };
      await file.close();
      await this.#forget(entry, 'another file has its name');
      return null;
    } catch (error) {
      await file?.close().catch(() => undefined);
      if (isMissing(error)) await this.#forgetMissing(entry);
      else if (!(error instanceof PathRefused) && (error as NodeJS.ErrnoException).code !== 'ELOOP') throw error;
      else this.#options.logger.warn({ file: entry.path }, `recording cannot be watched: ${messageOf(error)}`);
      return null;
    }
  }

  /** The pieces for playback; null as for `open`. Rejects with `ProtocolError` for a file that is not a recording, and `LibraryBusy`. */
  async layout(entry: IndexedRecording): Promise<VodLayout | null> {
    const key = `${entry.key} ${entry.bytes}`;
    const known = this.#layouts.get(key);
    if (known !== undefined) {
      this.#layouts.delete(key);
      this.#layouts.set(key, known);
      return known;
    }
    const opened = await this.open(entry);
    if (opened === null) return null;
    const made = this.#inTurn(() => layOut(opened.file, entry.container, opened.size)).finally(() => opened.file.close());
    this.#layouts.set(key, made);
    made.catch(() => this.#layouts.delete(key));
    for (const oldest of this.#layouts.keys()) {
      if (this.#layouts.size <= MAX_LAYOUTS) break;
      this.#layouts.delete(oldest);
    }
    return made;
  }

  /** Applies retention. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep()
      .catch((error: unknown) => this.#options.logger.error({ err: error }, 'the retention of recordings failed'))
      .finally(() => {
        this.#sweeping = null;
      });
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { index, retentionOf, clock } = this.#options;
    let removed = 0;
    for (const { all } of [...index.applications()]) {
      const [first] = all;
      const retention = first === undefined ? null : retentionOf(first);
      if (retention === null) continue;
      const { maxAge, maxBytes } = retention;
      const isTooMuch = maxBytes > 0 && bytesOf(all) > maxBytes;
      // A file that was removed otherwise takes no space, so nothing else must be removed for it.
      const there = isTooMuch ? await this.present([...all]) : [...all];
      let bytes = bytesOf(there);
      for (const entry of there) {
        const isOld = maxAge > 0 && entry.startTime + entry.durationMs < clock.now() - maxAge * 1000;
        const isMuch = maxBytes > 0 && bytes > maxBytes;
        // A long file that began before others may end behind them.
        if (!isOld && !isMuch) continue;
        if (removed >= MAX_REMOVED) return;
        removed += 1;
        if (await this.#remove(entry, isOld ? 'age' : 'size')) bytes -= entry.bytes;
      }
    }
  }

  /** True if the file is gone. */
  async #remove(entry: IndexedRecording, why: 'age' | 'size'): Promise<boolean> {
    const { allowed, index, logger } = this.#options;
    const { path, stream, bytes } = entry;
    try {
      await foldersBelow(entry.root, allowed).checkLinks(path);
      const stat = await lstat(path, { bigint: true });
      if (!isOurs(stat, entry)) {
        await this.#forget(entry, 'another file has its name');
        return true;
      }
      await unlink(path);
      this.#counts[why === 'age' ? 'removedForAge' : 'removedForSize'] += 1;
      logger.info(
        { file: path, stream, bytes },
        `recording removed: ${why === 'age' ? 'it is older than MaxAge' : 'all recordings together exceed MaxBytes'}`,
      );
      await index.remove(entry.key);
      return true;
    } catch (error) {
      if (isMissing(error)) {
        await this.#forgetMissing(entry);
        return true;
      }
      this.#counts.removalFailures += 1;
      logger.limited.warn({ err: error, file: path }, `recording cannot be removed: ${messageOf(error)}`);
      return false;
    }
  }

  async #isPresent(entry: IndexedRecording): Promise<boolean> {
    try {
      if (isOurs(await lstat(entry.path, { bigint: true }), entry)) return true;
      await this.#forget(entry, 'another file has its name');
      return false;
    } catch (error) {
      if (!isMissing(error)) return true;
      await this.#forgetMissing(entry);
      return false;
    }
  }

  /** A disk that is not mounted takes whole folders along, and brings them back. */
  async #forgetMissing(entry: IndexedRecording): Promise<void> {
    const hasFolder = await access(dirname(entry.path)).then(
      () => true,
      () => false,
    );
    if (hasFolder) await this.#forget(entry, 'its file is gone');
  }

  async #forget(entry: IndexedRecording, why: string): Promise<void> {
    this.#options.logger.info({ file: entry.path, stream: entry.stream }, `recording removed from the list: ${why}`);
    await this.#options.index.remove(entry.key);
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#reading >= MAX_READING) {
      if (this.#waiting.length >= MAX_WAITING) throw new LibraryBusy('too many recordings are looked at: ask again');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#reading += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#reading -= 1;
      else next();
    }
  }
}

function bytesOf(entries: readonly IndexedRecording[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0);
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Inode numbers are reused, so size and modification time are compared too. */
function isOurs(stat: BigIntStats, { inode, bytes, writtenAt }: IndexedRecording): boolean {
  const isSame = String(stat.ino) === inode && Number(stat.size) === bytes;
  return isSame && stat.isFile() && Math.abs(Number(stat.mtimeMs) - writtenAt) <= ROUNDING_MS;
}
