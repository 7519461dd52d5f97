import { expect, test } from 'vitest';
import { clientTypes, keptClientTypes } from '../../scripts/openapi-types/generate.ts';

test('src/client/openapi-types.ts equals the output of the generator for the OpenAPI document', async () => {
  expect(keptClientTypes() === (await clientTypes()), 'run: node scripts/openapi-types/generate.ts').toBe(true);
});
