import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadAddon } from './addon.ts';

const FILE = fileURLToPath(new URL('../../native/build/millrace.node', import.meta.url));
const isReadable = loadAddon().addon !== null && spawnSync('readelf', ['--version']).status === 0;

test.skipIf(!isReadable)('the addon is built with RELRO, stack protection and a non-executable stack', () => {
  const said = execFileSync('readelf', ['-ldW', '--dyn-syms', FILE], { encoding: 'utf8' });
  // Tables are read-only before the first call, and no stack is code.
  expect(said).toMatch(/GNU_RELRO/);
  expect(said).toMatch(/FLAGS_1\).* NOW/);
  expect(said).toMatch(/GNU_STACK .* RW +0x/);
  // Stacks and copies are watched.
  expect(said).toMatch(/__stack_chk_fail/);
  expect(said).toMatch(/__mem\w+_chk/);
});
