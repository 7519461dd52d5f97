/** One reader for both inputs: walks a schema and takes the values from the source. */
import type { TSchema } from '@sinclair/typebox';
import { type Field, fieldsOf } from './field-plan.ts';
import { expandMacros } from './macros.ts';
import { ConfigError, type Place, shown } from './problem.ts';
import { type Fail, notesOf } from './schema/field.ts';
import type { Reading, Source } from './source.ts';
import { type TextForm, textFault } from './text-forms.ts';
import type { Scalar } from './value.ts';
import { expectationOf, nameFault, readLeaf } from './value.ts';

/** JSON as the API shows it: the given members only, with their types. */
export type Echo = Scalar | Echo[] | EchoObject;
/** The echo of an object: its members as they were given, by the keys of the API. */
export interface EchoObject {
  [key: string]: Echo;
}

/** A value twice: completed and converted for use, and as it was given. */
export interface Read {
  readonly typed: unknown;
  readonly echo: Echo;
}

const NOTHING: unique symbol = Symbol('nothing could be read');
type Typed = Record<string, unknown>;

/** Reads an object. When `reading.errors` has grown, the result is not complete. */
export function readObject(schema: TSchema, source: Source, reading: Reading): { readonly typed: Typed; readonly echo: EchoObject } {
  const fields = fieldsOf(schema);
  const typed: Typed = {};
  const echoes: [string, Echo][] = [];
  const places = new Map<string, Place>();
  reading.places?.set(typed, source.place);
  reading.memberPlaces?.set(typed, places);
  if (!source.open(fields)) return { typed, echo: {} };
  const errorsBefore = reading.errors.length;
  for (const field of fields) {
    const member = field.shape === 'list' ? readList(field, source, reading) : readMember(field, source, reading);
    if (member === undefined) continue;
    if (member.typed !== NOTHING) typed[field.key] = member.typed;
    if (member.key === undefined) continue;
    echoes.push([member.key, member.echo]);
    if (member.place !== undefined) places.set(field.key, member.place);
  }
  source.reportUnknown(fields);
  if (reading.errors.length === errorsBefore) finish(schema, typed, source, places, reading);
  for (const key of notesOf(schema).alwaysEchoed ?? []) if (!echoes.some(([name]) => name === key)) echoes.push([key, []]);
  echoes.sort(([a], [b]) => (a < b ? -1 : 1));
  return { typed, echo: Object.fromEntries(echoes) };
}

interface Member {
  /** Key of the echo; undefined when the member was not given. */
  readonly key: string | undefined;
  readonly typed: unknown;
  readonly echo: Echo;
  readonly place?: Place;
}

function readMember(field: Field, source: Source, reading: Reading): Member | undefined {
  const found = source.member(field);
  if (found === undefined) return absent(field, source, reading);
  warnDeprecated(field, found.source.place, reading);
  const value =
    field.shape === 'object' ? readObject(field.schema, found.source, reading) : readScalar(field.schema, found.source, reading);
  return value === undefined ? undefined : { key: found.key, place: found.source.place, ...value };
}

function readList(field: Field, source: Source, reading: Reading): Member | undefined {
  const errorsBefore = reading.errors.length;
  const found = source.list(field);
  const { items } = field;
  if (found === undefined || items === undefined) {
    return reading.errors.length > errorsBefore ? undefined : absent(field, source, reading);
  }
  const values: Read[] = [];
  for (const item of found.items) {
    const value = items.shape === 'object' ? readObject(items.schema, item, reading) : readScalar(items.schema, item, reading);
    if (value !== undefined) values.push(value);
  }
  const typed =
    values.length === 0 && Array.isArray(field.schema.default) ? structuredClone(field.schema.default) : values.map((v) => v.typed);
  const { place } = source.placeOf(field);
  return { key: found.key, place, typed, echo: found.bare ? {} : values.map((value) => value.echo) };
}

function absent(field: Field, source: Source, reading: Reading): Member | undefined {
  if (field.required) {
    const { place, label } = source.placeOf(field);
    reading.errors.push(new ConfigError(`${label} is not optional`, place));
    return undefined;
  }
  const typed = defaultOf(field.schema, reading);
  return typed === undefined ? undefined : { key: undefined, typed, echo: {} };
}

/** The value of an absent member: its default, with all defaults inside it. */
function defaultOf(schema: TSchema, reading: Reading): unknown {
  const given: unknown = schema.default;
  if (given === undefined) return undefined;
  if (Array.isArray(given)) return structuredClone(given);
  if (typeof given === 'object') return defaultObject(schema, reading);
  const leaf = notesOf(schema).kind === 'path' ? { value: given } : readLeaf(schema, given as Scalar, reading.directory);
  return 'value' in leaf ? leaf.value : given;
}

function defaultObject(schema: TSchema, reading: Reading): Typed {
  const typed: Typed = {};
  for (const field of fieldsOf(schema)) {
    const value = defaultOf(field.schema, reading);
    if (value !== undefined) typed[field.key] = value;
  }
  notesOf(schema).finish?.(typed as never, () => {});
  return typed;
}

function readScalar(schema: TSchema, source: Source, reading: Reading): Read | undefined {
  const { place } = source;
  const given = source.scalar();
  if (given === undefined) {
    reading.errors.push(new ConfigError(`${place.path} must be ${expectationOf(schema)}, but got something with members`, place));
    return undefined;
  }
  const expanded = typeof given === 'string' && reading.macros !== null ? expandMacros(given, reading.macros) : given;
  const leaf = readLeaf(schema, expanded, reading.directory);
  if (!('value' in leaf)) {
    const message = 'message' in leaf ? leaf.message : `${place.path} must be ${leaf.expected}, but got ${shown(expanded)}`;
    reading.errors.push(new ConfigError(message, place));
    return { typed: NOTHING, echo: given };
  }
  const { kind, form } = notesOf(schema);
  if (kind === 'name') checkName(String(expanded), source, reading);
  if (form !== undefined) checkForm(form, String(expanded), source, reading);
  return { typed: leaf.value, echo: typedEcho(leaf.value, given) };
}

/** Responses have the types of the contract: a file holds texts only, and clients write numbers as texts and names as numbers. */
function typedEcho(value: unknown, given: Scalar): Scalar {
  return typeof value === 'number' || typeof value === 'boolean' ? value : String(given);
}

function checkName(name: string, source: Source, reading: Reading): void {
  const fault = nameFault(name);
  if (fault === undefined) return;
  const { place } = source;
  const message = `${place.path} ${fault.text}`;
  if (source.strict || fault.grave) reading.errors.push(new ConfigError(message, place));
  else reading.warnings.push({ ...place, message: `${message}; it cannot be addressed through the API` });
}

function checkForm(form: TextForm, text: string, source: Source, reading: Reading): void {
  const fault = textFault(form, text);
  if (fault === undefined) return;
  const { place } = source;
  const message = `${place.path} ${fault.text}, but got ${shown(text)}`;
  if (source.strict || fault.grave) reading.errors.push(new ConfigError(message, place));
  else reading.warnings.push({ ...place, message: `${message}; it cannot be used` });
}

function finish(schema: TSchema, typed: Typed, source: Source, places: ReadonlyMap<string, Place>, reading: Reading): void {
  const fields = fieldsOf(schema);
  const fail: Fail = (message, key) => {
    const field = fields.find((candidate) => candidate.key === key);
    const place = field === undefined ? source.place : (places.get(field.key) ?? source.placeOf(field).place);
    reading.errors.push(new ConfigError(message, place));
  };
  notesOf(schema).finish?.(typed as never, fail);
}

function warnDeprecated(field: Field, place: Place, reading: Reading): void {
  const { deprecated } = field.notes;
  if (deprecated !== undefined) reading.warnings.push({ ...place, message: `${place.path} is deprecated; use ${deprecated}` });
}
