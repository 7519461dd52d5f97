import { systemClock } from '../util/clock.ts';
import { LOG_LEVELS } from '../util/log-levels.js';
import { messageOf } from '../util/message-of.ts';
import { packageVersion } from '../util/package-version.ts';
import { forgetCompiledCode, keepCompiledCode } from './code-cache.js';
import { type CommandLine, ExitCode, parseCommandLine } from './command-line.js';
import { ProcessSignals } from './process-signals.ts';

const HELP = `Millrace, a live media streaming server.

Usage: millrace [serve|check] [options]

Commands
  serve              start the server (default)
  check              read the configuration, print every problem, and exit

Options
  --config FILE      configuration in Server.xml format (default: conf/Server.xml, else the embedded one)
  --state DIR        where settings made through the API are kept (default: ./state)
  --forget-api-state begin without what the API made in earlier runs; recordings stay
  --log-format F     text or json (default: text on a terminal, json otherwise)
  --log-level L      ${LOG_LEVELS.join(', ')} (default: info)
  --version          print the version and exit
  --help             print this and exit

Exit codes: 0 clean stop, 1 failure, 2 bad configuration or arguments.
`;

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
    process.stderr.write(`millrace: ${messageOf(error)}\nTry 'millrace --help'.\n`);
    return ExitCode.USAGE;
  }
  if (line.command === 'check') {
    const { check } = await import('./check.ts');
    return check(line);
  }
  // Every start but the first is quick.
  // Node writes it when the process ends: the second that takes would hold up whoever comes to a server that has just started.
  keepCompiledCode(line.state);
  const signals = new ProcessSignals(systemClock);
  const { serve } = await import('./serve.ts');
  const code = await serve(line, signals);
  if (code === ExitCode.USAGE) forgetCompiledCode();
  return code;
}
