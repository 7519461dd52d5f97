/**
 * Where the server is as one file, which starts in half the time of its modules: in a build beside them, in a start from the sources where
 * `scripts/start.mjs` says. Plain JavaScript, as `command-line.js` is.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const SHIPPED = new URL('../bundle/serve.cjs', import.meta.url);

/** @type {URL | null} */
let told = null;

/**
 * Says where it is, before `importServe` is called.
 * @param {string} folder
 */
export function useProgramBundle(folder) {
  told = pathToFileURL(path.join(folder, 'serve.cjs'));
}

/**
 * The module `serve.ts`, from the bundle if there is one.
 * @returns {Promise<typeof import('./serve.ts')>}
 */
export async function importServe() {
  const bundle = told ?? (existsSync(SHIPPED) ? SHIPPED : null);
  if (bundle === null) return await import('./serve.ts');
  try {
    return createRequire(import.meta.url)(fileURLToPath(bundle));
  } catch {
    // It was damaged; what is wrong with the program itself will be told.
    return await import('./serve.ts');
  }
}
