/**
 * Checks that every export of `src/` has a docblock on the line above, or is the only export of a file with a head comment; that no
 * docblock of the repository begins in the middle of a sentence; and that the head of each service names its threads, limits and
 * specifications. Part of `npm run check`, which also enforces the format that this relies on.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const FOLDERS = ['src', 'scripts', 'test', 'bench'];
const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:class|const enum|const|enum|function\*?|interface|let|namespace|type) (\w+)/;
const PATTERN = /^export const ([[{][^=]*)/;
/** A docblock must be read alone, and its subject comes first. */
const FRAGMENT = /^[ \t]*\/\*\*[\s*]*((?:Of|What)\b.*)/gm;
/** The entry of a service: its head comment introduces the folder. */
const SERVICE = /^services\/[^/]+\/[^/]+-service\.ts$/;
const HEAD = /^\/\*\*\n(?: \*.*\n)*? \*\/\n/;
const MAX_HEAD_LINES = 40;

/** Line and name of each export of a file; only the first of overloads. */
function exportsOf(lines: readonly string[]): { readonly line: number; readonly name: string; readonly keyword: string }[] {
  const found = lines.flatMap((text, line) => {
    const name = DECLARATION.exec(text)?.[1] ?? PATTERN.exec(text)?.[1]?.trim();
    return name === undefined ? [] : [{ line, name, keyword: text.split(' ')[1] ?? '' }];
  });
  return found.filter(({ name, keyword }, n) => keyword !== 'function' || found.findIndex((other) => other.name === name) === n);
}

/** `file:line: name` of each export of `text` without a docblock; names taken from an object or a list need one together. */
export function problemsOf(file: string, text: string): string[] {
  const lines = text.split('\n');
  const all = exportsOf(lines);
  const names = new Set(all.map(({ name }) => name));
  if (names.size === 1 && text.replace(/^#!.*\n/, '').startsWith('/**')) return [];
  const values = new Set(all.filter(({ keyword }) => keyword === 'const').map(({ name }) => name));
  return (
    all
      .filter(({ line }) => lines[line - 1]?.trimEnd().endsWith('*/') !== true)
      // A type with the name of a table or schema needs no docblock, because that one has it.
      .filter(({ name, keyword }) => keyword !== 'type' || !values.has(name))
      .map(({ line, name }) => `${file}:${line + 1}: ${name}`)
  );
}

/** `file:line: text` of each docblock of `text` that is a fragment. */
export function fragmentsOf(file: string, text: string): string[] {
  return Array.from(text.matchAll(FRAGMENT), ({ index, 1: words = '' }) => `${file}:${text.slice(0, index).split('\n').length}: ${words}`);
}

/** One sentence for each thing that the head of a service lacks; none for other files. */
export function headProblemsOf(file: string, text: string): string[] {
  if (!SERVICE.test(file)) return [];
  const head = HEAD.exec(text)?.[0] ?? '';
  const missing = ['Threads', 'Limits', 'Specifications'].filter((word) => !head.includes(`\n * ${word}: `));
  const length = head.split('\n').length - 1;
  return [
    ...missing.map((word) => `${file}: the head has no line '${word}: '`),
    ...(length > MAX_HEAD_LINES ? [`${file}: the head has ${length} lines, at most ${MAX_HEAD_LINES} are read`] : []),
  ];
}

if (import.meta.main) {
  const problems = FOLDERS.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(?:ts|js|html)$/.test(file) && !file.includes('node_modules'))
      .flatMap((file) => {
        const text = readFileSync(path.join(ROOT, folder, file), 'utf8');
        const needsDocblocks = folder === 'src' && file.endsWith('.ts') && !file.endsWith('.test.ts');
        return [
          ...(needsDocblocks ? problemsOf(file, text).map((problem) => `${problem} has no docblock`) : []),
          ...fragmentsOf(file, text).map((problem) => `${problem}: a docblock begins with its subject`),
          ...(folder === 'src' ? headProblemsOf(file, text) : []),
        ].map((problem) => `${folder}/${problem}`);
      }),
  );
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
