/**
 * Arguments of a command, and sentences about wrong ones. Plain JavaScript: `command-line.js` reads it before there is a place to keep compiled
 * TypeScript.
 */
import { parseArgs } from 'node:util';
import { didYouMean } from './similar-name.js';

/**
 * `parseArgs` of Node.js. Throws an Error with a sentence for users of the command: `unknown option '--confg' (did you mean --config?)`.
 * @template {import('node:util').ParseArgsConfig} T
 * @param {T} config
 * @returns {ReturnType<typeof parseArgs<T>>}
 */
export function parseArguments(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    // The first sentence is for users, the rest for programmers.
    const [sentence = ''] = (error instanceof Error ? error.message : String(error)).split(/\. (?:To specify|This command)|\n/);
    const [, unknown = ''] = /^Unknown option '([^']*)'$/.exec(sentence) ?? [];
    const options = Object.keys(config.options ?? {}).map((name) => `--${name}`);
    const suggestion = unknown.startsWith('--') ? didYouMean(unknown, options) : '';
    throw new Error(`${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}${suggestion}`, { cause: error });
  }
}
