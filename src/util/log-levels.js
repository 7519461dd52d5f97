/** Plain JavaScript: `command-line.js` reads it before there is a place to keep compiled TypeScript. */
export const LOG_LEVELS = /** @type {const} */ (['debug', 'info', 'warn', 'error', 'silent']);
