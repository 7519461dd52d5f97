/**
 * `npm start`: runs `src/main.ts` with the compiled code of earlier starts. Plain JavaScript, because the first TypeScript file that is not
 * found there loads the compiler of Node.js, which takes as long as a tenth of the server.
 */
import { enableCompileCache } from 'node:module';
import { codeCacheFolder, parseCommandLine } from '../src/command-line.js';

/** Where the compiled code of `serve` is kept; null for other commands, and for arguments that are refused. */
function codeCache() {
  try {
    const { command, state } = parseCommandLine(process.argv.slice(2));
    return command === 'serve' ? codeCacheFolder(state) : null;
  } catch {
    return null;
  }
}

const folder = codeCache();
if (folder !== null) enableCompileCache(folder);
await import('../src/main.ts');
