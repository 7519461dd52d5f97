/**
 * The file that delivery threads start with. In a bundle of the program this module has other content (`scripts/program-bundle/make.mjs`).
 */
import { entryFile } from '../../util/entry-file.ts';

const ENTRY = entryFile('../../delivery-worker', import.meta.url);

/** Called for each thread. */
export function workerEntry(): URL {
  return ENTRY;
}
