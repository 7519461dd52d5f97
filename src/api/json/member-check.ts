/** Checks the members of a request body against its schema, so that a misspelt member does not silently change the request. */
import type { TSchema } from '@sinclair/typebox';
import { ApiError } from '../errors.ts';
import { isJsonObject } from './json-value.ts';

/**
 * Refuses the first member of `body` that has a wrong type, or whose name resembles a known one. Missing and null members are checked
 * elsewhere. Throws `ApiError`.
 */
export function refuseMembers(body: unknown, schema: TSchema, path = ''): void {
  if (!isJsonObject(body)) return;
  const properties = schema['properties'] as Readonly<Record<string, TSchema>>;
  const known = Object.keys(properties);
  for (const [name, value] of Object.entries(body)) {
    const expected = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (expected === undefined) {
      const meant = known.find((candidate) => candidate.toLowerCase() === name.toLowerCase());
      if (meant !== undefined) throw new ApiError('MEMBER_UNKNOWN', path + name, path + meant);
    } else if (value !== null && !fits(value, expected)) throw new ApiError('MEMBER_INVALID', path + name, wordsFor(expected));
    else if (expected['type'] === 'object') refuseMembers(value, expected, `${path}${name}.`);
  }
}

function fits(value: unknown, schema: TSchema): boolean {
  const words = wordsOf(schema);
  if (words !== null) return words.some((word) => word === value);
  switch (schema['type']) {
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'integer':
      return Number.isSafeInteger(value) && Number(value) >= Number(schema['minimum'] ?? Number.NEGATIVE_INFINITY);
    case 'array':
      return Array.isArray(value) && value.every((item) => fits(item, schema['items'] as TSchema));
    case 'object':
      return isJsonObject(value);
    default:
      return true;
  }
}

/** The permitted texts of a member; null if other types are allowed. */
function wordsOf(schema: TSchema): readonly unknown[] | null {
  const choices = schema['anyOf'] as readonly TSchema[] | undefined;
  return choices === undefined ? null : choices.map((choice) => choice['const'] as unknown);
}

function wordsFor(schema: TSchema): string {
  const words = wordsOf(schema);
  if (words !== null) return words.filter((word) => word !== '').join(' or ');
  switch (schema['type']) {
    case 'boolean':
      return 'true or false';
    case 'integer':
      return schema['minimum'] === undefined ? 'a whole number' : `a whole number from ${schema['minimum']} on`;
    case 'array':
      return `an array of ${(schema['items'] as TSchema)['type'] === 'integer' ? 'whole numbers' : 'texts'}`;
    case 'object':
      return 'an object';
    default:
      return 'a text';
  }
}
