/** `node --import …/register.ts`: every module of `src/` loaded from now on counts its blocks (`coverage.ts`). */
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { coverage, MAX_COUNTERS } from './coverage.ts';
import { instrument } from './instrument.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const SOURCES = `${path.join(ROOT, 'src')}${path.sep}`;
const cover = coverage();

registerHooks({
  load: (url, context, nextLoad) => {
    if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context);
    const file = fileURLToPath(url);
    if (!file.startsWith(SOURCES)) return nextLoad(url, context);
    const plain = stripTypeScriptTypes(readFileSync(file, 'utf8'));
    const firstCounter = cover.used;
    const { code, counters, constants } = instrument(plain, firstCounter);
    if (firstCounter + counters > MAX_COUNTERS) return nextLoad(url, context);
    cover.files.push({ path: path.relative(ROOT, file), firstCounter, counters, constants });
    return { format: 'module', source: code, shortCircuit: true };
  },
});
