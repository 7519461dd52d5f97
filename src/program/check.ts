import { ConfigErrors, formatConfigProblem, type LoadedServer, loadServerConfig } from '../config/index.ts';
import { allSentences } from '../config/ineffective.ts';
import { unprotected } from '../config/not-built.ts';
import { openWaysIn } from '../config/open-ways.ts';
import { findConfigFile } from '../config/server-config.ts';
import { shortSecretsIn } from '../config/short-secrets.ts';
import { findingsOf } from '../findings/findings.ts';
import { counted } from '../util/counted.ts';
import { messageOf } from '../util/message-of.ts';
import { compareWithRunning } from './check-running.ts';
import { type CommandLine, ExitCode } from './command-line.js';

/** The result of checking a configuration file. */
export interface CheckedConfiguration {
  readonly file: string;
  /** Null if the file cannot be read as a configuration. */
  readonly loaded: LoadedServer | null;
  readonly warnings: readonly string[];
  /** Faults with which a server does not start. */
  readonly errors: readonly string[];
  /** The result in one line. */
  readonly summary: string;
}

/** Reads the configuration `config` and finds all faults in it and in the files that it names. Starts nothing. */
export function checkConfiguration({ config: given, state }: Pick<CommandLine, 'config' | 'state'>): CheckedConfiguration {
  const file = findConfigFile(given);
  const failed = (errors: readonly string[]): string => `${file}: ${counted(errors.length, 'error')}`;
  try {
    const loaded = loadServerConfig(file);
    const { config, virtualHosts } = loaded;
    const findings = findingsOf(loaded, state).all;
    const told = (severity: string): string[] => findings.filter((finding) => finding.severity === severity).map(({ text }) => text);
    const said = [...allSentences(config), ...openWaysIn(config), ...shortSecretsIn(config)];
    const warnings = [...loaded.warnings.map(formatConfigProblem), ...told('warn'), ...said];
    const errors = [...told('error'), ...config.virtualHosts.flatMap(unprotected)];
    const applications = virtualHosts.reduce((sum, vhost) => sum + vhost.applications.length, 0);
    const good = `${file}: ok, ${counted(virtualHosts.length, 'virtual host')}, ${counted(applications, 'application')}, ${counted(warnings.length, 'warning')}`;
    return { file, loaded, warnings, errors, summary: errors.length > 0 ? failed(errors) : good };
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    const errors = error.errors.map(formatConfigProblem);
    return { file, loaded: null, warnings: error.warnings.map(formatConfigProblem), errors, summary: failed(errors) };
  }
}

/** Prints the findings, and with `--against running` the changes that a reload would make. */
export function check(line: CommandLine): number {
  const { file, warnings, errors, summary } = checkConfiguration(line);
  for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`);
  for (const error of errors) process.stdout.write(`error: ${error}\n`);
  process.stdout.write(`${summary}\n`);
  if (errors.length > 0) return ExitCode.USAGE;
  return line.againstRunning ? printComparison(file, line.state) : ExitCode.CLEAN;
}

function printComparison(file: string, stateFolder: string): number {
  try {
    const { lines, isRunning } = compareWithRunning(file, stateFolder);
    for (const text of lines) process.stdout.write(`${text}\n`);
    return isRunning ? ExitCode.CLEAN : ExitCode.FAILURE;
  } catch (error) {
    process.stdout.write(`the running configuration cannot be read: ${messageOf(error)}\n`);
    return ExitCode.FAILURE;
  }
}
