/** A configuration on which a server can start: read and checked. */
import { setImmediate } from 'node:timers/promises';
import { ConfigErrors, formatConfigProblem, type LoadedServer, loadServerConfig } from '../config/index.ts';
import { unprotected } from '../config/not-built.ts';
import { reloadServerConfig } from '../config/server-file-thread.ts';
import type { LogLines } from '../util/logger.ts';
import { ConfigProblem } from './config-problem.ts';
import { optionFindings } from './option-findings.ts';

/** Reads `file` and logs warnings. Throws `ConfigProblem`, whose `cause` is a `ConfigErrors` where places are known. */
export function loadUsable(file: string, logger: Pick<LogLines, 'warn'>): LoadedServer {
  try {
    return usable(loadServerConfig(file), file, logger);
  } catch (error) {
    throw problemOf(error, file);
  }
}

/** The same for a server that runs, which a large file does not hold up. `known`: the files of the configuration when it was read last. */
export async function reloadUsable(file: string, known: readonly string[], logger: Pick<LogLines, 'warn'>): Promise<LoadedServer> {
  try {
    const loaded = await reloadServerConfig(file, known, logger);
    // What a thread has read takes a turn of its own.
    await setImmediate();
    return usable(loaded, file, logger);
  } catch (error) {
    throw problemOf(error, file);
  }
}

function usable(loaded: LoadedServer, file: string, logger: Pick<LogLines, 'warn'>): LoadedServer {
  for (const warning of loaded.warnings) logger.warn({ path: warning.path, line: warning.line }, formatConfigProblem(warning));
  const unreadable = optionFindings(loaded);
  if (unreadable.length > 0) throw new ConfigErrors(unreadable);
  const refused = loaded.config.virtualHosts.flatMap(unprotected);
  if (refused.length > 0) throw new ConfigProblem(`${refused.join('\n')}\n${file} cannot be used.`);
  return loaded;
}

function problemOf(error: unknown, file: string): unknown {
  return error instanceof ConfigErrors ? new ConfigProblem(`${error.message}\n${file} cannot be used.`, { cause: error }) : error;
}
