/** Part of the build: the modules of the web console as plain JavaScript, with their style sheets. */
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FROM = path.join(ROOT, 'src/console');

/** The folder of the compiled code. */
const compiled = process.argv[2] ?? path.join(ROOT, 'dist');
const folder = path.join(compiled, 'console');
const compiler = path.join(ROOT, 'node_modules/typescript/bin/tsc');
const { status } = spawnSync(process.execPath, [compiler, '-p', path.join(FROM, 'tsconfig.build.json'), '--outDir', compiled], {
  stdio: 'inherit',
});
if (status === 0) {
  for (const name of readdirSync(FROM)) if (name.endsWith('.css')) cpSync(path.join(FROM, name), path.join(folder, name));
}
process.exitCode = status ?? 1;
