/** Keys inside the definitions of applications: shown without their hashes, and kept if a client sends the shown form. */
import { KEY_LISTS } from '../config/index.ts';
import type { JsonObject } from '../core/definition.ts';
import { isJsonObject, memberOf, nameIn } from './json/json-value.ts';

/** Members that contain the key. */
const SECRETS: readonly string[] = ['key', 'token', 'hash'];

/** The items of a list of keys in a definition. */
export function keysIn(definition: JsonObject, list: string): readonly JsonObject[] {
  const items = memberOf(definition, list);
  return Array.isArray(items) ? items.filter(isJsonObject) : [];
}

/** `item` without secrets. */
export function shownKey(item: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(item).filter(([member]) => !SECRETS.includes(member)));
}

/** A definition for an answer. */
export function withoutHashes(definition: JsonObject): JsonObject {
  const lists = KEY_LISTS.filter((list) => definition[list] !== undefined);
  return { ...definition, ...Object.fromEntries(lists.map((list) => [list, keysIn(definition, list).map(shownKey)])) };
}

/** `changed` with the hashes of `present` for keys that it names without the key itself. */
export function withKnownHashes(present: JsonObject, changed: JsonObject): JsonObject {
  const lists = KEY_LISTS.flatMap((list) => {
    const items = memberOf(changed, list);
    return Array.isArray(items) ? [[list, items.map((item: unknown) => known(item, keysIn(present, list)))] as const] : [];
  });
  return { ...changed, ...Object.fromEntries(lists) };
}

function known(item: unknown, present: readonly JsonObject[]): unknown {
  if (!isJsonObject(item) || SECRETS.some((member) => memberOf(item, member) !== undefined)) return item;
  const hash = memberOf(
    present.find((key) => nameIn(key) === nameIn(item)),
    'hash',
  );
  return hash === undefined ? item : { ...item, hash };
}
