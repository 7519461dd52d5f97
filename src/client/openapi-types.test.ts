import { expect, test } from 'vitest';
import { clientTypes, keptClientTypes } from '../../scripts/openapi-types/generate.ts';

test('src/client/openapi-types.ts is what the generator makes of the OpenAPI document', async () => {
  expect(keptClientTypes() === (await clientTypes()), 'run: node scripts/openapi-types/generate.ts').toBe(true);
});
