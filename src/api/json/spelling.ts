import type { TSchema } from '@sinclair/typebox';
import { fieldsOf } from '../../config/field-plan.ts';
import type { JsonObject } from '../../core/definition.ts';
import { isJsonObject, memberOf } from './json-value.ts';

/**
 * Renames members of `patch` to the spelling that `target` uses already: some members of `schema` have two
 * (`dVR` and `dvr`), and a definition may hold only one of them.
 */
export function spelledLike(schema: TSchema, target: JsonObject, patch: JsonObject): JsonObject {
  const fields = fieldsOf(schema);
  const members = Object.entries(patch).map(([key, value]) => {
    const field = fields.find(({ jsonKeys }) => jsonKeys.includes(key));
    const spelling = field?.jsonKeys.find((name) => Object.hasOwn(target, name)) ?? key;
    const present = memberOf(target, spelling);
    const isNested = field?.shape === 'object' && isJsonObject(present) && isJsonObject(value);
    return [spelling, isNested ? spelledLike(field.schema, present, value) : value] as const;
  });
  return Object.fromEntries(members);
}
