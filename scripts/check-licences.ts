/**
 * Checks the licences of production dependencies against a list: `node scripts/check-licences.ts` names every dependency with another
 * licence. The dependencies come from the lock file; licences come from the installed packages.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** SPDX names of licences that permit use beside code of the Apache License 2.0 without a notice of ours. */
const ALLOWED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Python-2.0',
  'Unlicense',
  'Zlib',
]);

/**
 * Reviewed packages, with their declared licences at that time (null: none). A package that declares another licence must be reviewed
 * again.
 */
const LOOKED_AT: ReadonlyMap<string, string | null> = new Map([
  // Its LICENSE file is BSD-3-Clause. A dependency of node-av, which does not load it here.
  ['@shinyoshiaki/jspack', null],
  // Copyleft for its own files, which are unchanged. A dependency of node-av, which does not load it here.
  ['mediabunny', 'MPL-2.0'],
]);

/** A package: its name with its folder, and its declared licence. */
export interface InstalledPackage {
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  /** Member `license` of its manifest, or its older forms; undefined if absent. */
  readonly licence: unknown;
}

/** One sentence for each package whose licence is not allowed. */
export function licenceFaults(packages: readonly InstalledPackage[]): string[] {
  return packages.flatMap(({ folder, name, version, licence }) => {
    const declared = expressionOf(licence);
    if (LOOKED_AT.has(name) && LOOKED_AT.get(name) === declared) return [];
    const who = `${name}@${version} (${folder})`;
    if (declared === null) return [`${who} declares no licence`];
    return isAllowed(declared) ? [] : [`${who} has the licence ${declared}, which is not on the list`];
  });
}

/** Whether an SPDX expression permits an allowed licence. An unreadable expression does not; exceptions (`WITH`) only add permissions. */
export function isAllowed(expression: string): boolean {
  const words = expression.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const isNext = (word: string): boolean => {
    const found = words[at]?.toUpperCase() === word;
    if (found) at += 1;
    return found;
  };
  const either = (): boolean => {
    let allowed = both();
    while (isNext('OR')) allowed = both() || allowed;
    return allowed;
  };
  const both = (): boolean => {
    let allowed = one();
    while (isNext('AND')) allowed = one() && allowed;
    return allowed;
  };
  const one = (): boolean => {
    if (isNext('(')) {
      const allowed = either();
      return isNext(')') && allowed;
    }
    const name = words[at] ?? '';
    at += 1;
    if (isNext('WITH')) at += 1;
    return ALLOWED.has(name);
  };
  const allowed = either();
  return allowed && at === words.length;
}

/** Older manifests have `{ type }`, or a list of such objects as alternatives. */
function expressionOf(licence: unknown): string | null {
  if (typeof licence === 'string') return licence === '' ? null : licence;
  const all = (Array.isArray(licence) ? licence : [licence]).map((one: unknown) =>
    typeof one === 'object' && one !== null && 'type' in one ? String(one.type) : one,
  );
  return all.length > 0 && all.every((one) => typeof one === 'string') ? `(${all.join(' OR ')})` : null;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly license?: unknown;
  readonly licenses?: unknown;
}

interface Locked extends Manifest {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

/** Production dependencies of the project in `root`. Throws for a missing package. */
export function productionPackages(root: string): InstalledPackage[] {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> };
  return Object.entries(packages).flatMap(([folder, locked]) => {
    if (folder === '' || locked.dev === true) return [];
    const manifest = manifestIn(path.join(root, folder));
    // Packages for other systems are only in the lock file.
    if (manifest === null && locked.optional !== true && locked.devOptional !== true) throw new Error(`${folder} is not installed`);
    const { version = '', license, licenses } = manifest ?? locked;
    const name = manifest?.name ?? folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
    return [{ folder, name, version, licence: license ?? licenses }];
  });
}

function manifestIn(folder: string): Manifest | null {
  try {
    return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Manifest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

if (import.meta.main) {
  const packages = productionPackages(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
  const faults = licenceFaults(packages);
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
  else console.log(`the licences of ${packages.length} production dependencies are on the list`);
}
