import { LOG_LEVELS } from './log-levels.js';
import type { LogLines } from './logger.ts';

/** Any of the levels of `log-levels.js`. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log whose level can be changed while it is written. */
export interface LeveledLines extends LogLines {
  /** Least level of written lines, for this logger and all its children; may be changed at any time. */
  level: LogLevel;
}

/** Shared by a logger and its children: pino's children keep the level they were created with. */
interface Gate {
  level: LogLevel;
}

/** Passes lines of its level and above to `lines`. */
export class GatedLines implements LeveledLines {
  readonly #lines: LogLines;
  readonly #gate: Gate;

  constructor(lines: LogLines, level: LogLevel | Gate) {
    this.#lines = lines;
    this.#gate = typeof level === 'string' ? { level } : level;
  }

  get level(): LogLevel {
    return this.#gate.level;
  }

  set level(level: LogLevel) {
    this.#gate.level = level;
  }

  debug(fields: object, message: string): void {
    this.#write('debug', fields, message);
  }

  info(fields: object, message: string): void {
    this.#write('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#write('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#write('error', fields, message);
  }

  child(fields: object): LogLines {
    return new GatedLines(this.#lines.child(fields), this.#gate);
  }

  #write(level: 'debug' | 'info' | 'warn' | 'error', fields: object, message: string): void {
    if (LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(this.#gate.level)) this.#lines[level](fields, message);
  }
}
