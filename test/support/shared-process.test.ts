import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('modules that several test files load have no hooks, which would run for the first file only', () => {
  const modules = globSync('test/{fakes,support,harness,validator}/**/*.ts').filter(
    (file) => !/\.test\.ts$|harness\/shared-process\.ts$/.test(file),
  );
  expect(modules.length).toBeGreaterThan(100);
  const withHooks = modules.filter((file) => /^(?:after|before)(?:Each|All)\(/m.test(readFileSync(file, 'utf8')));
  expect(withHooks).toEqual([]);
});
