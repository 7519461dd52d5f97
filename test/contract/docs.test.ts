/** The pages of the API name exactly the existing features. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CATALOGUE } from '../../src/api/errors.ts';
import { routes } from '../../src/api/routes.ts';
import { NOTICE_TYPES } from '../../src/core/notices/notice.ts';

function rows(page: string, cells: RegExp): string[][] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  return [...text.matchAll(cells)].map(([, ...found]) => found);
}

test('every error is documented with its status and text', () => {
  const expected = Object.entries(CATALOGUE).map(([code, { status, text }]) => [code, String(status), text]);
  expect(rows('reference/api-errors.md', /^\| `([A-Z_]+)` \| (\d{3}) \| `(.*?)` \|/gm)).toEqual(expected);
});

test('every route is documented', () => {
  const expected = routes.map(({ method, path, summary }) => [method, path, summary]);
  expect(rows('reference/api.md', /^\| ([A-Z]+) \| `(.*?)` \| (.*) \|$/gm)).toEqual(expected);
});

test('every metric in a guide exists', () => {
  const known = new Set(rows('reference/metrics.md', /^\| `(\w+)` \|/gm).flat());
  const guides = readdirSync(new URL('../../docs/guide/', import.meta.url));
  const named = guides.flatMap((name) => rows(`guide/${name}`, /`(millrace_[a-z_]+[a-z]|process_[a-z_]+[a-z])(?:\{[^}]*\})?`/g).flat());
  expect(named.length).toBeGreaterThan(20);
  expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([]);
});

test('every difference from OvenMediaEngine is documented', () => {
  const listed = rows('guide/migrate.md', /^\| .*? \| \[(api|playback)\].*? \| (.*) \|$/gm);
  for (const page of ['api', 'playback']) {
    const ids = rows(`reference/${page}-differences.md`, /^\| `([a-z0-9-]+)` \|/gm).flat();
    const told = listed.flatMap(([of, names = '']) => (of === page ? [...names.matchAll(/`([a-z0-9-]+)`/g)].map(([, id]) => id) : []));
    expect(ids.length).toBeGreaterThan(20);
    expect(told.sort()).toEqual([...new Set(ids)].sort());
  }
});

test('every live event is documented, in its group', () => {
  let group = '';
  const shown = rows('guide/live-updates.md', /^\| (?:`(\w+)`)? ?\| `(\w+\.\w+)` \|/gm).map(([first, type = '']) => {
    group = first ?? group;
    return [type, group];
  });
  expect(shown).toEqual(Object.entries(NOTICE_TYPES));
});
