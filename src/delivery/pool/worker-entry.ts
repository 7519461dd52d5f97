/**
 * The file that delivery threads start with. In a bundle of the program this module has other content (`scripts/program-bundle/make.mjs`).
 */

const ENTRY = new URL(import.meta.url.endsWith('.ts') ? '../../delivery-worker.ts' : '../../delivery-worker.js', import.meta.url);

/** Called for each thread. */
export function workerEntry(): URL {
  return ENTRY;
}
