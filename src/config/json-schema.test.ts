import { expect, test } from 'vitest';
import { ApplicationSchema, jsonSchemaOf, OutputProfileSchema, VirtualHostSchema } from './index.ts';

test('only members without a default are required', () => {
  expect(jsonSchemaOf(OutputProfileSchema)['required']).toEqual(['name', 'outputStreamName']);
  expect(jsonSchemaOf(VirtualHostSchema)['required']).toEqual(['name']);
});

test.each([VirtualHostSchema, ApplicationSchema, OutputProfileSchema])(
  'the schema of $description is data that survives JSON',
  (schema) => {
    const plain = jsonSchemaOf(schema);
    expect(JSON.parse(JSON.stringify(plain))).toEqual(plain);
    expect(JSON.stringify(plain)).not.toContain('x-config');
  },
);
