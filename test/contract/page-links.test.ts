/** Every relative link of README and the pages has a target, and every page is linked from another page. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { anchorsOf, brokenLinks, linksOf } from '../support/page-links.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGES = globSync(['*.md', 'docs/**/*.md', 'deploy/**/*.md'], { cwd: ROOT }).sort();

function read(file: string): string | null {
  try {
    return readFileSync(path.join(ROOT, file), 'utf8');
  } catch (error) {
    // A folder is a valid target without headings.
    return (error as NodeJS.ErrnoException).code === 'EISDIR' ? '' : null;
  }
}

test('links and anchors of all pages exist', () => {
  expect(PAGES.length).toBeGreaterThan(25);
  expect(PAGES.flatMap((page) => brokenLinks(page, read(page) ?? '', read))).toEqual([]);
});

test('every guide and reference is linked to from another page', () => {
  const linked = new Set(
    PAGES.flatMap((page) =>
      linksOf(read(page) ?? '').flatMap(({ target }) => {
        const to = path.join(path.dirname(page), target.replace(/#.*/, ''));
        return to === page ? [] : [to];
      }),
    ),
  );
  expect(PAGES.filter((page) => page.startsWith('docs/') && !linked.has(page))).toEqual([]);
});

test('a broken link is found with its line', () => {
  const files: Readonly<Record<string, string>> = { 'docs/b.md': '# One: `two`\n\n## One two\n\n## One two\n' };
  const broken = (text: string): string[] => brokenLinks('docs/a.md', text, (file) => files[file] ?? null);
  expect(broken('[b](b.md) [one](b.md#one-two) [again](b.md#one-two-2) [out](https://example.org/x.md#y)')).toEqual([]);
  expect(broken('text\n[gone](c.md "title")')).toEqual(['docs/a.md:2: there is no docs/c.md']);
  expect(broken('<img alt="" src="../x.png">')).toEqual(['docs/a.md:1: there is no x.png']);
  expect(broken('[no](b.md#three)')).toEqual(['docs/a.md:1: docs/b.md has no heading for #three']);
  expect(broken('```\n[code](c.md)\n```\n`[code](c.md)`')).toEqual([]);
  expect([...anchorsOf('## The client’s *types* & a [link](x.md)')]).toEqual(['the-clients-types--a-link']);
});
