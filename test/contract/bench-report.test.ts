/** The page about the kept reports of benches. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { XMLValidator } from 'fast-xml-parser';
import { expect, onTestFinished, test } from 'vitest';
import { readRuns } from '../../bench/lib/kept-runs.ts';
import type { Figure } from '../../bench/lib/report.ts';
import { reportPage } from '../../bench/lib/report-page.ts';

function folderOf(files: Readonly<Record<string, unknown>>): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-report-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, value] of Object.entries(files)) {
    writeFileSync(path.join(folder, name), typeof value === 'string' ? value : JSON.stringify(value));
  }
  return folder;
}

function run(bench: string, takenAt: string, ...figures: Figure[]): unknown {
  return { bench, takenAt, machine: { cpu: 'a <processor>', cores: 2, load: [0.5] }, options: {}, figures, notes: ['what was & is'] };
}

test('a figure lists its values of all runs in order of time, even when some runs lack it', () => {
  const folder = folderOf({
    'b.json': run('one', '2026-11-02T00:00:00.000Z', { name: 'cost', value: 2, unit: 'ms' }, { name: 'other', value: 9, unit: 'ms' }),
    'a.json': run('one', '2026-11-03T00:00:00.000Z', { name: 'cost', value: 3, unit: 'ms' }),
    'c.json': run('one', '2026-11-01T00:00:00.000Z', { name: 'cost', value: Number.NaN, unit: 'ms' }),
    'd.json': run('another', '2026-11-01T00:00:00.000Z'),
    'notes.txt': 'nothing',
  });
  const { benches, unreadable } = readRuns(folder);
  expect(unreadable).toEqual([]);
  expect(benches.map(({ bench }) => bench)).toEqual(['another', 'one']);
  expect(benches[1]?.series.map(({ name, values }) => [name, values.map(({ value }) => value)])).toEqual([
    ['cost', [2, 3]],
    ['other', [9]],
  ]);
});

test('a file that is no report is named with the reason, and the other reports are shown', () => {
  const folder = folderOf({
    'good.json': run('one', '2026-11-02T00:00:00.000Z', { name: 'cost', value: 2, unit: 'ms' }),
    'cut.json': '{"bench":',
    'foreign.json': { bench: 'one', figures: [] },
    'null.json': null,
  });
  const runs = readRuns(folder);
  expect(runs.benches).toHaveLength(1);
  expect(runs.unreadable.map((line) => line.split(':')[0])).toEqual(['cut.json', 'foreign.json', 'null.json']);
  expect(reportPage(runs)).toContain('foreign.json: no report of a bench');
});

test('the page is self-contained, well-formed, escapes names, and marks missed targets', () => {
  const folder = folderOf({
    'a.json': run('one', '2026-11-01T00:00:00.000Z', { name: 'CPU <b> & "more"', value: 1, unit: 'µs', baseline: 2, target: 1.5 }),
    'b.json': run(
      'one',
      '2026-11-02T00:00:00.000Z',
      { name: 'CPU <b> & "more"', value: 4, unit: 'µs', baseline: 2, target: 1.5, remark: 'a < b' },
      { name: 'good', value: 5, unit: 'ms', target: 5 },
      { name: 'less than nothing', value: -3, unit: 'ms' },
      { name: 'nothing', value: 0, unit: 'ms', target: 0 },
      { name: 'neither more nor less', value: 9.5, unit: 'ms', baseline: 10, target: 1.1, least: 0.9 },
      { name: 'suspiciously little', value: 8.5, unit: 'ms', baseline: 10, target: 1.1, least: 0.9 },
    ),
  });
  const page = reportPage(readRuns(folder));
  // Apart from the document type and void elements, the page is XML.
  const asXml = page.replace('<!doctype html>', '').replaceAll(/<(meta|br)\b([^>]*)>/g, '<$1$2/>');
  expect(XMLValidator.validate(asXml)).toBe(true);
  expect(page).not.toMatch(/\bsrc=|href="[^#]|url\(|@import|<script/);
  expect(page).toContain('Of 5 targets 2 are missed:');
  expect(page).toContain('target 0.9 to 1.1 times <b class="bad">missed</b>');
  expect(page).toContain('CPU &lt;b&gt; &amp; &quot;more&quot;');
  expect(page).toContain('<b>4</b> µs<p class="quiet">2.00 times 2</p>');
  expect(page).not.toContain('NaN');
  // The plot has two runs, of which the newer misses the target.
  const [plot = ''] = /<svg[^>]*aria-label="CPU[\s\S]*?<\/svg>/.exec(page) ?? [];
  expect([...plot.matchAll(/<circle[^>]*fill="([^"]+)"/g)].map(([, colour]) => colour)).toEqual(['var(--value)', 'var(--bad)']);
});

test('the page of an empty folder says that there are no reports', () => {
  expect(reportPage(readRuns(folderOf({})))).toContain('No bench has been run yet.');
});
