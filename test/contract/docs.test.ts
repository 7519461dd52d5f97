/** The pages of the API name what is built, and nothing else. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CATALOGUE } from '../../src/api/errors.ts';
import { routes } from '../../src/api/routes.ts';

function rows(page: string, cells: RegExp): string[][] {
  const text = readFileSync(new URL(`../../docs/reference/${page}`, import.meta.url), 'utf8');
  return [...text.matchAll(cells)].map(([, ...found]) => found);
}

test('every error is documented with its status and text', () => {
  const expected = Object.entries(CATALOGUE).map(([code, { status, text }]) => [code, String(status), text]);
  expect(rows('api-errors.md', /^\| `([A-Z_]+)` \| (\d{3}) \| `(.*?)` \|/gm)).toEqual(expected);
});

test('every route is documented', () => {
  const expected = routes.map(({ method, path, summary }) => [method, path, summary]);
  expect(rows('api.md', /^\| ([A-Z]+) \| `(.*?)` \| (.*) \|$/gm)).toEqual(expected);
});
