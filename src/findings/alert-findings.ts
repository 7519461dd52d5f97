/** Checks the file with alert rules as the server would read it. */
import { readFileSync } from 'node:fs';
import { ConfigError, ConfigErrors, formatConfigProblem, type LoadedServer, type Place, parseAlertRules } from '../config/index.ts';
import { parseXml } from '../config/xml.ts';
import { messageOf } from '../util/message-of.ts';

/** Errors in `Alert/RulesFile`, which prevent alerts: the server starts, and logs them when it reads the file. */
export function alertFindings({ config: { alert }, placeOf }: LoadedServer): (Place & { readonly message: string })[] {
  const file = alert?.rulesFile;
  if (alert === undefined || file === undefined) return [];
  const faults = faultsOf(file);
  return faults.map((fault) => ({ ...placeOf(alert, 'rulesFile'), message: `the rules cannot be used, no alerts are sent: ${fault}` }));
}

function faultsOf(file: string): string[] {
  try {
    parseAlertRules(parseXml(readFileSync(file, 'utf8'), file));
    return [];
  } catch (error) {
    if (error instanceof ConfigErrors) return error.errors.map(formatConfigProblem);
    return [error instanceof ConfigError ? formatConfigProblem(error) : `the file cannot be read: ${messageOf(error)}`];
  }
}
