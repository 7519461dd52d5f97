/** Schemas compiled for reading: every member with its names in JSON and XML. */
import type { TObject, TSchema } from '@sinclair/typebox';
import { OptionalKind } from '../util/typebox.ts';
import { type FieldNotes, notesOf } from './schema/field.ts';

/** One member of an object schema, ready for either reader: its names, and the type of its value. */
export interface Field {
  readonly key: string;
  readonly schema: TSchema;
  readonly notes: FieldNotes;
  /** Accepted keys; the first is the usual one. */
  readonly jsonKeys: readonly string[];
  readonly xmlNames: readonly string[];
  readonly shape: 'leaf' | 'object' | 'list';
  /** Lists only: the type of an item. */
  readonly items?: { readonly schema: TSchema; readonly shape: 'leaf' | 'object' };
  /** Lists with a container element: names of an item inside it. */
  readonly flatten?: { readonly jsonKey: string; readonly xmlName: string };
  readonly required: boolean;
}

const plans = new WeakMap<TSchema, readonly Field[]>();

/** The members of an object schema in the order they are read. */
export function fieldsOf(schema: TSchema): readonly Field[] {
  let fields = plans.get(schema);
  if (fields === undefined) {
    fields = Object.entries((schema as TObject).properties).map(([key, member]) => compile(key, member));
    plans.set(schema, fields);
  }
  return fields;
}

/** `outputStreamName` → `OutputStreamName`. */
function elementName(key: string): string {
  return key.charAt(0).toUpperCase() + key.slice(1);
}

/** The schema of an object's members, or of a list's objects. */
export function innerOf(field: Field): TSchema | undefined {
  if (field.shape === 'object') return field.schema;
  return field.items?.shape === 'object' ? field.items.schema : undefined;
}

/** The path of a member in `Server.xml`, relative to its owner. */
export function elementOf(field: Field): string {
  const name = field.notes.attribute === undefined ? (field.xmlNames[0] ?? field.key) : `@${field.notes.attribute}`;
  return field.flatten === undefined ? name : `${name}/${field.flatten.xmlName}`;
}

/** `name` appended to a path that may be empty. */
export function joined(separator: string, path: string, name: string): string {
  return path === '' ? name : `${path}${separator}${name}`;
}

function compile(key: string, schema: TSchema): Field {
  const notes = notesOf(schema);
  const aliases = notes.aliases ?? [];
  const items = shapeOf(schema) === 'list' ? (schema['items'] as TSchema) : undefined;
  const itemNotes = items === undefined ? {} : notesOf(items);
  return {
    key,
    schema,
    notes,
    jsonKeys: [key, ...aliases],
    xmlNames: [notes.xml ?? elementName(key), ...aliases.map(elementName)],
    shape: shapeOf(schema),
    ...(items === undefined ? {} : { items: { schema: items, shape: shapeOf(items) === 'object' ? 'object' : 'leaf' } }),
    ...(notes.flatten === undefined ? {} : { flatten: { jsonKey: notes.flatten, xmlName: itemNotes.xml ?? elementName(notes.flatten) } }),
    required: schema.default === undefined && !(OptionalKind in schema),
  };
}

function shapeOf(schema: TSchema): Field['shape'] {
  if (schema['type'] === 'object') return 'object';
  return schema['type'] === 'array' ? 'list' : 'leaf';
}
