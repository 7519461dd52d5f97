/** Writes the events of the server to files, as lines of JSON (`EventLog`). */
import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ServerConfig } from '../config/index.ts';
import type { NoticeBoard } from '../core/notices/notice-board.ts';
import type { Clock } from '../util/clock.ts';
import type { Conditions } from '../util/conditions.ts';
import { diskFault } from '../util/disk-fault.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { MetricDefinition, MetricSource } from '../util/metrics.ts';

const NAME = 'events.log';
/** Ended files, which were full or of a former day: `events.log.YYYYMMDD`, with `-2` and so on for more of one day. */
const FORMER = /^events\.log\.(\d{8})(?:-(\d{1,9}))?$/;
/** Limit of text that waits for the disk, characters; a line beyond it is lost and counted. */
const MAX_WAITING = 1_048_576;
/** Limit of one write, characters. */
const MAX_WRITTEN = 65_536;
/** Pause after a failed write, ms. */
const PAUSE_MS = 1000;
const CONDITION = 'event log';
/** Time for unwritten lines when the server stops, ms. */
const STOP_MS = 1000;
const MIB = 1024 * 1024;

/** Place and limits of the files. */
export interface EventLogOptions {
  readonly board: NoticeBoard;
  /** Absolute. */
  readonly folder: string;
  /** Limit of a file, bytes: a line that would exceed it goes to the next file. */
  readonly maxFileBytes: number;
  /** Number of ended files that are kept. */
  readonly maxFiles: number;
  readonly clock: Clock;
  /** Has a condition while writes fail. */
  readonly conditions: Conditions;
  readonly logger: Logger;
  /** Default: 1000. */
  readonly pauseMs?: number;
}

/** The file being written. */
interface OpenFile {
  readonly handle: FileHandle;
  /** `YYYYMMDD` of its first line. */
  readonly day: string;
  bytes: number;
}

/** Lines since the start. */
export interface EventLogFigures {
  readonly written: number;
  readonly lost: number;
}

/** Folder of the event log of a configuration; null without an event log. */
export function eventLogFolder({ eventLog }: ServerConfig, stateFolder: string): string | null {
  return eventLog === undefined ? null : resolve(eventLog.path ?? join(stateFolder, 'logs'));
}

/** The event log of a server; null if its configuration has none. */
export function startEventLog(
  config: ServerConfig,
  { stateFolder, logger, ...parts }: Pick<EventLogOptions, 'board' | 'clock' | 'conditions' | 'logger'> & { readonly stateFolder: string },
): EventLog | null {
  const folder = eventLogFolder(config, stateFolder);
  if (config.eventLog === undefined || folder === null) return null;
  const { maxFileMiB, maxFiles } = config.eventLog;
  return new EventLog({ ...parts, folder, maxFileBytes: maxFileMiB * MIB, maxFiles, logger: logger.child({ part: 'event-log' }) });
}

/** Writes asynchronously, one write at a time; no caller waits for it. Begins when it is created; its creator calls `stop`. */
export class EventLog {
  readonly #options: EventLogOptions;
  readonly #unwatch: () => void;
  #lines: string[] = [];
  #waiting = 0;
  #written = 0;
  #lost = 0;
  #file: OpenFile | null = null;
  #writing: Promise<void> | null = null;
  #pause: NodeJS.Timeout | null = null;
  /** A write failed: the next line starts on a new line, because part of the last one may be written. */
  #failed = false;

  constructor(options: EventLogOptions) {
    this.#options = options;
    this.#unwatch = options.board.watch((posted) => this.#take(`${posted.json}\n`));
  }

  get figures(): EventLogFigures {
    return { written: this.#written, lost: this.#lost };
  }

  /**
   * Resolves when all lines are written, after `graceMs` (default: one second) at the latest; the rest is lost. Accepts no more lines.
   * Idempotent.
   */
  async stop(graceMs = STOP_MS): Promise<void> {
    this.#unwatch();
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#pause = null;
    if (this.#lines.length > 0) this.#writing ??= this.#writeAll();
    const late = Promise.withResolvers<void>();
    const deadline = setTimeout(late.resolve, graceMs);
    await Promise.race([this.#writing, late.promise]);
    clearTimeout(deadline);
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#lost += this.#lines.length;
    this.#lines = [];
    // A write that hangs still uses its file.
    if (this.#writing === null) await this.#close();
  }

  #take(line: string): void {
    if (this.#waiting + line.length > MAX_WAITING) {
      this.#lost += 1;
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    if (this.#pause === null) this.#writing ??= this.#writeAll();
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    // All lines of this turn are written together.
    await new Promise((turn) => setImmediate(turn));
    while (this.#lines.length > 0) {
      const { text, count } = this.#next();
      try {
        await this.#write(text);
        this.#written += count;
        this.#worked();
      } catch (error) {
        this.#lost += count;
        this.#refused(error);
        break;
      }
    }
    this.#writing = null;
  }

  #next(): { readonly text: string; readonly count: number } {
    let length = 0;
    let count = 0;
    while (count < this.#lines.length && length < MAX_WRITTEN) {
      length += this.#lines[count]?.length ?? 0;
      count += 1;
    }
    this.#waiting -= length;
    return { text: this.#lines.splice(0, count).join(''), count };
  }

  async #write(text: string): Promise<void> {
    const bytes = Buffer.from(this.#failed ? `\n${text}` : text);
    const file = await this.#fileFor(bytes.length);
    await file.handle.appendFile(bytes);
    file.bytes += bytes.length;
  }

  /** The file of today with room for `length` bytes. */
  async #fileFor(length: number): Promise<OpenFile> {
    const { clock, folder, maxFileBytes } = this.#options;
    const day = dayOf(clock.now());
    const isFull = (file: { readonly bytes: number }): boolean => file.bytes > 0 && file.bytes + length > maxFileBytes;
    this.#file ??= await this.#open(day);
    if (this.#file.day !== day || isFull(this.#file)) {
      const former = this.#file.day;
      await this.#close();
      await rename(join(folder, NAME), join(folder, await this.#freeName(former)));
      await this.#prune();
      this.#file = await this.#open(day);
    }
    return this.#file;
  }

  /** Continues the existing file, which may be of another day. */
  async #open(today: string): Promise<OpenFile> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true });
    const handle = await open(join(folder, NAME), 'a', 0o640);
    const { size, mtimeMs } = await handle.stat();
    return { handle, day: size === 0 ? today : dayOf(mtimeMs), bytes: size };
  }

  async #close(): Promise<void> {
    const { handle } = this.#file ?? {};
    this.#file = null;
    await handle?.close().catch(() => undefined);
  }

  async #freeName(day: string): Promise<string> {
    const taken = (await this.#former()).filter((former) => former.day === day);
    const last = Math.max(0, ...taken.map(({ number }) => number));
    return last === 0 ? `${NAME}.${day}` : `${NAME}.${day}-${last + 1}`;
  }

  /** Removes the oldest of the ended files. */
  async #prune(): Promise<void> {
    const { folder, maxFiles } = this.#options;
    const former = await this.#former();
    for (const { name } of former.slice(0, Math.max(0, former.length - maxFiles))) await rm(join(folder, name), { force: true });
  }

  /** Ended files, oldest first. */
  async #former(): Promise<{ readonly name: string; readonly day: string; readonly number: number }[]> {
    const names = await readdir(this.#options.folder);
    const former = names.flatMap((name) => {
      const [, day, number = '1'] = FORMER.exec(name) ?? [];
      return day === undefined ? [] : [{ name, day, number: Number(number) }];
    });
    return former.sort((a, b) => a.day.localeCompare(b.day) || a.number - b.number);
  }

  #worked(): void {
    if (!this.#failed) return;
    this.#failed = false;
    this.#options.conditions.clear(CONDITION);
    this.#options.logger.info({ lost: this.#lost }, 'the event log can be written again');
  }

  #refused(error: unknown): void {
    const { conditions, logger, folder, pauseMs = PAUSE_MS } = this.#options;
    if (!this.#failed) {
      logger.error({ err: error, folder }, `the event log cannot be written: ${messageOf(error)}; events are lost`);
      conditions.raise(CONDITION, `events are lost: ${diskFault(error) ?? 'their log cannot be written'}`);
    }
    this.#failed = true;
    const closing = this.#close();
    this.#pause = setTimeout(() => {
      this.#pause = null;
      void closing.then(() => {
        if (this.#lines.length > 0) this.#writing ??= this.#writeAll();
      });
    }, pauseMs).unref();
  }
}

/** `YYYYMMDD`, UTC. */
function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');
}

const METRICS = {
  lines: { name: 'millrace_event_log_lines_total', help: 'Lines written to the event log', type: 'counter' },
  lost: { name: 'millrace_event_log_lost_total', help: 'Lines of the event log that could not be written', type: 'counter' },
} as const satisfies Record<string, MetricDefinition>;

/** Metrics of the event log; null: the server has none. */
export function eventLogMetrics(figures: () => EventLogFigures | null): MetricSource {
  return {
    definitions: Object.values(METRICS),
    collect(page) {
      const told = figures();
      if (told === null) return;
      page.family(METRICS.lines).add(told.written);
      page.family(METRICS.lost).add(told.lost);
    },
  };
}
