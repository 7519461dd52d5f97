/** Findings about a configuration beyond its syntax, before anything starts. */
import { formatConfigProblem, type LoadedServer, type Place } from '../config/index.ts';
import type { Logger } from '../util/logger.ts';
import { alertFindings } from './alert-findings.ts';
import { idleOptionFindings, optionFindings } from './option-findings.ts';
import { apiCertificateFindings, hostCertificateFindings, pathFindings } from './path-findings.ts';
import { closedTlsFindings, portFindings, unopenedPortFindings } from './port-findings.ts';

/** A part of a configuration that will not work, or not as written. */
export interface Finding {
  /** An `error` prevents the start; a `warn` does not. */
  readonly severity: 'error' | 'warn';
  readonly path: string;
  readonly line: number | undefined;
  /** With its place in the file. */
  readonly text: string;
}

/** Logs the findings at the start, except those of certificates and alert rules, which are logged when they are read. */
export function logFindings(loaded: LoadedServer, stateFolder: string, logger: Logger): void {
  for (const { severity, path, line, text } of findingsOf(loaded, stateFolder).atStart) logger[severity]({ path, line }, text);
}

/** Checks ports, files and folders; relative folders start at `stateFolder`. */
export function findingsOf(loaded: LoadedServer, stateFolder: string): { readonly all: Finding[]; readonly atStart: Finding[] } {
  const make = (severity: Finding['severity'], found: readonly (Place & { readonly message: string })[]): Finding[] =>
    found.map((problem) => ({ severity, path: problem.path, line: problem.line, text: formatConfigProblem(problem) }));
  const options = make('error', optionFindings(loaded));
  // Ports are checked only if their options can be read.
  const ports = options.length > 0 ? options : make('error', portFindings(loaded));
  const idle = options.length > 0 ? [] : idleOptionFindings(loaded);
  const others = make('warn', [...idle, ...unopenedPortFindings(loaded), ...pathFindings(loaded, stateFolder)]);
  const missing = ports.length > 0 ? [] : closedTlsFindings(loaded);
  const certificates = [
    ...make('error', apiCertificateFindings(loaded)),
    ...make('warn', [...missing, ...hostCertificateFindings(loaded)]),
  ];
  const alerts = make('warn', alertFindings(loaded));
  return { all: [...ports, ...certificates, ...others, ...alerts], atStart: [...ports, ...others] };
}
