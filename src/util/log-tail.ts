/** The newest lines of the log, for clients that follow it through the API. */
import type { Clock } from './clock.ts';
import { KnownSecrets } from './known-secrets.ts';
import { LOG_LEVELS } from './log-levels.js';
import type { LogLines } from './logger.ts';
import { maskedJson } from './masked-json.ts';
import { NumberedRing, textWithoutSecrets } from './numbered-ring.ts';

/** Lines that are kept. */
const MAX_KEPT = 1000;
/** Fields of a line that are kept. */
const MAX_FIELDS = 24;

/** Levels that lines have. */
export type LineLevel = Exclude<(typeof LOG_LEVELS)[number], 'silent'>;

/** A line of the log, as followers get it. */
export interface LogLine {
  readonly type: 'log';
  readonly level: LineLevel;
  readonly message: string;
  /** Texts, numbers and booleans; other values are converted to text. */
  readonly fields: Readonly<Record<string, string | number | boolean | null>>;
}

/** Options of a tail. */
export interface LogTailOptions {
  readonly clock: Clock;
  /** Texts to hide. Secrets in URLs and in members of definitions are hidden without it. */
  readonly secrets?: KnownSecrets;
  /** Default: 1000. */
  readonly kept?: number;
}

/**
 * A ring of lines from level `info` on, whatever the level of the log, and of `debug` lines while a client follows them. Texts are stored
 * truncated and without secrets, so the ring is bounded in bytes. Needs no closing.
 */
export class LogTail extends NumberedRing<LogLine> {
  readonly #secrets: KnownSecrets;
  #wantDebug = 0;

  constructor({ clock, secrets = new KnownSecrets(), kept = MAX_KEPT }: LogTailOptions) {
    super(clock, kept);
    this.#secrets = secrets;
  }

  /** Keeps lines of `debug` from now on. Returns an idempotent function that ends this for the caller; the last caller ends it for all. */
  wantDebug(): () => void {
    this.#wantDebug += 1;
    let isOver = false;
    return () => {
      if (!isOver) this.#wantDebug -= 1;
      isOver = true;
    };
  }

  /** Keeps a line with the fields of both objects, `inherited` first; neither object is held. Never throws. */
  add(level: LineLevel, fields: object, message: string, inherited: object = {}): void {
    if (level === 'debug' && this.#wantDebug === 0) return;
    const secrets = this.#secrets;
    this.append({
      type: 'log',
      level,
      message: textWithoutSecrets(message, secrets),
      fields: plainFields({ ...inherited, ...fields }, secrets),
    });
  }

  textOf(value: object): string {
    return maskedJson(JSON.stringify(value));
  }
}

/** Writes to `lines`, and keeps each line in `tail`, even if its level keeps it out of `lines`. */
export class TailedLines implements LogLines {
  readonly #lines: LogLines;
  readonly #tail: LogTail;
  /** Fields from `child`. */
  readonly #fields: object;

  constructor(lines: LogLines, tail: LogTail, fields: object = {}) {
    this.#lines = lines;
    this.#tail = tail;
    this.#fields = fields;
  }

  debug(fields: object, message: string): void {
    this.#lines.debug(fields, message);
    this.#tail.add('debug', fields, message, this.#fields);
  }

  info(fields: object, message: string): void {
    this.#lines.info(fields, message);
    this.#tail.add('info', fields, message, this.#fields);
  }

  warn(fields: object, message: string): void {
    this.#lines.warn(fields, message);
    this.#tail.add('warn', fields, message, this.#fields);
  }

  error(fields: object, message: string): void {
    this.#lines.error(fields, message);
    this.#tail.add('error', fields, message, this.#fields);
  }

  child(fields: object): LogLines {
    return new TailedLines(this.#lines.child(fields), this.#tail, { ...this.#fields, ...fields });
  }
}

/** Whether a line of `level` is for a follower that wants lines from `least` on. */
export function isAtLeast(level: LineLevel, least: LineLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
}

/** Copies fields as plain values, because their values may be anything and change later. */
function plainFields(fields: object, secrets: KnownSecrets): LogLine['fields'] {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known.slice(0, MAX_FIELDS).map(([name, value]) => [name, plainValue(value, secrets)]));
}

function plainValue(value: unknown, secrets: KnownSecrets): string | number | boolean | null {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  if (value instanceof Error) return textWithoutSecrets(value.stack ?? value.message, secrets);
  if (typeof value === 'string') return textWithoutSecrets(value, secrets);
  try {
    return textWithoutSecrets(JSON.stringify(value) ?? String(value), secrets);
  } catch {
    return '?';
  }
}
