import { Type as Original, OptionalKind as originalOptionalKind } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { describe, expect, it } from 'vitest';
import { OptionalKind, Type } from './typebox.ts';

/** Schemas of all kinds. */
function schemas(type: typeof Type): Record<string, unknown> {
  const members = {
    text: type.String({ minLength: 1, description: 'words' }),
    count: type.Optional(type.Integer({ minimum: 0 })),
    list: type.Array(type.Number(), { maxItems: 3 }),
    choice: type.Union([type.Literal('a'), type.Literal(2, { title: 'two' })], { default: 'a' }),
    raw: type.Unsafe<'x'>({ type: 'string', enum: ['x'] }),
  };
  const object = type.Object(members, { additionalProperties: false, $id: 'id', title: 'all' });
  return {
    ...members,
    object,
    partial: type.Partial(object),
    described: type.Partial(object, { title: 'some', description: 'parts' }),
    empty: type.Object({}),
    optional: type.Object({ flag: type.Optional(type.Boolean()) }),
    kept: type.Optional(type.Array(type.Unknown(), { title: 'anything' })),
    contrary: type.String({ type: 'integer' } as object),
    bare: [
      type.String(),
      type.Integer(),
      type.Number(),
      type.Boolean(),
      type.Unknown(),
      type.Unsafe(),
      type.Union([object, type.Boolean()]),
    ],
  };
}

/** All content of a value, symbol keys included, in order. */
function spread(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(spread);
  if (typeof value !== 'object' || value === null) return value;
  return Reflect.ownKeys(value).map((key) => [String(key), spread((value as Record<PropertyKey, unknown>)[key])]);
}

describe('the builder of schemas', () => {
  const [ours, original] = [schemas(Type), schemas(Original as typeof Type)];

  it.each(Object.keys(original))('makes the same schema as TypeBox: %s', (name) => {
    expect(spread(ours[name])).toEqual(spread(original[name]));
  });

  it('marks optional members as TypeBox does', () => {
    expect(OptionalKind).toBe(originalOptionalKind);
  });

  it('makes schemas that TypeBox judges by', () => {
    const schema = Type.Object({ name: Type.String(), size: Type.Optional(Type.Integer()) });
    expect(
      [{ name: 'a' }, { name: 'a', size: 1 }, { size: 1 }, { name: 'a', size: 'b' }].map((value) => Value.Check(schema, value)),
    ).toEqual([true, true, false, false]);
  });
});
