import { ConfigErrors, formatConfigProblem, loadServerConfig } from '../config/index.ts';
import { allSentences } from '../config/ineffective.ts';
import { unprotected } from '../config/not-built.ts';
import { openWaysIn } from '../config/open-ways.ts';
import { findConfigFile } from '../config/server-config.ts';
import { findingsOf } from '../findings/findings.ts';
import { messageOf } from '../util/message-of.ts';
import { compareWithRunning } from './check-running.ts';
import { type CommandLine, ExitCode } from './command-line.js';

/** Reads the configuration, prints everything odd or wrong about it and about what it names, starts nothing. */
export function check(line: CommandLine): number {
  const file = findConfigFile(line.config);
  try {
    const loaded = loadServerConfig(file);
    const { config, virtualHosts } = loaded;
    const findings = findingsOf(loaded, line.state).all;
    const told = (severity: string): string[] => findings.filter((finding) => finding.severity === severity).map(({ text }) => text);
    const warnings = [...loaded.warnings.map(formatConfigProblem), ...told('warn'), ...allSentences(config), ...openWaysIn(config)];
    const errors = [...told('error'), ...config.virtualHosts.flatMap(unprotected)];
    for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`);
    for (const error of errors) process.stdout.write(`error: ${error}\n`);
    if (errors.length > 0) {
      process.stdout.write(`${file}: ${errors.length} error(s)\n`);
      return ExitCode.USAGE;
    }
    const applications = virtualHosts.reduce((sum, vhost) => sum + vhost.applications.length, 0);
    process.stdout.write(
      `${file}: good, ${virtualHosts.length} virtual host(s), ${applications} application(s), ${warnings.length} warning(s)\n`,
    );
    return line.againstRunning ? tellComparison(file, line.state) : ExitCode.CLEAN;
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    for (const warning of error.warnings) process.stdout.write(`warning: ${formatConfigProblem(warning)}\n`);
    for (const problem of error.errors) process.stdout.write(`error: ${formatConfigProblem(problem)}\n`);
    process.stdout.write(`${file}: ${error.errors.length} error(s)\n`);
    return ExitCode.USAGE;
  }
}

function tellComparison(file: string, stateFolder: string): number {
  try {
    const { lines, isRunning } = compareWithRunning(file, stateFolder);
    for (const text of lines) process.stdout.write(`${text}\n`);
    return isRunning ? ExitCode.CLEAN : ExitCode.FAILURE;
  } catch (error) {
    process.stdout.write(`the running configuration cannot be read: ${messageOf(error)}\n`);
    return ExitCode.FAILURE;
  }
}
