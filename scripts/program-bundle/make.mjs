/**
 * Puts the modules of the server into two files, one for the main thread and one for delivery threads, because Node.js takes longer to find
 * and link a thousand modules than to run them. Part of the build: `node scripts/program-bundle/make.mjs dist`. A start from the sources
 * runs it, too: `make.mjs src OUT LIST`, where LIST is a file for the bundled sources. The code of the modules is unchanged and in their
 * order. The files are CommonJS: an ES import of a module of Node.js reads all its exports, whose getters load unused code.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';

/** The module that names the first file of delivery threads. */
const WORKER_ENTRY = /[/\\]delivery[/\\]pool[/\\]worker-entry\.[jt]s$/;
const ENTRIES = { serve: 'program/serve', 'delivery-worker': 'delivery-worker' };
const TYPES = /** @type {const} */ ({ '.ts': 'ts', '.js': 'js' });

const { resolve } = createRequire(import.meta.url);
const [sources = '', to, list = null] = process.argv.slice(2);
const root = path.resolve(sources);
const out = path.resolve(to ?? path.join(root, 'bundle'));
/**
 * Path, size and times of each bundled file when it was read.
 * @type {Map<string, readonly [size: number, modified: number, changed: number]>}
 */
const inputs = new Map();

/**
 * @param {string} file
 * @returns {string} Its text; size and times are recorded before it is read.
 */
function read(file) {
  const descriptor = openSync(file, 'r');
  try {
    const { size, mtimeMs, ctimeMs } = fstatSync(descriptor);
    inputs.set(file, [size, mtimeMs, ctimeMs]);
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Modules find files relative to their own URL: a build can be moved as a whole, sources stay at their place.
 * @param {string} file
 */
function urlOf(file) {
  if (list !== null) return JSON.stringify(pathToFileURL(file).href);
  const relative = path.relative(out, file).split(path.sep).join('/');
  return `new URL(${JSON.stringify(relative)}, import.meta.url).href`;
}

/** @type {import('rolldown').Plugin} */
const modules = {
  name: 'modules',
  // Packages stay as published and tested. A bundle in another folder has no packages around it.
  resolveId(id) {
    if (/^[./]/.test(id) || path.isAbsolute(id)) return null;
    return { id: list === null || id.startsWith('node:') ? id : resolve(id), external: 'absolute' };
  },
  load(file) {
    const type = path.extname(file);
    if (!file.startsWith(root + path.sep) || (type !== '.ts' && type !== '.js')) return null;
    const text = read(file);
    const code = WORKER_ENTRY.test(file) ? bundledEntry(file) : text.replaceAll('import.meta.url', urlOf(file));
    return { code, moduleType: TYPES[type] };
  },
};

/**
 * A thread that starts long after the bundle was made may find its file deleted.
 * @param {string} file
 */
function bundledEntry(file) {
  const own = path.join(root, `delivery-worker${path.extname(file)}`);
  return `import { existsSync } from 'node:fs';
    const bundled = new URL('./delivery-worker.cjs', import.meta.url);
    export const workerEntry = () => existsSync(bundled) ? bundled : new URL(${urlOf(own)});`;
}

/**
 * The text of one file with everything that its entry needs, dynamic imports included. Characters beyond ASCII are escaped, which halves
 * V8's memory for the text.
 * @param {string} entry
 */
async function bundle(entry) {
  const build = await rolldown({
    input: path.join(root, entry),
    platform: 'node',
    tsconfig: false,
    treeshake: false,
    plugins: [modules],
    onLog: () => {},
  });
  const { output } = await build.generate({ format: 'cjs', strict: true, codeSplitting: false, comments: false });
  await build.close();
  const [{ code }, ...more] = output;
  if (more.length > 0) throw new Error(`${entry} became ${output.length} files`);
  return code.replace(/[^\0-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * A program that starts meanwhile finds either the old file or the new one.
 * @param {string} file
 * @param {string} text
 */
function replace(file, text) {
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, text);
  renameSync(fresh, file);
}

const extension = list === null ? '.js' : '.ts';
const texts = await Promise.all(Object.entries(ENTRIES).map(async ([name, entry]) => ({ name, text: await bundle(entry + extension) })));
const id = randomUUID();
const sizes = [];
mkdirSync(out, { recursive: true });
for (const { name, text } of texts) {
  const whole = `// ${id}\n${text}`;
  sizes.push(whole.length);
  replace(path.join(out, `${name}.cjs`), whole);
}
if (list !== null) {
  for (const file of [fileURLToPath(import.meta.url), resolve('rolldown/package.json')]) read(file);
  replace(path.resolve(list), JSON.stringify({ id, root, sizes, inputs: [...inputs] }));
}
