/**
 * `npm start`: runs `src/main.ts` with the compiled code of earlier starts. Plain JavaScript, because the first TypeScript file that is not
 * found there loads the compiler of Node.js, which takes as long as a tenth of the server.
 */
import { enableCompileCache } from 'node:module';
import { parseArgs } from 'node:util';
import { codeCacheFolder, OPTIONS } from '../src/command-options.js';

/** Where the compiled code of `serve` is kept; null for other commands, and for arguments that cannot be read. */
function codeCache() {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
    const [command = 'serve', ...more] = positionals;
    return command === 'serve' && more.length === 0 ? codeCacheFolder(values.state) : null;
  } catch {
    return null;
  }
}

const folder = codeCache();
if (folder !== null) enableCompileCache(folder);
await import('../src/main.ts');
