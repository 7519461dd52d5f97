/**
 * What the command line may hold. Plain JavaScript: `scripts/start.mjs` reads it, too, before there is a place to keep compiled TypeScript.
 */

export const COMMANDS = /** @type {const} */ (['serve', 'check']);

export const OPTIONS = /** @type {const} */ ({
  config: { type: 'string' },
  state: { type: 'string', default: './state' },
  'log-format': { type: 'string' },
  'log-level': { type: 'string', default: 'info' },
});

/**
 * Where compiled code is kept: beside the settings, so that nothing is written elsewhere.
 * @param {string} state The folder of settings.
 * @returns {string}
 */
export function codeCacheFolder(state) {
  return `${state}/code-cache`;
}
