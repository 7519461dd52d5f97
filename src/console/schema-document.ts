/** Reads the schemas of `GET /openapi.json`, as far as forms need them. */
import type { MillraceClient } from '../client/index.ts';

/** A JSON Schema in the subset of our document. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
}

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [name: string]: Json };

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const loaded = new WeakMap<MillraceClient, Promise<Document>>();

/** The schema of this name; requested once. Rejects as the client does, or if there is none. */
export async function schemaOf(client: MillraceClient, name: string): Promise<Schema> {
  let document = loaded.get(client);
  if (document === undefined) {
    document = client.get('/openapi.json').then((answer) => answer as unknown as Document);
    loaded.set(client, document);
    document.catch(() => loaded.delete(client));
  }
  const schema = (await document).components.schemas[name];
  if (schema === undefined) throw new Error(`The API has no schema ${name}`);
  return schema;
}

/** The initial value of a field; an object starts with its required members. */
export function beginningOf(schema: Schema): Json {
  if (schema.type === 'object') {
    return Object.fromEntries((schema.required ?? []).map((name) => [name, beginningOf(schema.properties?.[name] ?? {})]));
  }
  if (schema.type === 'array') return [];
  if (schema.type === 'boolean') return schema.default === true;
  if (schema.type === 'integer' || schema.type === 'number')
    return typeof schema.default === 'number' ? schema.default : (schema.minimum ?? 0);
  const [first = ''] = choicesOf(schema) ?? [];
  return typeof schema.default === 'string' ? schema.default : first;
}

/** The allowed values of a text; null for any. */
export function choicesOf({ enum: words, anyOf }: Schema): readonly string[] | null {
  if (words !== undefined) return words;
  return anyOf?.every((each) => each.const !== undefined) === true ? anyOf.map((each) => each.const ?? '') : null;
}

/** A schema without some of its members, which cannot be changed. */
export function schemaWithout(schema: Schema, names: readonly string[]): Schema {
  return {
    ...schema,
    properties: without(schema.properties ?? {}, names),
    required: (schema.required ?? []).filter((name) => !names.includes(name)),
  };
}

/** An object without some of its members. */
export function without<Value>(value: Readonly<Record<string, Value>>, names: readonly string[]): Record<string, Value> {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
}

/** The merge patch from `before` to `after`: objects are merged, `null` removes. Undefined: they are equal. */
export function patchOf(before: Json | undefined, after: Json): Json | undefined {
  if (JSON.stringify(before) === JSON.stringify(after)) return undefined;
  if (!isObject(before) || !isObject(after)) return after;
  const changes = Object.entries(after).flatMap(([name, value]): [string, Json][] => {
    const change = patchOf(before[name], value);
    return change === undefined ? [] : [[name, change]];
  });
  const gone = Object.keys(before).flatMap((name): [string, Json][] => (name in after ? [] : [[name, null]]));
  return Object.fromEntries([...changes, ...gone]);
}

/** Paths of all fields of a value: `publishers.llhls.segmentDuration`, `items[0].url`. */
export function pathsOf(value: Json, path = ''): string[] {
  const inside = Array.isArray(value)
    ? value.flatMap((item: Json, n: number) => pathsOf(item, `${path}[${n}]`))
    : isObject(value)
      ? Object.entries(value).flatMap(([name, item]) => pathsOf(item, path === '' ? name : `${path}.${name}`))
      : [];
  return path === '' ? inside : [path, ...inside];
}

/** The field of an error: the first whose path or else whose name is in the message. Null: none. */
export function fieldMeant(message: string, value: Json): string | null {
  const paths = pathsOf(value).sort((a, b) => b.length - a.length);
  const holds = (text: string): boolean =>
    new RegExp(`(?:^|[^\\w])${text.replace(/[.[\]*+?^${}()|\\]/g, '\\$&')}(?![\\w.[])`, 'i').test(message);
  const whole = paths.find((path) => path.includes('.') && holds(path));
  if (whole !== undefined) return whole;
  const byName = paths.filter((path) => holds(path.replace(/^.*\./, '').replace(/\[\d+\]$/, '')));
  return byName.sort((a, b) => a.split('.').length - b.split('.').length)[0] ?? null;
}

/** Neither an array nor null. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
