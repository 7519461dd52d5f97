/** A configuration on which a server can start: read and checked. */
import { ConfigErrors, formatConfigProblem, type LoadedServer, loadServerConfig } from '../config/index.ts';
import { unprotected } from '../config/not-built.ts';
import type { LogLines } from '../util/logger.ts';
import { ConfigProblem } from './config-problem.ts';
import { optionFindings } from './option-findings.ts';

/** Reads `file` and logs warnings. Throws `ConfigProblem`, whose `cause` is a `ConfigErrors` where places are known. */
export function loadUsable(file: string, logger: Pick<LogLines, 'warn'>): LoadedServer {
  try {
    const loaded = loadServerConfig(file);
    for (const warning of loaded.warnings) logger.warn({ path: warning.path, line: warning.line }, formatConfigProblem(warning));
    const unreadable = optionFindings(loaded);
    if (unreadable.length > 0) throw new ConfigErrors(unreadable);
    const refused = loaded.config.virtualHosts.flatMap(unprotected);
    if (refused.length > 0) throw new ConfigProblem(`${refused.join('\n')}\n${file} cannot be used.`);
    return loaded;
  } catch (error) {
    if (error instanceof ConfigErrors) throw new ConfigProblem(`${error.message}\n${file} cannot be used.`, { cause: error });
    throw error;
  }
}
