/** All that the API made, for those who want it gone at a start. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { showHidden } from '../util/hidden-characters.ts';
import type { Logger } from '../util/logger.ts';
import { removeFileDurable } from './atomic-file.ts';
import { problemOf } from './state-lock.ts';

/** Folders of documents below the state folder. What of recordings and dumps is still to be finished lies elsewhere, as do their files. */
const MADE_BY_API: readonly (readonly [folder: string, noun: string])[] = [
  ['vhosts', 'virtual hosts'],
  ['pulls', 'persistent pulls'],
  ['records/tasks', 'recording tasks'],
  ['pushes', 'push tasks'],
];
const SUFFIX = '.json';
/** Names that a line of the log holds at most. */
const MAX_NAMES = 100;

/**
 * Deletes the documents of what the API made, and says in the log what they were. Nothing else in the state folder is touched. Rejects with
 * `StateFolderProblem` when one cannot be deleted. Call before anything reads them.
 */
export async function forgetApiState(stateFolder: string, logger: Logger): Promise<void> {
  let total = 0;
  for (const [folder, noun] of MADE_BY_API) {
    const names = await forgetFolder(join(stateFolder, folder)).catch((error: unknown) => {
      throw problemOf(stateFolder, error);
    });
    total += names.length;
    if (names.length > 0) logger.warn({ names: names.slice(0, MAX_NAMES) }, `forgot ${noun} made through the API: ${names.length}`);
  }
  if (total === 0) logger.info({}, 'nothing to forget: the API made nothing that is kept');
}

/** The names of what was described there. */
async function forgetFolder(folder: string): Promise<string[]> {
  const names: string[] = [];
  for (const entry of await documentsIn(folder)) {
    const file = join(folder, entry);
    names.push(titleOf(await readFile(file, 'utf8')) || entry);
    await removeFileDurable(file);
  }
  return names;
}

async function documentsIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isFile() && entry.name.endsWith(SUFFIX) ? [entry.name] : [])).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** `<virtual host>/<application>/<name or id>` as far as the document has them; empty for one that cannot be read. */
function titleOf(text: string): string {
  try {
    const document = JSON.parse(text);
    const { vhost, app, name, request } = document?.value ?? document;
    return [vhost, app, name ?? request?.id]
      .filter((part) => typeof part === 'string')
      .map(showHidden)
      .join('/');
  } catch {
    return '';
  }
}
