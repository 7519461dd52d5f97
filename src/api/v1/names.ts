import { isJsonObject, type JsonValue, memberOf } from '../json/json-value.ts';

/** The names of things, in their order. */
export function namesOf(things: Iterable<{ readonly name: string }>): string[] {
  return Array.from(things, (thing) => thing.name);
}

/** The `name` inside a definition, for messages; empty when it has none. */
export function nameIn(definition: JsonValue): string {
  const name = isJsonObject(definition) ? memberOf(definition, 'name') : undefined;
  return typeof name === 'string' ? name : '';
}
