/** The file that delivery threads start with. In a bundle of the program this module has another content (`scripts/program-bundle/make.mjs`). */

const ENTRY = new URL(import.meta.url.endsWith('.ts') ? '../../delivery-worker.ts' : '../../delivery-worker.js', import.meta.url);

/** Asked for each thread. */
export function workerEntry(): URL {
  return ENTRY;
}
