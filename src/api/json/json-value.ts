import type { JsonObject } from '../../core/definition.ts';

/** Any JSON value from the reader. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** Narrows to a JSON object (not an array, not null). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own member `name` of an object; undefined without one, and for other values. */
export function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The `name` of a definition as text; empty without one. */
export function nameIn(definition: unknown): string {
  const name = memberOf(definition, 'name');
  return typeof name === 'string' || typeof name === 'number' || typeof name === 'boolean' ? String(name) : '';
}

/** A member that is a string; empty for anything else. */
export function textIn(value: unknown, name: string): string {
  const text = memberOf(value, name);
  return typeof text === 'string' ? text : '';
}

/** Items of the first of these members that is an array. */
export function itemsIn(value: unknown, ...names: readonly string[]): readonly unknown[] {
  for (const name of names) {
    const items = memberOf(value, name);
    if (Array.isArray(items)) return items;
  }
  return [];
}
