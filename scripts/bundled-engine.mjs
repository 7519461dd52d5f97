// Runs before and after `npm pack`: removes scripts and dependencies from the packaged copy of node-av, because its own scripts would
// download an unused program; `--undo` restores the manifest. Its addons are optional dependencies of Millrace.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

const MANIFEST = new URL('../node_modules/node-av/package.json', import.meta.url);
const ORIGINAL = new URL('../node_modules/node-av/package.json.original', import.meta.url);
/** Members whose scripts or packages npm would run or fetch. */
const LEFT_OUT = ['scripts', 'dependencies', 'optionalDependencies', 'devDependencies'];

if (process.argv.includes('--undo')) {
  if (existsSync(ORIGINAL)) renameSync(ORIGINAL, MANIFEST);
} else {
  // Moved, not copied, because the file may be linked from elsewhere.
  if (!existsSync(ORIGINAL)) renameSync(MANIFEST, ORIGINAL);
  const manifest = JSON.parse(readFileSync(ORIGINAL, 'utf8'));
  for (const member of LEFT_OUT) delete manifest[member];
  // Excludes the copy of the original from the package.
  manifest.files = ['dist', 'LICENSE.md'];
  writeFileSync(MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`);
}
