import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commitOf } from './git-revision.ts';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const OTHER = 'f'.repeat(40);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-revision-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

const PACKED = `# pack-refs with: peeled\n${OTHER} refs/heads/a\n${COMMIT} refs/heads/x/a\n^${OTHER}\n`;

test.each<[string, Readonly<Record<string, string>>, string | null]>([
  ['no checkout', {}, null],
  ['a detached head', { '.git/HEAD': `${COMMIT}\n` }, COMMIT],
  ['a branch', { '.git/HEAD': 'ref: refs/heads/main\n', '.git/refs/heads/main': `${COMMIT}\n` }, COMMIT],
  ['a packed branch', { '.git/HEAD': 'ref: refs/heads/x/a\n', '.git/packed-refs': PACKED }, COMMIT],
  [
    'a loose branch before a packed one',
    { '.git/HEAD': 'ref: refs/heads/x/a\n', '.git/packed-refs': PACKED, '.git/refs/heads/x/a': OTHER },
    OTHER,
  ],
  [
    'a linked work tree',
    {
      '.git': 'gitdir: main/.git/worktrees/w\n',
      'main/.git/worktrees/w/HEAD': 'ref: refs/heads/w\n',
      'main/.git/worktrees/w/commondir': '../..\n',
      'main/.git/refs/heads/w': `${COMMIT}\n`,
    },
    COMMIT,
  ],
  ['a branch without commits', { '.git/HEAD': 'ref: refs/heads/main\n' }, null],
  ['a head that is not a commit', { '.git/HEAD': 'hello\n' }, null],
])('%s', (_what, files, commit) => {
  write(files);
  expect(commitOf(folder)).toBe(commit);
});
