/**
 * `npm start`: runs `src/main.ts` with a bundle of its modules, and with the compiled code of earlier starts. Plain JavaScript, because the
 * first TypeScript file outside the compile cache loads the compiler of Node.js, which takes a tenth of the server's start time.
 */
import { refuseOldNode } from '../src/program/node-version.js';

refuseOldNode();
const { folderOfBundle, keepCompiledCode } = await import('../src/program/code-cache.js');
const { parseCommandLine } = await import('../src/program/command-line.js');

/** The state folder of `serve`; null for other commands, and for invalid arguments. */
function stateFolder() {
  try {
    const { command, state } = parseCommandLine(process.argv.slice(2));
    return command === 'serve' ? state : null;
  } catch {
    return null;
  }
}

const state = stateFolder();
if (state !== null) {
  keepCompiledCode(state);
  const folder = folderOfBundle();
  if (folder !== null) {
    const { findBundleOfSources } = await import('./program-bundle/find.mjs');
    const { useProgramBundle } = await import('../src/program/program-bundle.js');
    const found = findBundleOfSources(folder);
    if (found !== null) useProgramBundle(found);
  }
}
await import('../src/main.ts');
