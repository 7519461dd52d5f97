/** Recorded files, for later playback and for retention. Neither touches other files. */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type ApplicationAddress, applicationKey } from '../../core/stream-address.ts';
import { writeFileAtomic } from '../../state/atomic-file.ts';
import type { Logger } from '../../util/logger.ts';
import type { IndexedRecording } from './indexed-recording.ts';
import { RecordingsByStart } from './recordings-by-start.ts';

/** Limit of known files: beyond it the earliest finished ones are forgotten, and stay where they are. */
const MAX_INDEXED = 100_000;
/** Obsolete lines are removed when there are as many as valid ones, and at least this many. */
const MIN_STALE = 1000;
/** Lines that are written in one turn of the event loop. */
const MAX_LINES_AT_ONCE = 500;

/**
 * One for the server: an append-only file with a line for each recorded file; a crash can only truncate the last line. Call `load` first.
 */
export class RecordingIndex {
  readonly #file: string;
  readonly #logger: Logger;
  readonly #maxIndexed: number;
  /** In the order in which they were finished. */
  readonly #entries = new Map<string, IndexedRecording>();
  readonly #applications = new Map<string, RecordingsByStart>();
  #bytes = 0;
  #stale = 0;
  #writing: Promise<void> = Promise.resolve();
  /** Forgotten because there were too many. */
  forgotten = 0;

  constructor(file: string, logger: Logger, maxIndexed = MAX_INDEXED) {
    this.#file = file;
    this.#logger = logger;
    this.#maxIndexed = maxIndexed;
  }

  /** Entries of earlier runs; invalid lines are skipped. */
  async load(): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true });
    let text = '';
    try {
      text = await readFile(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#logger.error({ err: error }, 'the index of recordings cannot be read');
    }
    let skipped = 0;
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const entry = parsed(line);
      if (entry === null) skipped += 1;
      else if ('gone' in entry) this.#delete(entry.gone);
      else this.#set(entry);
    }
    if (skipped > 0) this.#logger.warn({ skipped }, `${skipped} lines of the index of recordings cannot be read`);
    this.#bound();
    // A line that was cut must not take the next one along.
    await this.#rewrite();
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Bytes of all files together. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): IndexedRecording | undefined {
    return this.#entries.get(key);
  }

  /** Undefined: the application has none. */
  of(owner: ApplicationAddress): RecordingsByStart | undefined {
    return this.#applications.get(applicationKey(owner));
  }

  /** The recordings of each application that has any. */
  applications(): Iterable<RecordingsByStart> {
    return this.#applications.values();
  }

  /** Resolves when it is written, or the failure is logged. An entry with the same key replaces the first. */
  add(entry: IndexedRecording): Promise<void> {
    if (this.#entries.has(entry.key)) this.#stale += 1;
    this.#set(entry);
    this.#bound();
    return this.#append(entry);
  }

  /** The file is gone, or was replaced. */
  remove(key: string): Promise<void> {
    if (!this.#delete(key)) return Promise.resolve();
    this.#stale += 2;
    return this.#append({ gone: key });
  }

  /** Resolves when all is written. */
  settled(): Promise<void> {
    return this.#writing;
  }

  #set(entry: IndexedRecording): void {
    const before = this.#entries.get(entry.key);
    if (before !== undefined) this.#unlist(before);
    this.#entries.set(entry.key, entry);
    const key = applicationKey(entry);
    const listed = this.#applications.get(key) ?? new RecordingsByStart();
    this.#applications.set(key, listed);
    listed.add(entry);
    this.#bytes += entry.bytes;
  }

  #delete(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#unlist(entry);
    return true;
  }

  #unlist(entry: IndexedRecording): void {
    const key = applicationKey(entry);
    const listed = this.#applications.get(key);
    listed?.remove(entry);
    if (listed?.all.length === 0) this.#applications.delete(key);
    this.#bytes -= entry.bytes;
  }

  #bound(): void {
    const before = this.forgotten;
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxIndexed) break;
      this.#delete(key);
      this.forgotten += 1;
    }
    if (this.forgotten === before) return;
    this.#logger.limited.warn(
      { forgotten: this.forgotten },
      `more than ${this.#maxIndexed} recorded files: the oldest can no longer be watched, and are never removed`,
    );
  }

  #append(line: IndexedRecording | { readonly gone: string }): Promise<void> {
    const isStale = this.#stale >= MIN_STALE && this.#stale >= this.#entries.size;
    const write = async (): Promise<void> => {
      if (isStale) await this.#rewrite();
      else await appendFile(this.#file, `${JSON.stringify(line)}\n`);
    };
    const written = this.#writing.then(write).catch((error: unknown) => {
      this.#logger.error({ err: error }, 'the index of recordings cannot be written: the newest recordings are not listed after a restart');
    });
    this.#writing = written;
    return written;
  }

  async #rewrite(): Promise<void> {
    this.#stale = 0;
    await writeFileAtomic(this.#file, this.#lines()).catch((error: unknown) => {
      this.#logger.error({ err: error }, 'the index of recordings cannot be written');
    });
  }

  /** All entries in pieces. Changes between two pieces are appended behind the last one. */
  *#lines(): Iterable<string> {
    let lines: string[] = [];
    for (const entry of this.#entries.values()) {
      lines.push(`${JSON.stringify(entry)}\n`);
      if (lines.length < MAX_LINES_AT_ONCE) continue;
      yield lines.join('');
      lines = [];
    }
    yield lines.join('');
  }
}

function parsed(line: string): IndexedRecording | { readonly gone: string } | null {
  try {
    const value = JSON.parse(line) as Record<string, unknown>;
    if (typeof value['gone'] === 'string') return { gone: value['gone'] };
    const { key, vhost, app, stream, task, path, root, container, bytes, startTime, durationMs, inode, writtenAt } = value;
    const isText = [key, vhost, app, stream, task, path, root ?? '', inode].every((text) => typeof text === 'string');
    const isNumber = [bytes, startTime, durationMs, writtenAt].every((number) => Number.isFinite(number));
    return isText && isNumber && (container === 'mp4' || container === 'ts') ? (value as unknown as IndexedRecording) : null;
  } catch {
    return null;
  }
}
