import type { Logger } from '../../src/util/logger.ts';

export interface LoggedLine {
  readonly level: string;
  readonly fields: object;
  readonly message: string;
}

/** Keeps what is logged. */
export class MemoryLogger implements Logger {
  readonly lines: LoggedLine[];
  readonly #bound: object;

  constructor(lines: LoggedLine[] = [], bound: object = {}) {
    this.lines = lines;
    this.#bound = bound;
  }

  debug(fields: object, message: string): void {
    this.#add('debug', fields, message);
  }

  info(fields: object, message: string): void {
    this.#add('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#add('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#add('error', fields, message);
  }

  child(fields: object): Logger {
    return new MemoryLogger(this.lines, { ...this.#bound, ...fields });
  }

  #add(level: string, fields: object, message: string): void {
    this.lines.push({ level, fields: { ...this.#bound, ...fields }, message });
  }
}
