/**
 * Says which Node.js is needed, before a file is loaded that an older one cannot read. Plain JavaScript, as `command-line.js` is.
 */

import { existsSync } from 'node:fs';

const LEAST = 24;
/** Where `npm ci` puts a Node.js of its own. */
const BUNDLED = new URL('../../node_modules/node/bin/node', import.meta.url);

/** Ends the process with a sentence when it runs on an older Node.js. */
export function refuseOldNode() {
  if (Number.parseInt(process.versions.node, 10) >= LEAST) return;
  const remedy = existsSync(BUNDLED)
    ? "'npm start' uses the one in node_modules/node."
    : "'npm ci' installs one into the project, unless install scripts are off: the package 'node' needs its own.";
  process.stderr.write(`millrace needs Node.js ${LEAST} or newer, this is ${process.versions.node}. ${remedy}\n`);
  process.exit(1);
}
