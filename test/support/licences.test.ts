import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isAllowed, licenceFaults, productionPackages } from '../../scripts/check-licences.ts';

test.each([
  ['MIT', true],
  ['(MIT OR GPL-3.0-only)', true],
  ['GPL-3.0-only OR MIT', true],
  ['MIT AND GPL-3.0-only', false],
  ['(MIT AND ISC) OR GPL-3.0-only', true],
  ['MIT AND (GPL-3.0-only OR ISC)', true],
  ['GPL-3.0-only AND MIT OR ISC', true],
  ['Apache-2.0 WITH LLVM-exception', true],
  ['GPL-2.0-only WITH Classpath-exception-2.0', false],
  ['AGPL-3.0-only', false],
  ['SEE LICENSE IN LICENSE.md', false],
  ['UNLICENSED', false],
  ['MIT OR', false],
  ['(MIT', false],
  ['MIT) OR ISC', false],
  ['MIT ISC', false],
  ['', false],
])('%s: %s', (expression, allowed) => {
  expect(isAllowed(expression)).toBe(allowed);
});

const known = { folder: 'node_modules/x', name: 'x', version: '1.2.3' };

test('an unlisted licence and a missing licence are reported with the package', () => {
  expect(
    licenceFaults([
      { ...known, licence: 'MIT' },
      { ...known, licence: 'GPL-3.0-or-later' },
      { ...known, licence: undefined },
      { ...known, licence: '' },
      { ...known, licence: { type: 'ISC' } },
      { ...known, licence: [{ type: 'MIT' }, { type: 'GPL-2.0' }] },
      { ...known, licence: [{}] },
    ]),
  ).toEqual([
    'x@1.2.3 (node_modules/x) has the licence GPL-3.0-or-later, which is not on the list',
    ...Array.from({ length: 3 }, () => 'x@1.2.3 (node_modules/x) declares no licence'),
  ]);
});

test('an approved package is checked again when it declares another licence', () => {
  const mediabunny = { folder: 'node_modules/mediabunny', name: 'mediabunny', version: '1.0.0' };
  expect(licenceFaults([{ ...mediabunny, licence: 'MPL-2.0' }])).toEqual([]);
  expect(
    licenceFaults([
      { ...mediabunny, licence: 'AGPL-3.0-only' },
      { ...mediabunny, licence: undefined },
    ]),
  ).toHaveLength(2);
});

test('production dependencies of the lock file are checked, by their installed manifests', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'millrace-licences-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const install = (folder: string, manifest: object): void => {
    mkdirSync(path.join(root, folder), { recursive: true });
    writeFileSync(path.join(root, folder, 'package.json'), JSON.stringify(manifest));
  };
  const lock = (packages: object): void => writeFileSync(path.join(root, 'package-lock.json'), JSON.stringify({ packages }));
  const packages = {
    '': { name: 'us' },
    'node_modules/a': { version: '1.0.0', license: 'MIT' },
    'node_modules/a/node_modules/@s/b': { version: '2.0.0', license: 'MIT', devOptional: true },
    'node_modules/elsewhere': { version: '3.0.0', license: 'GPL-3.0-only', optional: true },
    'node_modules/dev': { version: '4.0.0', license: 'GPL-3.0-only', dev: true },
  };
  lock(packages);
  install('node_modules/a', { name: 'a', version: '1.0.1', license: 'GPL-2.0-only' });
  install('node_modules/a/node_modules/@s/b', { name: '@s/b', version: '2.0.0', licenses: [{ type: 'MIT' }] });
  const found = productionPackages(root);
  expect(found.map(({ name, version }) => `${name}@${version}`)).toEqual(['a@1.0.1', '@s/b@2.0.0', 'elsewhere@3.0.0']);
  expect(licenceFaults(found)).toEqual([
    'a@1.0.1 (node_modules/a) has the licence GPL-2.0-only, which is not on the list',
    'elsewhere@3.0.0 (node_modules/elsewhere) has the licence GPL-3.0-only, which is not on the list',
  ]);
  lock({ ...packages, 'node_modules/gone': { version: '1.0.0', license: 'MIT' } });
  expect(() => productionPackages(root)).toThrow('node_modules/gone is not installed');
});
