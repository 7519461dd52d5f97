/** Files with the rules of alerts (`Alert/RulesFile`). */
import { ConfigError, ConfigErrors } from './problem.ts';
import { readObject } from './reader.ts';
import { type AlertRulesConfig, AlertRulesSchema } from './schema/alert.ts';
import type { Reading } from './source.ts';
import type { XmlElement } from './xml.ts';
import { XmlSource } from './xml-source.ts';

const ROOT = 'Rules';

/** The rules of a file. Throws `ConfigError` or `ConfigErrors` with all that is wrong. */
export function parseAlertRules(root: XmlElement): AlertRulesConfig {
  if (root.name !== ROOT) {
    throw new ConfigError(`The root element must be <${ROOT}>, but is <${root.name}>`, {
      path: root.name,
      file: root.file,
      line: root.line,
    });
  }
  const reading: Reading = { errors: [], warnings: [], macros: null };
  const { typed } = readObject(AlertRulesSchema, new XmlSource(root, ROOT, { reading, include: () => [] }), reading);
  // A misspelt rule would never alert.
  const unknown = reading.warnings.map((warning) => new ConfigError(warning.message, warning));
  if (reading.errors.length + unknown.length > 0) throw new ConfigErrors([...reading.errors, ...unknown]);
  return typed as AlertRulesConfig;
}
