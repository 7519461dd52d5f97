import type { CommandLine } from './command-line.js';
import { ConfigErrors, formatConfigProblem, loadServerConfig } from './config/index.ts';
import { ExitCode } from './exit-code.ts';
import { notBuiltIn, unprotected } from './not-built.ts';
import { findConfigFile } from './server-config.ts';

/** Reads the configuration, prints everything odd or wrong about it, starts nothing. */
export function check(line: CommandLine): number {
  const file = findConfigFile(line.config);
  try {
    const { config, warnings, virtualHosts } = loadServerConfig(file);
    for (const warning of warnings) process.stdout.write(`warning: ${formatConfigProblem(warning)}\n`);
    const notBuilt = notBuiltIn(config);
    for (const sentence of notBuilt) process.stdout.write(`warning: ${sentence}\n`);
    const refused = config.virtualHosts.flatMap(unprotected);
    for (const sentence of refused) process.stdout.write(`error: ${sentence}\n`);
    if (refused.length > 0) {
      process.stdout.write(`${file}: ${refused.length} error(s)\n`);
      return ExitCode.USAGE;
    }
    const applications = virtualHosts.reduce((sum, vhost) => sum + vhost.applications.length, 0);
    process.stdout.write(
      `${file}: good, ${virtualHosts.length} virtual host(s), ${applications} application(s), ${warnings.length + notBuilt.length} warning(s)\n`,
    );
    return ExitCode.CLEAN;
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    for (const warning of error.warnings) process.stdout.write(`warning: ${formatConfigProblem(warning)}\n`);
    for (const problem of error.errors) process.stdout.write(`error: ${formatConfigProblem(problem)}\n`);
    process.stdout.write(`${file}: ${error.errors.length} error(s)\n`);
    return ExitCode.USAGE;
  }
}
