/**
 * Says which Node.js is needed, before a file is loaded that an older one cannot read. Plain JavaScript, as `command-line.js` is.
 */

const LEAST = 24;

/** Ends the process with a sentence when it runs on an older Node.js. */
export function refuseOldNode() {
  if (Number.parseInt(process.versions.node, 10) >= LEAST) return;
  process.stderr.write(
    `millrace needs Node.js ${LEAST} or newer, this is ${process.versions.node}. 'npm ci' installs one into the project, ` +
      "unless install scripts are off: the package 'node' needs its own.\n",
  );
  process.exit(1);
}
