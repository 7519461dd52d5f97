import { parseArgs } from 'node:util';
import { COMMANDS, OPTIONS } from './command-options.js';
import { LOG_LEVELS, type LogFormat, type LogLevel } from './util/create-logger.ts';

export interface CommandLine {
  readonly command: (typeof COMMANDS)[number];
  /** Undefined: the default place. */
  readonly config: string | undefined;
  readonly state: string;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** Throws an Error with a sentence about the first argument that is wrong. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: OPTIONS,
  });
  const command = COMMANDS.find((name) => name === (positionals[0] ?? 'serve'));
  if (command === undefined) throw new Error(`unknown command '${positionals[0]}'; known are ${COMMANDS.join(' and ')}`);
  if (positionals.length > 1) throw new Error(`unexpected argument '${positionals[1]}'`);
  const logFormat = values['log-format'] ?? (process.stderr.isTTY === true ? 'text' : 'json');
  if (logFormat !== 'text' && logFormat !== 'json') throw new Error(`--log-format is text or json, not '${logFormat}'`);
  const logLevel = LOG_LEVELS.find((level) => level === values['log-level']);
  if (logLevel === undefined) throw new Error(`--log-level is one of ${LOG_LEVELS.join(', ')}, not '${values['log-level']}'`);
  return { command, config: values.config, state: values.state, logFormat, logLevel };
}
