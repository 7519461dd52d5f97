/** Disk space of a production installation, from the packages of this checkout. */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
const MIB = 1_048_576;
const BLOCK = 512;
/** Limit of `node_modules` after `npm ci --omit=dev --ignore-scripts`, MiB. */
const MOST = 250;

interface Entry {
  readonly dev?: boolean;
  /** A folder of the repository, which is not installed itself. */
  readonly link?: boolean;
}

/** Counts as `du` does: blocks, each file once even with several names. */
function blocksOf(place: string, counted: Set<string>): number {
  const file = lstatSync(place);
  const id = `${file.dev} ${file.ino}`;
  if (counted.has(id)) return 0;
  counted.add(id);
  const inside = file.isDirectory() ? readdirSync(place).map((name) => blocksOf(path.join(place, name), counted)) : [];
  return inside.reduce((sum, each) => sum + each, file.blocks);
}

test('packages for production are at most 250 MiB without Node.js itself', () => {
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')) as { packages: Record<string, Entry> };
  // Node.js is on the machine, or comes through the install script of its package, whose download no lock file names.
  const names = Object.keys(packages).filter((name) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(name) && name !== 'node_modules/node');
  const there = names.filter((name) => packages[name]?.dev !== true && packages[name]?.link !== true && existsSync(path.join(ROOT, name)));
  const counted = new Set<string>();
  const sizes = there.map((name) => ({ name, mib: (blocksOf(realpathSync(path.join(ROOT, name)), counted) * BLOCK) / MIB }));
  const largest = sizes.sort((a, b) => b.mib - a.mib).slice(0, 8);
  const sum = sizes.reduce((total, { mib }) => total + mib, 0);
  // Proves that packages were counted at all.
  expect(largest[0]?.name).toMatch(/^node_modules\/@seydx\/node-av-/);
  expect(sum, largest.map(({ name, mib }) => `${name} ${mib.toFixed(1)}`).join(', ')).toBeLessThanOrEqual(MOST);
});
