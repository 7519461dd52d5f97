/** Millrace as a library: start and stop a server from a program of your own. */
export { ConfigProblem, MillraceServer, type ReloadOutcome, type ServerOptions } from './server.ts';
export { createLogger, type LogFormat, type ProgramLog } from './util/create-logger.ts';
export type { LogLevel } from './util/gated-lines.ts';
export type { LogLines as Logger } from './util/logger.ts';
