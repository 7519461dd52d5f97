/**
 * The TypeBox builder with the kinds that our schemas use. Results equal the package's own, whose entry point loads two hundred modules: a
 * tenth of the server's start time.
 */
import type { JavaScriptTypeBuilder, TObject, TProperties, TSchema } from '@sinclair/typebox';

/** TypeBox marks schemas with registered symbols, by which readers of schemas know them. */
const KIND = Symbol.for('TypeBox.Kind');
/** Marks a member that may be absent; schemas have it as a key. */
export const OptionalKind = Symbol.for('TypeBox.Optional');

type Kinds =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe';
type Options = object | undefined;

/** `schema` comes last, so that options cannot replace its kind. */
function make(options: Options, schema: object): object {
  return { ...options, ...schema };
}

function makeObject(properties: TProperties, options?: Options): object {
  const required = Object.keys(properties).filter((name) => !(OptionalKind in (properties[name] ?? {})));
  return make(options, { [KIND]: 'Object', type: 'object', ...(required.length > 0 && { required }), properties });
}

function makeOptional(schema: TSchema): TSchema {
  return { ...schema, [OptionalKind]: 'Optional' } as TSchema;
}

function makePartial({ $id: _, required: __, properties, ...rest }: TObject, options?: Options): object {
  const optional = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, makeOptional(schema)]));
  return { ...makeObject(optional, rest), ...options };
}

const BUILDER = {
  Array: (items: TSchema, options?: Options) => make(options, { [KIND]: 'Array', type: 'array', items }),
  Boolean: (options?: Options) => make(options, { [KIND]: 'Boolean', type: 'boolean' }),
  Integer: (options?: Options) => make(options, { [KIND]: 'Integer', type: 'integer' }),
  Literal: (value: unknown, options?: Options) => make(options, { [KIND]: 'Literal', const: value, type: typeof value }),
  Null: (options?: Options) => make(options, { [KIND]: 'Null', type: 'null' }),
  Number: (options?: Options) => make(options, { [KIND]: 'Number', type: 'number' }),
  Object: makeObject,
  Optional: makeOptional,
  Partial: makePartial,
  String: (options?: Options) => make(options, { [KIND]: 'String', type: 'string' }),
  Union: (types: readonly TSchema[], options?: Options) => make(options, { [KIND]: 'Union', anyOf: types }),
  Unknown: (options?: Options) => make(options, { [KIND]: 'Unknown' }),
  Unsafe: (options?: Options) => make(options, { [KIND]: 'Unsafe' }),
};

/** Types come from the package; kinds missing in `Kinds` are missing at run time too. */
export const Type = BUILDER as unknown as Pick<JavaScriptTypeBuilder, Kinds>;
