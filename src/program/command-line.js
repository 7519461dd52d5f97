/**
 * The options and texts of the command line. Plain JavaScript: `scripts/start.mjs` reads it, too, before there is a place to keep compiled TypeScript.
 */
import { LOG_LEVELS } from '../util/log-levels.js';
import { parseArguments } from '../util/parse-arguments.js';
import { didYouMean } from '../util/similar-name.js';

/**
 * @typedef {object} CommandLine
 * @property {(typeof COMMANDS)[number]} command
 * @property {string | undefined} config Undefined: the default place.
 * @property {string} state
 * @property {boolean} forgetApiState
 * @property {import('../util/create-logger.ts').LogFormat} logFormat
 * @property {import('../util/gated-lines.ts').LogLevel | undefined} logLevel Undefined: what the configuration says.
 * @property {boolean} watchConfig Reads the configuration again whenever its files change.
 * @property {boolean} againstRunning Compares the configuration with that of the running server.
 */

const COMMANDS = /** @type {const} */ (['serve', 'check']);

/** Commands that read their arguments themselves; they come first. */
const OTHERS = ['doctor', 'sign-url', 'ctl'];

const OPTIONS = /** @type {const} */ ({
  config: { type: 'string' },
  state: { type: 'string', default: './state' },
  'forget-api-state': { type: 'boolean', default: false },
  'log-format': { type: 'string' },
  'log-level': { type: 'string' },
  'watch-config': { type: 'boolean', default: false },
  against: { type: 'string' },
});

/**
 * Throws an Error with a sentence about the first argument that is wrong.
 * @param {readonly string[]} args
 * @returns {Readonly<CommandLine>}
 */
export function parseCommandLine(args) {
  const { values, positionals } = parseArguments({ args: [...args], allowPositionals: true, options: OPTIONS });
  const command = COMMANDS.find((name) => name === (positionals[0] ?? 'serve'));
  if (command === undefined) {
    const known = [...COMMANDS, ...OTHERS];
    throw new Error(`unknown command '${positionals[0]}'${didYouMean(positionals[0] ?? '', known)}; known are ${known.join(', ')}`);
  }
  if (positionals.length > 1) throw new Error(`unexpected argument '${positionals[1]}'`);
  const logFormat = values['log-format'] ?? (process.stderr.isTTY === true ? 'text' : 'json');
  if (logFormat !== 'text' && logFormat !== 'json') throw new Error(`--log-format is text or json, not '${logFormat}'`);
  const logLevel = LOG_LEVELS.find((level) => level === values['log-level']);
  if (logLevel === undefined && values['log-level'] !== undefined)
    throw new Error(`--log-level is one of ${LOG_LEVELS.join(', ')}, not '${values['log-level']}'`);
  for (const name of /** @type {const} */ (['config', 'state'])) if (values[name] === '') throw new Error(`--${name} is empty`);
  const forgetApiState = values['forget-api-state'];
  if (forgetApiState && command !== 'serve') throw new Error(`--forget-api-state is for serve, not for ${command}`);
  const watchConfig = values['watch-config'];
  if (watchConfig && command !== 'serve') throw new Error(`--watch-config is for serve, not for ${command}`);
  const { against } = values;
  if (against !== undefined && command !== 'check') throw new Error(`--against is for check, not for ${command}`);
  if (against !== undefined && against !== 'running') throw new Error(`--against is 'running', not '${against}'`);
  const againstRunning = against !== undefined;
  return { command, config: values.config, state: values.state, forgetApiState, logFormat, logLevel, watchConfig, againstRunning };
}

/** Exit codes of `millrace`; `USAGE`: bad configuration or arguments. */
export const ExitCode = /** @type {const} */ ({ CLEAN: 0, FAILURE: 1, USAGE: 2 });
