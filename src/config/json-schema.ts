/** Schemas for other programs: plain JSON schema for OpenAPI and clients. */
import type { TSchema } from '@sinclair/typebox';

/** A JSON schema without the marks of TypeBox and without `x-config`, as it may be printed. */
export interface JsonSchema {
  [keyword: string]: unknown;
}

/**
 * The JSON Schema of a request body: without the notes for the reader, and members with a default are optional. The result is plain data
 * and may be changed.
 */
export function jsonSchemaOf(schema: TSchema): JsonSchema {
  const { 'x-config': _, properties, required, items, ...rest } = schema as JsonSchema;
  const result = structuredClone(Object.fromEntries(Object.entries(rest))) as JsonSchema;
  if (items !== undefined) result['items'] = jsonSchemaOf(items as TSchema);
  if (properties === undefined) return result;
  const members = properties as Readonly<Record<string, TSchema>>;
  result['properties'] = Object.fromEntries(Object.entries(members).map(([key, member]) => [key, jsonSchemaOf(member)]));
  const needed = ((required as readonly string[] | undefined) ?? []).filter((key) => members[key]?.default === undefined);
  if (needed.length > 0) result['required'] = needed;
  return result;
}
