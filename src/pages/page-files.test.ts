import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { frontPage, hostOnly, wantsPage } from './front-page.ts';
import { PageFiles } from './page-files.ts';

test('strips types once, compresses files that get smaller, and refuses unknown names', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shelf-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'a.ts');
  const source = `export const list: readonly string[] = [${"'word', ".repeat(200)}];\n`;
  writeFileSync(file, source);
  const files = new PageFiles([
    ['a.ts', { file }],
    ['b.txt', { text: 'x' }],
  ]);
  const first = await files.take('a.ts');
  expect(first?.body.toString()).toMatch(/^export const list {2,}= \['word'/);
  expect(gunzipSync(first?.gzip ?? Buffer.alloc(0))).toEqual(first?.body);
  writeFileSync(file, 'changed');
  expect(await files.take('a.ts')).toBe(first);
  expect((await files.take('b.txt'))?.gzip).toBeNull();
  for (const name of ['', 'A.ts', './a.ts', 'a.ts/', '__proto__', 'constructor', file]) expect(files.take(name)).toBeNull();
});

test('an unreadable file is served when it can be read later', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shelf-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'late.css');
  const files = new PageFiles([['late.css', { file }]]);
  await expect(files.take('late.css')).rejects.toThrow('ENOENT');
  writeFileSync(file, 'a{}');
  expect((await files.take('late.css'))?.body.toString()).toBe('a{}');
});

test('a front page holds text as text', () => {
  const page = frontPage('<b>&', ['"quoted" <script>'], [['x"onclick=y', "it's"]]);
  expect(page).toContain('<h1>&#60;b&#62;&#38;</h1>');
  expect(page).not.toMatch(/<script|"onclick|<b>/);
});

test('a front page has an empty icon, so that browsers request none', () => {
  expect(frontPage('Millrace', [], [])).toContain('<link rel="icon" href="data:,">');
});

test.each([
  ['text/html,application/xhtml+xml;q=0.9,*/*;q=0.8', true],
  ['application/json, text/html;q=0.5', true],
  ['*/*', false],
  ['text/htmlx', false],
  [undefined, false],
])('Accept %s: a page is wanted: %s', (accept, wanted) => expect(wantsPage(accept)).toBe(wanted));

test.each([
  ['media.example:8081', 'media.example'],
  ['[::1]:8081', '[::1]'],
  ['10.0.0.1', '10.0.0.1'],
  ["x' ; y", ''],
  ['', ''],
])('the host of %s is %s', (header, host) => expect(hostOnly(header)).toBe(host));
