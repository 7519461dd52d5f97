import { systemClock } from '../util/clock.ts';
import { LOG_LEVELS } from '../util/log-levels.js';
import { messageOf } from '../util/message-of.ts';
import { packageVersion } from '../util/package-version.ts';
import { forgetCompiledCode, keepCompiledCode } from './code-cache.js';
import { type CommandLine, ExitCode, parseCommandLine } from './command-line.js';
import { ProcessSignals } from './process-signals.ts';
import { importServe } from './program-bundle.js';

const HELP = `Millrace, a live media streaming server.

Usage: millrace [serve|check] [options]
       millrace doctor [options]
       millrace sign-url URL --expire TIME [options]
       millrace ctl COMMAND [options]

Commands
  serve              start the server (default)
  check              read the configuration, print every problem, and exit
  doctor             check whether this machine fits the configuration, and exit
  sign-url           sign a URL for a virtual host with SignedPolicy, and print it
  ctl                control a server through its API: streams, recordings, viewers … (millrace ctl --help)

Options
  --config FILE      configuration in Server.xml format (default: conf/Server.xml, else the embedded one)
  --state DIR        folder for settings made through the API (default: ./state)
  --forget-api-state start without the settings made through the API in earlier runs; recordings stay
  --log-format F     text or json (default: text on a terminal, json otherwise)
  --log-level L      ${LOG_LEVELS.join(', ')} (default: from the configuration, else info)
  --watch-config     read the configuration again whenever it changes, as SIGHUP does
  --against running  with check: what a reload would change in the server that runs with this state folder
  --version          print the version and exit
  --help             print this and exit

Options of doctor, beside --config and --state
  --stun HOST[:PORT] ask this STUN server for the public address (default: StunServer of the configuration, if any)
  --json             the answer as JSON

Options of sign-url; TIME is 90s, 30m, 2h, 7d or 2030-01-31T12:00:00Z
  --expire TIME          until when a session can start
  --activate TIME        from when on a session can start
  --stream-expire TIME   when sessions end
  --allow-ip NETWORK     allowed client addresses, e.g. 192.0.2.0/24
  --real-ip NETWORK      the same for clients behind trusted proxies
  --for publish|play     only for this direction (SRT has one URL for both)
  --vhost NAME           virtual host whose key signs (default: from the host of the URL)
  --secret-file FILE     the key, instead of the configuration's; or in the variable MILLRACE_SECRET_KEY
  --policy-key NAME, --signature-key NAME   names of the query parameters (default: policy, signature)

Exit codes: 0 clean stop, 1 failure or a problem that doctor has found, 2 bad configuration or arguments.
`;

/** Runs `millrace` with `args`; resolves with the exit code at the end. */
export async function runCommand(args: readonly string[]): Promise<number> {
  // `ctl` prints its own help.
  if (args[0] === 'ctl') {
    const { ctl } = await import('./ctl.ts');
    return ctl(args.slice(1));
  }
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(HELP);
    return ExitCode.CLEAN;
  }
  if (args.includes('--version') || args.includes('-v')) {
    process.stdout.write(`${packageVersion()}\n`);
    return ExitCode.CLEAN;
  }
  if (args[0] === 'sign-url') {
    const { signUrlCommand } = await import('./sign-url.ts');
    return signUrlCommand(args.slice(1));
  }
  if (args[0] === 'doctor') {
    const { doctorCommand } = await import('./doctor/doctor.ts');
    return await doctorCommand(args.slice(1));
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
  // Makes every start but the first quick.
  // The compiled code is written only when the process ends: that takes a second, which would delay the first clients of a new server.
  keepCompiledCode(line.state);
  const signals = new ProcessSignals(systemClock);
  const { serve } = await importServe();
  const code = await serve(line, signals);
  if (code === ExitCode.USAGE) forgetCompiledCode();
  return code;
}
