/**
 * The bundle of a start from the sources. The install makes one, so that not even the first start waits for it; a start makes one when a source has changed
 * since, or nothing was installed, and keeps it beside the compiled code.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = path.join(ROOT, 'src');
/** Only an install writes there: the user of a running server may lack the right. */
const INSTALLED = path.join(ROOT, 'node_modules/.cache/millrace-program');
const FILES = ['serve.cjs', 'delivery-worker.cjs'];
/** It takes half a second. */
const MAKE_DEADLINE_MS = 20_000;

/**
 * @param {string} folder Where one that is made is kept. The folder around it is there.
 * @returns {string | null} The folder of a bundle that has the sources as they are; null: they are to be run one by one. Never throws.
 */
export function findBundleOfSources(folder) {
  for (const made of [INSTALLED, folder]) if (isCurrent(made)) return made;
  return makeBundleOfSources(folder) ? folder : null;
}

/** Part of an install. Says nothing: whatever goes wrong, the first start does it, or does without. */
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
 * @returns {boolean} It is there now.
 */
function makeBundleOfSources(folder) {
  // It comes with what tests need.
  if (!existsSync(path.join(ROOT, 'node_modules/rolldown/package.json'))) return false;
  try {
    accessSync(path.dirname(folder), constants.W_OK);
  } catch {
    return false;
  }
  const maker = fileURLToPath(new URL('make.mjs', import.meta.url));
  // In a separate process, since it takes a lot of memory for a moment.
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
