/** The newest lines of the log, for those who follow it through the API. */
import type { Clock } from './clock.ts';
import { LOG_LEVELS } from './log-levels.js';
import type { LogLines } from './logger.ts';
import { maskedJson } from './masked-json.ts';
import { maskedUrl } from './masked-url.ts';
import { formatTimestamp } from './timestamp.ts';

/** Lines that are kept. */
const KEPT = 1000;
/** Of each text in a line, characters. */
const MAX_TEXT = 1024;
/** Fields of a line that are kept. */
const MAX_FIELDS = 24;
/** A secret that is shorter is a word that lines may have, too. */
const MIN_SECRET = 6;
const MASK = '***';

/** Levels that lines have. */
export type LineLevel = Exclude<(typeof LOG_LEVELS)[number], 'silent'>;

/** A line. */
export interface LogLine {
  readonly type: 'log';
  readonly level: LineLevel;
  readonly message: string;
  /** Texts, numbers and the like; what is none is told as text. */
  readonly fields: Readonly<Record<string, string | number | boolean | null>>;
}

/** A line that is kept. Its text is made when the first follower wants it, once for all. */
export class KeptLine {
  readonly number: number;
  readonly notice: LogLine;
  readonly #tail: LogTail;
  readonly #time: number;
  #json: string | null = null;

  constructor(tail: LogTail, notice: LogLine, { number, time }: { readonly number: number; readonly time: number }) {
    this.#tail = tail;
    this.notice = notice;
    this.number = number;
    this.#time = time;
  }

  get id(): string {
    return this.#tail.idOf(this.number);
  }

  get json(): string {
    this.#json ??= this.#tail.textOf({ id: this.id, time: formatTimestamp(this.#time), ...this.notice });
    return this.#json;
  }
}

/** What a tail works with. */
export interface LogTailOptions {
  readonly clock: Clock;
  /** Default: 1000. */
  readonly kept?: number;
}

/**
 * A ring of lines from `info` on, whatever the level of the log is, and of those of `debug` while somebody wants them. Every text is cut, so that
 * the ring is bounded in bytes. Nothing to close.
 */
export class LogTail {
  /** Texts that nobody is shown. Those in URLs and in the members of definitions are left out without it. */
  secrets: readonly string[] = [];
  readonly #clock: Clock;
  readonly #ring: (KeptLine | undefined)[];
  readonly #run: string;
  #newest = 0;
  #wantDebug = 0;
  #watchers: readonly (() => void)[] = [];

  constructor({ clock, kept = KEPT }: LogTailOptions) {
    this.#clock = clock;
    this.#ring = new Array<KeptLine | undefined>(kept).fill(undefined);
    this.#run = clock.now().toString(36);
  }

  get newest(): number {
    return this.#newest;
  }

  get oldest(): number {
    return Math.max(1, this.#newest - this.#ring.length + 1);
  }

  /** Lines of `debug` are kept from now on, until the function returned is called by the last who wants them. */
  wantDebug(): () => void {
    this.#wantDebug += 1;
    let isOver = false;
    return () => {
      if (!isOver) this.#wantDebug -= 1;
      isOver = true;
    };
  }

  /** Keeps a line; `fields` is not held. Never throws. */
  add(level: LineLevel, fields: object, message: string): void {
    if (level === 'debug' && this.#wantDebug === 0) return;
    this.#newest += 1;
    const notice: LogLine = { type: 'log', level, message: cut(message), fields: plainFields(fields) };
    const place = { number: this.#newest, time: this.#clock.now() };
    this.#ring[this.#newest % this.#ring.length] = new KeptLine(this, notice, place);
    for (const watcher of this.#watchers) watcher();
  }

  /** The line of that number, while it is kept. */
  at(number: number): KeptLine | undefined {
    const kept = this.#ring[number % this.#ring.length];
    return kept?.number === number ? kept : undefined;
  }

  idOf(number: number): string {
    return `${this.#run}-${number}`;
  }

  numberOf(id: string): number | null {
    const [run, digits = ''] = id.split('-', 2);
    if (run !== this.#run || !/^\d{1,15}$/.test(digits)) return null;
    const number = Number(digits);
    return number <= this.#newest ? number : null;
  }

  textOf(value: object): string {
    const json = maskedJson(JSON.stringify(value));
    return this.secrets
      .filter(({ length }) => length >= MIN_SECRET)
      .reduce((text, secret) => text.replaceAll(JSON.stringify(secret).slice(1, -1), MASK), json);
  }

  watch(watcher: () => void): () => void {
    this.#watchers = [...this.#watchers, watcher];
    return () => {
      this.#watchers = this.#watchers.filter((other) => other !== watcher);
    };
  }
}

/** Writes to `lines` and keeps what it writes in `tail`, whether or not `lines` leaves it out. */
export class TailedLines implements LogLines {
  readonly #lines: LogLines;
  readonly #tail: LogTail;
  /** Of whoever made it by `child`. */
  readonly #fields: object;

  constructor(lines: LogLines, tail: LogTail, fields: object = {}) {
    this.#lines = lines;
    this.#tail = tail;
    this.#fields = fields;
  }

  debug(fields: object, message: string): void {
    this.#lines.debug(fields, message);
    this.#tail.add('debug', { ...this.#fields, ...fields }, message);
  }

  info(fields: object, message: string): void {
    this.#lines.info(fields, message);
    this.#tail.add('info', { ...this.#fields, ...fields }, message);
  }

  warn(fields: object, message: string): void {
    this.#lines.warn(fields, message);
    this.#tail.add('warn', { ...this.#fields, ...fields }, message);
  }

  error(fields: object, message: string): void {
    this.#lines.error(fields, message);
    this.#tail.add('error', { ...this.#fields, ...fields }, message);
  }

  child(fields: object): LogLines {
    return new TailedLines(this.#lines.child(fields), this.#tail, { ...this.#fields, ...fields });
  }
}

/** Whether a line of `level` is to be told to somebody who wants those from `least` on. */
export function isAtLeast(level: LineLevel, least: LineLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
}

function cut(text: string): string {
  return maskedUrl(text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`);
}

/** What a field holds may be anything, and change later. */
function plainFields(fields: object): LogLine['fields'] {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known.slice(0, MAX_FIELDS).map(([name, value]) => [name, plainValue(value)]));
}

function plainValue(value: unknown): string | number | boolean | null {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  if (value instanceof Error) return cut(value.stack ?? value.message);
  if (typeof value === 'string') return cut(value);
  try {
    return cut(maskedJson(JSON.stringify(value) ?? String(value)));
  } catch {
    return '?';
  }
}
