/** Order of test files without results of an earlier run. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { EARLY, LongestFirst } from '../harness/longest-first.ts';

const ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** Input of the order: no durations, only the sizes of files. */
function withoutResults(sizes: Readonly<Record<string, number>>): Vitest {
  const cache = {
    getFileTestResults: () => undefined,
    getFileStats: (key: string) => ({ size: sizes[key.slice(key.indexOf(':') + 1)] }),
  };
  return { config: { root: '/' }, cache } as unknown as Vitest;
}

function specification(name: string, project = 'e2e'): TestSpecification {
  return { moduleId: `/${name}`, project: { name: project, config: { sequence: { groupOrder: 0 } } } } as unknown as TestSpecification;
}

test('files of the early list start first, in their order; the others start by size', async () => {
  const [first = '', second = ''] = EARLY;
  const sizes = { 'test/large.test.ts': 9000, 'test/small.test.ts': 10, [second]: 50, [first]: 20 };
  const files = ['test/small.test.ts', second, 'test/large.test.ts', first].map((name) => specification(name));
  const sorted = await new LongestFirst(withoutResults(sizes)).sort(files);
  expect(sorted.map(({ moduleId }) => moduleId.slice(1))).toEqual([first, second, 'test/large.test.ts', 'test/small.test.ts']);
});

test('files of a project start after all files of the project before it', async () => {
  const [first = ''] = EARLY;
  const files = [specification('test/a.test.ts', 'one'), specification(first, 'two'), specification('test/b.test.ts', 'two')];
  const sorted = await new LongestFirst(withoutResults({ 'test/a.test.ts': 1, 'test/b.test.ts': 2, [first]: 1 })).sort(files);
  expect(sorted.map(({ moduleId }) => moduleId.slice(1))).toEqual(['test/a.test.ts', first, 'test/b.test.ts']);
});

test('every file of the early list exists, and vitest uses the sequencer', () => {
  for (const name of EARLY) expect(existsSync(path.join(ROOT, name)), name).toBe(true);
  expect(readFileSync(path.join(ROOT, 'vitest.config.ts'), 'utf8')).toContain('sequencer: LongestFirst');
});
