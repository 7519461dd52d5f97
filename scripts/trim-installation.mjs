/**
 * Removes files from `node_modules` that a production server never opens: source maps, builds for other purposes, the headers for compiling
 * addons once ours is compiled, and the Node.js of the package `node` if the one that npm runs on is sufficient. Run by `npm ci --omit=dev`
 * and the Dockerfile.
 *
 *   node scripts/trim-installation.mjs                 always
 *   node scripts/trim-installation.mjs --if-production   only if npm omits development packages
 *
 * `npm ci` without `--omit=dev` restores everything.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = process.env['MILLRACE_TRIM_ROOT'] ?? fileURLToPath(new URL('..', import.meta.url));
const MODULES = path.join(ROOT, 'node_modules');
/** Pages use one build of hls.js; its main module only serves to find the folder. */
const OTHER_BUILDS = /^hls\.js[\\/]dist[\\/]hls(?:\.light|-demo)\b/;
const LEAST_NODE = 24;
const MEGABYTE = 1_000_000;

let bytes = 0;

/** @param {string} file Below `node_modules`. */
function remove(file) {
  const place = path.join(MODULES, file);
  if (!existsSync(place)) return;
  bytes += sizeOf(place);
  rmSync(place, { recursive: true });
}

/**
 * @param {string} place
 * @returns {number}
 */
function sizeOf(place) {
  const { size } = lstatSync(place);
  if (!lstatSync(place).isDirectory()) return size;
  return readdirSync(place).reduce((sum, name) => sum + sizeOf(path.join(place, name)), 0);
}

/** Whether the Node.js that npm runs on can run the server and carry the addon. */
function hasNodeOfItsOwn() {
  const program = process.env['npm_node_execpath'];
  if (program === undefined || program.startsWith(MODULES)) return false;
  const told = spawnSync(program, ['-p', 'process.versions.node + " " + !!process.config.variables.node_shared_openssl'], {
    encoding: 'utf8',
  });
  const [version = '', shared] = (told.stdout ?? '').trim().split(' ');
  return Number.parseInt(version, 10) >= LEAST_NODE && shared === 'false';
}

function trimFiles() {
  for (const entry of readdirSync(MODULES, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.relative(MODULES, path.join(entry.parentPath, entry.name));
    if (/\.(?:js|mjs|cjs|ts|mts|cts|css)\.map$/.test(file) || OTHER_BUILDS.test(file)) remove(file);
  }
}

function trimNode() {
  const inner = path.join(MODULES, 'node/node_modules');
  // A link leads to an installation of another project.
  if (!existsSync(inner) || realpathSync(inner) !== path.join(realpathSync(MODULES), 'node/node_modules')) return;
  const runtimes = readdirSync(inner).filter((name) => /^node-(?:bin-)?(?:linux|darwin|win)-/.test(name));
  for (const runtime of runtimes) {
    const folder = path.join('node/node_modules', runtime);
    if (!hasNodeOfItsOwn()) {
      // Without the addon they are still needed to compile it.
      if (existsSync(path.join(ROOT, 'native/build/millrace.node'))) remove(path.join(folder, 'include'));
      for (const name of ['share', 'CHANGELOG.md']) remove(path.join(folder, name));
      continue;
    }
    remove(folder);
    for (const program of ['node/bin', '.bin/node']) rmSync(path.join(MODULES, program), { recursive: true, force: true });
  }
}

const isProduction = (process.env['npm_config_omit'] ?? '').split(/[\s,]+/).includes('dev') || process.env['NODE_ENV'] === 'production';
if (!process.argv.includes('--if-production') || isProduction) {
  trimFiles();
  trimNode();
  console.log(`${Math.round(bytes / MEGABYTE)} MB that only development needs were left out of node_modules`);
}
