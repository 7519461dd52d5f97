/** Every block that a reader types or copies is run by a test, or has a documented exception. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { allBlocksIn, NOT_RUN, PAGES, type PageBlock, reasonNotToRun } from '../support/page-blocks.ts';

const COMMANDS = 'test/e2e/guide-commands.test.ts';
const SCRIPTS = 'test/e2e/guide-scripts.test.ts';
const PROGRAMS = 'test/e2e/program-guides.test.ts';
const SETTINGS = 'test/contract/page-settings.test.ts';

/** The test that runs the blocks of a language, unless the page's entry says otherwise. */
const BY_LANGUAGE: Readonly<Record<string, string>> = { sh: COMMANDS, xml: SETTINGS, json: SETTINGS, js: SCRIPTS, ts: SCRIPTS };
const BY_PAGE: Readonly<Record<string, string>> = {
  'docs/guide/access.md python': SCRIPTS,
  'docs/guide/encoders.md sh': PROGRAMS,
  'docs/guide/limits.md nginx': 'test/harness/nginx-proxy.ts',
  'docs/guide/live-updates.md js': 'test/contract/live-events.test.ts',
  'docs/guide/players.md html': PROGRAMS,
  'docs/guide/players.md sh': PROGRAMS,
  'docs/guide/record.md sh': 'test/e2e/record-guide.test.ts',
};
/** The beginnings of lines that a user types. */
const TYPED =
  /^(?:[A-Z_]+=\S* )*(?:curl|npm|npx|node|millrace|ffmpeg|ffplay|ffprobe|gst-\S+|srt-\S+|docker|systemctl|openssl|sysctl) |^[{<]/m;

const blocks = PAGES.flatMap(allBlocksIn);
const placeOf = ({ page, line }: PageBlock): string => `${page}:${line}`;

function runnerOf({ page, language }: PageBlock): string | undefined {
  return BY_PAGE[`${page} ${language}`] ?? BY_LANGUAGE[language];
}

test('every block has a test that runs it, or a reason', () => {
  expect(blocks.length).toBeGreaterThan(90);
  const homeless = blocks.filter((block) => block.language !== '' && reasonNotToRun(block) === undefined && runnerOf(block) === undefined);
  expect(homeless.map(placeOf)).toEqual([]);
});

test('blocks without a language contain no commands to type', () => {
  expect(blocks.filter(({ language, text }) => language === '' && TYPED.test(text)).map(placeOf)).toEqual([]);
  expect(TYPED.test('MILLRACE_SECRET_KEY=x millrace sign-url')).toBe(true);
});

test('every reason is that of one block', () => {
  for (const { page, begins } of NOT_RUN) {
    expect([page, begins, blocks.filter((block) => block.page === page && block.text.startsWith(begins)).length]).toEqual([
      page,
      begins,
      1,
    ]);
  }
});

test('every page with its own test is read by that test, and has such blocks', () => {
  for (const [key, file] of Object.entries(BY_PAGE)) {
    const [page = '', language = ''] = key.split(' ');
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    expect(source, key).toContain(page.split('/').at(-1));
    expect(
      blocks.some((block) => block.page === page && block.language === language),
      key,
    ).toBe(true);
  }
});
