/** The bundle of a start from the sources: it is kept beside the compiled code, and made anew when a source has changed. */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = path.join(ROOT, 'src');
const FILES = ['serve.cjs', 'delivery-worker.cjs'];
/** It takes half a second. */
const MAKE_DEADLINE_MS = 20_000;

/**
 * @param {string} folder Where it is kept. The folder around it is there.
 * @returns {boolean} It has the sources as they are; false: they are to be run one by one. Never throws.
 */
export function hasBundleOfSources(folder) {
  const list = path.join(folder, 'inputs.json');
  if (isCurrent(folder, list)) return true;
  // It comes with what tests need.
  if (!existsSync(path.join(ROOT, 'node_modules/rolldown/package.json'))) return false;
  try {
    accessSync(path.dirname(folder), constants.W_OK);
  } catch {
    return false;
  }
  const maker = fileURLToPath(new URL('make.mjs', import.meta.url));
  // In a process of its own, since it takes a lot of memory for a moment.
  const { status } = spawnSync(process.execPath, [maker, SOURCES, folder, list], { stdio: 'ignore', timeout: MAKE_DEADLINE_MS });
  return status === 0 && isCurrent(folder, list);
}

/**
 * @param {string} folder
 * @param {string} list
 */
function isCurrent(folder, list) {
  try {
    const { id, root, sizes, inputs } = JSON.parse(readFileSync(list, 'utf8'));
    if (root !== SOURCES || !FILES.every((name, at) => isWhole(path.join(folder, name), id, sizes[at]))) return false;
    for (const [file, [size, modified, changed]] of inputs) {
      const { size: sizeNow, mtimeMs, ctimeMs } = statSync(file);
      if (size !== sizeNow || modified !== mtimeMs || changed !== ctimeMs) return false;
    }
    return inputs.length > 0;
  } catch {
    return false;
  }
}

/**
 * Files and list may be of different makers that were at work at the same time, and a crash of the machine may cut them.
 * @param {string} file
 * @param {string} id
 * @param {number} size
 */
function isWhole(file, id, size) {
  const first = Buffer.from(`// ${id}\n`);
  const found = Buffer.alloc(first.length);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, found, 0, found.length, 0);
    return found.equals(first) && fstatSync(descriptor).size === size;
  } finally {
    closeSync(descriptor);
  }
}
