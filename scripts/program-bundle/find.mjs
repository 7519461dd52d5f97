/**
 * The bundle for a start from the sources. The install makes one, so that not even the first start waits for it. A start makes one when a
 * source has changed since, or nothing was installed, and keeps it beside the compiled code.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = path.join(ROOT, 'src');
/** Written only by an install, because the user of a running server may lack the right. */
const INSTALLED = path.join(ROOT, 'node_modules/.cache/millrace-program');
const FILES = ['serve.cjs', 'delivery-worker.cjs'];
/** Making a bundle takes half a second. */
const MAKE_DEADLINE_MS = 20_000;

/**
 * @param {string} folder Where a new bundle is kept; its parent folder exists.
 * @returns {string | null} Folder of a bundle of the present sources; null: run the sources one by one. Never throws.
 */
export function findBundleOfSources(folder) {
  for (const made of [INSTALLED, folder]) if (isCurrent(made)) return made;
  return makeBundleOfSources(folder) ? folder : null;
}

/** Part of an install. Silent: after any failure the first start makes the bundle, or runs without one. */
export function installBundleOfSources() {
  try {
    mkdirSync(path.dirname(INSTALLED), { recursive: true });
  } catch {
    return;
  }
  if (!isCurrent(INSTALLED)) makeBundleOfSources(INSTALLED);
}

/**
 * @param {string} folder
 * @returns {boolean} Whether the bundle exists now.
 */
function makeBundleOfSources(folder) {
  // rolldown is a dependency of vitest, which a production installation lacks.
  if (!existsSync(path.join(ROOT, 'node_modules/rolldown/package.json'))) return false;
  try {
    accessSync(path.dirname(folder), constants.W_OK);
  } catch {
    return false;
  }
  const maker = fileURLToPath(new URL('make.mjs', import.meta.url));
  // In a separate process, because it briefly takes a lot of memory.
  const { status } = spawnSync(process.execPath, [maker, SOURCES, folder, listOf(folder)], { stdio: 'ignore', timeout: MAKE_DEADLINE_MS });
  return status === 0 && isCurrent(folder);
}

/** @param {string} folder */
function listOf(folder) {
  return path.join(folder, 'inputs.json');
}

/** @param {string} folder */
function isCurrent(folder) {
  try {
    const { id, root, sizes, inputs } = JSON.parse(readFileSync(listOf(folder), 'utf8'));
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
 * Files and list may come from two makers that ran at the same time, and a crash of the machine may truncate them.
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
