/**
 * `npm start`: runs `src/main.ts` with the compiled code of earlier starts. Plain JavaScript, because the first TypeScript file that is not
 * found there loads the compiler of Node.js, which takes as long as a tenth of the server.
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** Where the compiled code of `serve` is kept; null for other commands, and for arguments that will be refused. */
function codeCache() {
  const text = { type: 'string' };
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { config: text, state: { ...text, default: './state' }, 'log-format': text, 'log-level': text },
    });
    return positionals.length === 0 || (positionals.length === 1 && positionals[0] === 'serve') ? join(values.state, 'code-cache') : null;
  } catch {
    return null;
  }
}

const folder = codeCache();
if (folder !== null) enableCompileCache(folder);
await import('../src/main.ts');
