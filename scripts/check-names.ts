/**
 * Checks that no two files of `src/` export the same name, so that a search or a completion finds one thing.
 * Part of `npm run check`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const SRC = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), 'src');
const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:class|const enum|const|enum|function\*?|interface|let|namespace|type) (\w+)/gm;

/**
 * Names with the same meaning on both sides. The console runs in browsers and imports nothing of the server, so it must declare them again.
 */
const SAID_AGAIN: ReadonlySet<string> = new Set(['JsonObject', 'PortPair', 'SessionStatistics', 'StreamInformation', 'counted']);

/**
 * One sentence for each name that two files export. `texts`: contents of all files by path; `saidAgain`: names that only the console may
 * repeat, and must repeat.
 */
export function repeated(texts: ReadonlyMap<string, string>, saidAgain: ReadonlySet<string> = new Set()): string[] {
  const files = new Map<string, Set<string>>();
  for (const [file, text] of texts) {
    for (const [, name = ''] of text.matchAll(DECLARATION)) {
      const found = files.get(name) ?? new Set<string>();
      files.set(name, found.add(file));
    }
  }
  const isAllowed = (name: string, places: readonly string[]): boolean =>
    saidAgain.has(name) && places.filter((file) => !file.startsWith('console/')).length === 1;
  const problems = [...files]
    .map(([name, places]) => [name, [...places]] as const)
    .filter(([name, places]) => places.length > 1 && !isAllowed(name, places))
    .map(([name, places]) => `'${name}' is exported by ${places.join(' and ')}: one of them needs another name`);
  const idle = [...saidAgain].filter((name) => (files.get(name)?.size ?? 0) < 2);
  return [...problems, ...idle.map((name) => `'${name}' is exported once only: take it from the list of scripts/check-names.ts`)];
}

if (import.meta.main) {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
  );
  const problems = repeated(new Map(files.map((file) => [file, readFileSync(path.join(SRC, file), 'utf8')])), SAID_AGAIN);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
