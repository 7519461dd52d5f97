import type { JsonObject } from '../../core/definition.ts';

/** Any JSON value as the reader gives it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** Narrows to a JSON object (not an array, not null). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own member `name` of an object; undefined when there is none, or no object. */
export function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The `name` of a definition as text; empty when it has none. */
export function nameIn(definition: unknown): string {
  const name = memberOf(definition, 'name');
  return typeof name === 'string' || typeof name === 'number' || typeof name === 'boolean' ? String(name) : '';
}
