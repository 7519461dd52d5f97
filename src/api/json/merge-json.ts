import { isJsonObject, type JsonObject, memberOf, setMember } from './json-value.ts';

/**
 * Deep merge of `patch` into a copy of `target`: objects are merged member by member, null removes,
 * everything else (arrays and scalars) replaces.
 */
export function mergeJson(target: JsonObject, patch: JsonObject): JsonObject {
  const merged: JsonObject = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    const current = memberOf(merged, key);
    if (value === null) delete merged[key];
    else setMember(merged, key, isJsonObject(value) && isJsonObject(current) ? mergeJson(current, value) : value);
  }
  return merged;
}
