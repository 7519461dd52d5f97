import { readFileSync } from 'node:fs';
import type { TSchema } from '@sinclair/typebox';
import { expect, test } from 'vitest';
import { configReference, idleReference } from '../../scripts/generate-config-reference.ts';
import { fieldsOf } from './field-plan.ts';
import { ServerSchema } from './index.ts';

test('docs/reference/configuration.md matches the schemas', () => {
  const page = readFileSync(new URL('../../docs/reference/configuration.md', import.meta.url), 'utf8');
  expect(page, 'run: node scripts/generate-config-reference.ts').toBe(configReference());
});

test('docs/reference/no-effect.md matches the schemas', () => {
  const page = readFileSync(new URL('../../docs/reference/no-effect.md', import.meta.url), 'utf8');
  expect(page, 'run: node scripts/generate-config-reference.ts').toBe(idleReference());
});

test('every member of every resource is described', () => {
  const silent: string[] = [];
  const visit = (schema: TSchema, path: string): void => {
    for (const field of fieldsOf(schema)) {
      const here = `${path}.${field.key}`;
      if ((field.schema.description ?? '').length < 2) silent.push(here);
      const inner = field.items?.shape === 'object' ? field.items.schema : field.shape === 'object' ? field.schema : undefined;
      if (inner !== undefined) visit(inner, here);
    }
  };
  visit(ServerSchema, 'server');
  expect(silent).toEqual([]);
});
