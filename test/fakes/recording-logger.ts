/** A logger that keeps its lines, for tests that read them. */
import type { Logger } from '../../src/util/logger.ts';
import { Changes } from './changes.ts';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export class RecordingLogger implements Logger {
  /** Lines of this logger and all its children, in order. */
  readonly lines: LogLine[];
  readonly #bindings: object;
  readonly #changes: Changes;

  constructor(shared?: { lines: LogLine[]; changes: Changes; bindings: object }) {
    this.lines = shared?.lines ?? [];
    this.#changes = shared?.changes ?? new Changes();
    this.#bindings = shared?.bindings ?? {};
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

  /** Throws for a field that is bound already, because a JSON line would contain it twice. */
  child(fields: object): Logger {
    const twice = Object.keys(fields).find((field) => field in this.#bindings);
    if (twice !== undefined) throw new Error(`field '${twice}' is bound twice`);
    return new RecordingLogger({ lines: this.lines, changes: this.#changes, bindings: { ...this.#bindings, ...fields } });
  }

  /** Does not limit: all lines are kept. */
  get limited(): Logger {
    return this;
  }

  /** All lines with this message. */
  matching(message: string): LogLine[] {
    return this.lines.filter((line) => line.message === message);
  }

  /** Resolves with the `index`-th line of this message; the test's own timeout is the deadline. */
  async line(message: string, index = 0): Promise<LogLine> {
    let line: LogLine | undefined;
    await this.#changes.until(() => {
      line = this.matching(message)[index];
      return line !== undefined;
    });
    return line!;
  }

  #add(level: LogLine['level'], fields: object, message: string): void {
    this.lines.push({ level, message, fields: { ...this.#bindings, ...fields } });
    this.#changes.notify();
  }
}
