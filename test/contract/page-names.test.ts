/** Pages about the code name existing files, folders, classes and settings: a rename must change the page. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { namesOf } from '../support/page-names.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGES = ['CONTRIBUTING.md', ...globSync('docs/*.md', { cwd: ROOT })].sort();
const OTHERS = new Set(['node_modules', 'results', 'dist', 'build']);
const SOURCES = ['src', 'native', 'scripts', 'test', 'bench', 'deploy', 'conf', 'docs'];
/** Folders made by a build or a bench. */
const MADE = new Set(['dist/', 'bench/results/']);
const CODE = /\.(?:ts|js|mjs|cc|h|xml|json|yaml)$/;

const files = SOURCES.flatMap((folder) =>
  globSync(`${folder}/**/*`, { cwd: ROOT, exclude: (name) => OTHERS.has(path.basename(name)) }).map((file) =>
    file.replaceAll(path.sep, '/'),
  ),
);
const folders = [...new Set(files.map((file) => `${path.posix.dirname(file)}/`))];

function isThere(paths: readonly string[], name: string): boolean {
  return paths.some((each) => each === name || each.endsWith(`/${name}`));
}

/** All words of the code, including its texts. */
function wordsOfCode(): Set<string> {
  const words = new Set<string>();
  for (const file of ['package.json', 'vitest.config.ts', ...files]) {
    if (!CODE.test(file) || file.startsWith('docs/') || file.includes('/fixtures/')) continue;
    for (const [word] of readFileSync(path.join(ROOT, file), 'utf8').matchAll(/[A-Za-z][\w$]*/g)) words.add(word);
  }
  return words;
}

test('files, folders and names in the pages exist in the code', () => {
  const words = wordsOfCode();
  const named = PAGES.flatMap((page) => namesOf(readFileSync(path.join(ROOT, page), 'utf8')).map((each) => ({ page, ...each })));
  expect(named.filter(({ kind }) => kind === 'file').length).toBeGreaterThan(100);
  expect(named.filter(({ kind }) => kind === 'name').length).toBeGreaterThan(150);
  const missing = named.filter(({ kind, text }) => {
    if (kind === 'name') return !words.has(text);
    return !MADE.has(text) && !isThere(kind === 'file' ? files : folders, text);
  });
  expect(missing.map(({ page, line, text }) => `${page}:${line}: ${text}`)).toEqual([]);
});

test('names are found in code spans, and nowhere else', () => {
  const page =
    'The `FileSink` of `util/log-sink.ts` and `net.Socket`.\n```ts\nBlockClass\n```\n`wire/sdp/` has `a.b/c.ts` and `GoneClass#x`; GoneWord';
  expect(namesOf(page).map(({ kind, text, line }) => `${line} ${kind} ${text}`)).toEqual([
    '1 name FileSink',
    '1 file util/log-sink.ts',
    '5 folder wire/sdp/',
    '5 file a.b/c.ts',
    '5 name GoneClass',
  ]);
});
