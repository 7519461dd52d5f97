import { pino } from 'pino';
import { GatedLines, type LeveledLines, type LogLevel } from './gated-lines.ts';
import { type LogDescriptor, standardError } from './log-descriptor.ts';
import { LogSink } from './log-sink.ts';
import { plainLine, plainText } from './plain-text.ts';

/** `text` is for people, `json` has one object in each line. */
export type LogFormat = 'text' | 'json';

/** Time to write queued lines when their writer waits for them, ms. */
const LAST_LINES_MS = 500;

/** Format and destination of a program's log. */
export interface LoggerOptions {
  readonly format: LogFormat;
  readonly level: LogLevel;
  /** Destination of the lines; default: standard error. */
  readonly descriptor?: LogDescriptor;
}

/** The log of a program. */
export interface ProgramLog extends LeveledLines {
  /** Dropped lines not reported yet. */
  readonly dropped: number;
  /** Resolves when every line is written, or could not be within half a second. */
  flush(): Promise<void>;
  /** Writes the waiting lines before it returns, and accepts no more. Runs at the end of the process, unless it is killed. Idempotent. */
  close(): void;
}

/**
 * The root logger: text for people or JSON lines for machines, both on standard error, because standard output is for results. Lines that
 * cannot be written are dropped and counted, never waited for. The caller may `close` it.
 */
export async function createLogger({ format, level, descriptor = standardError() }: LoggerOptions): Promise<ProgramLog> {
  const shape = format === 'json' ? plainText : await prettyLine();
  const sink = new LogSink({
    ...descriptor,
    onDropped: (count) => lines.warn({ lines: count }, `${count} lines of the log were dropped: it could not be written`),
  });
  const lines = pino(
    {
      level: 'debug',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.err },
    },
    { write: (line: string) => sink.write(shape(line)) },
  );
  const close = (): void => {
    process.off('exit', close);
    sink.close();
  };
  process.on('exit', close);
  const gated = new GatedLines(lines, level);
  return {
    debug: (fields, message) => gated.debug(fields, message),
    info: (fields, message) => gated.info(fields, message),
    warn: (fields, message) => gated.warn(fields, message),
    error: (fields, message) => gated.error(fields, message),
    child: (fields) => gated.child(fields),
    get level() {
      return gated.level;
    },
    set level(wanted) {
      gated.level = wanted;
    },
    get dropped() {
      return sink.dropped;
    },
    flush: () => sink.idle(LAST_LINES_MS),
    close,
  };
}

/** Formats a JSON line for people. Text of peers cannot send control codes to a terminal, nor forge a line. */
async function prettyLine(): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty');
  const pretty = prettyFactory({
    colorize: process.stderr.isTTY === true,
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l',
    singleLine: true,
    messageFormat: '{msg}',
  });
  return (line) => pretty(plainValue('', JSON.parse(line)));
}

function plainValue(key: string, value: unknown): unknown {
  // A stack trace keeps its line breaks: its lines are indented, so they cannot pass for lines of the log.
  if (typeof value === 'string') return key === 'stack' ? plainText(value) : plainLine(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => plainValue('', one));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plainValue(name, one)]));
}
