/** Deep merge of a PATCH body into the object it changes. */
import type { EchoObject } from './reader.ts';

/**
 * Objects are merged member by member, everything else replaces. A `null` stays in the result: readers take
 * it as absent. Neither argument is changed.
 */
export function mergePatch(target: EchoObject, patch: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const members = new Map<string, unknown>(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    const present = members.get(key);
    members.set(key, isObject(present) && isObject(value) ? mergePatch(present as EchoObject, value) : value);
  }
  return Object.fromEntries(members);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
