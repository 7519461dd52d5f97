import { type DestinationStream, pino } from 'pino';
import type { LOG_LEVELS } from './log-levels.js';
import type { Logger } from './logger.ts';

export type LogFormat = 'text' | 'json';

export type LogLevel = (typeof LOG_LEVELS)[number];

/** The root logger: text for people, JSON lines for machines, both on standard error so that standard output stays for answers. */
export async function createLogger(options: { format: LogFormat; level: LogLevel }): Promise<Logger> {
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: pino.stdSerializers.err },
  };
  const logger: Logger = pino(
    settings,
    options.format === 'json' ? pino.destination({ dest: 2, sync: true }) : (await prettyDestination()).stream,
  );
  return logger;
}

/** Boxed, because a stream that happened to have a `then` member would be awaited away. */
async function prettyDestination(): Promise<{ stream: DestinationStream }> {
  const { default: pretty } = await import('pino-pretty');
  const stream = pretty({
    destination: 2,
    sync: true,
    colorize: process.stderr.isTTY === true,
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l',
    singleLine: true,
    messageFormat: '{msg}',
  });
  return { stream };
}
