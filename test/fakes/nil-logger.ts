import type { Logger } from '../../src/util/logger.ts';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

/** A logger that keeps its lines for the test to look at. */
export class RecordingLogger implements Logger {
  readonly lines: LogLine[];
  readonly #fields: object;

  constructor(lines: LogLine[] = [], fields: object = {}) {
    this.lines = lines;
    this.#fields = fields;
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
    return new RecordingLogger(this.lines, { ...this.#fields, ...fields });
  }

  #add(level: LogLine['level'], fields: object, message: string): void {
    this.lines.push({ level, fields: { ...this.#fields, ...fields }, message });
  }
}
