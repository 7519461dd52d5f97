import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ExitCode } from './exit-code.ts';
import { packageVersion } from './package-version.ts';
import { LOG_LEVELS, type LogFormat, type LogLevel } from './util/create-logger.ts';

const HELP = `Millrace, a live media streaming server.

Usage: millrace [serve|check] [options]

Commands
  serve              start the server (default)
  check              read the configuration, print every problem, and exit

Options
  --config FILE      configuration in Server.xml format (default: conf/Server.xml, else the embedded one)
  --state DIR        where settings made through the API are kept (default: ./state)
  --log-format F     text or json (default: text on a terminal, json otherwise)
  --log-level L      ${LOG_LEVELS.join(', ')} (default: info)
  --version          print the version and exit
  --help             print this and exit

Exit codes: 0 clean stop, 1 failure, 2 bad configuration or arguments.
`;

const COMMANDS = ['serve', 'check'] as const;

export interface CommandLine {
  readonly command: (typeof COMMANDS)[number];
  /** Undefined: the default place. */
  readonly config: string | undefined;
  readonly state: string;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** Runs `millrace` with `args`; resolves with the exit code when it is over. */
export async function runCommand(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(HELP);
    return ExitCode.CLEAN;
  }
  if (args.includes('--version') || args.includes('-v')) {
    process.stdout.write(`${packageVersion()}\n`);
    return ExitCode.CLEAN;
  }
  let line: CommandLine;
  try {
    line = parseCommandLine(args);
  } catch (error) {
    process.stderr.write(`millrace: ${error instanceof Error ? error.message : String(error)}\nTry 'millrace --help'.\n`);
    return ExitCode.USAGE;
  }
  if (line.command === 'check') {
    const { check } = await import('./check.ts');
    return check(line);
  }
  // Compiled code is kept beside the settings, so that every start but the first is quick and nothing is written elsewhere.
  enableCompileCache(join(line.state, 'code-cache'));
  const { serve } = await import('./serve.ts');
  return serve(line);
}

/** Throws an Error with a sentence about the first argument that is wrong. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      state: { type: 'string', default: './state' },
      'log-format': { type: 'string', default: process.stderr.isTTY === true ? 'text' : 'json' },
      'log-level': { type: 'string', default: 'info' },
    },
  });
  const command = COMMANDS.find((name) => name === (positionals[0] ?? 'serve'));
  if (command === undefined) throw new Error(`unknown command '${positionals[0]}'; known are ${COMMANDS.join(' and ')}`);
  if (positionals.length > 1) throw new Error(`unexpected argument '${positionals[1]}'`);
  const logFormat = values['log-format'];
  if (logFormat !== 'text' && logFormat !== 'json') throw new Error(`--log-format is text or json, not '${logFormat}'`);
  const logLevel = LOG_LEVELS.find((level) => level === values['log-level']);
  if (logLevel === undefined) throw new Error(`--log-level is one of ${LOG_LEVELS.join(', ')}, not '${values['log-level']}'`);
  return { command, config: values.config, state: values.state, logFormat, logLevel };
}
