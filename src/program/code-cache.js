/**
 * Compiled code is kept for later starts beside the settings, so that nothing is written elsewhere. Plain JavaScript, as `command-line.js` is.
 */
import { lstatSync, rmdirSync, rmSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import path from 'node:path';

/**
 * The outermost folder that was not there before; null when all were.
 * @type {string | null}
 */
let made = null;

/**
 * Keeps what is compiled from now on; Node writes it when the process ends. A second call changes nothing.
 * @param {string} state The folder of settings.
 */
export function keepCompiledCode(state) {
  const folder = path.resolve(state, 'code-cache');
  try {
    for (let missing = folder; lstatSync(missing, { throwIfNoEntry: false }) === undefined; missing = path.dirname(missing)) made = missing;
  } catch {
    // The folder of settings is no folder: the server says so.
    return;
  }
  enableCompileCache(folder);
}

/**
 * Where a start from the sources keeps their bundle: beside the compiled code, whatever the version of Node.js.
 * @returns {string | null} The folder, whose parent is there; null: nothing is kept, as where nothing can be written.
 */
export function folderOfBundle() {
  const used = getCompileCacheDir();
  return used === undefined ? null : path.join(path.dirname(used), 'program');
}

/** For a start that is refused: takes back the folders that were made for it. Node does not make them again when it ends. */
export function forgetCompiledCode() {
  const used = getCompileCacheDir();
  if (made === null || used?.startsWith(made) !== true) return;
  try {
    rmSync(path.join(path.dirname(used), 'program'), { recursive: true, force: true });
    for (let folder = used; folder.startsWith(made); folder = path.dirname(folder)) rmdirSync(folder);
  } catch {
    // Another start has put something there.
  }
}
