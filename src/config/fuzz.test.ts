import type { TSchema } from '@sinclair/typebox';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fieldsOf } from './field-plan.ts';
import {
  ApplicationSchema,
  applicationDefaults,
  ConfigError,
  ConfigErrors,
  defaultServerXml,
  mergePatch,
  parseServerConfig,
  readApplication,
  readOutputProfile,
  readVirtualHost,
  VirtualHostSchema,
} from './index.ts';

const macros = { env: {}, home: '/', currentPath: '/' };

function onlyConfigErrors(action: () => unknown): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof ConfigErrors)) throw error;
    expect(error.message).not.toBe('');
  }
}

/** JSON that knows the keys of a schema and gets most else wrong. */
function nearly(schema: TSchema, depth = 0): fc.Arbitrary<unknown> {
  if (depth > 6) return fc.jsonValue({ maxDepth: 2 });
  const members: Record<string, fc.Arbitrary<unknown>> = {};
  for (const field of fieldsOf(schema)) {
    const inner = field.shape === 'object' ? nearly(field.schema, depth + 1) : scalar;
    const items = field.items?.shape === 'object' ? nearly(field.items.schema, depth + 1) : scalar;
    const value = field.shape === 'list' ? fc.array(items, { maxLength: 2 }) : inner;
    members[field.jsonKeys[0] ?? field.key] = fc.oneof({ weight: 9, arbitrary: value }, fc.jsonValue({ maxDepth: 1 }));
  }
  return fc.record(members, { requiredKeys: [] });
}

const scalar = fc.oneof(
  fc.constantFrom('live', 'eq', 'h264', 'aac', '1', '4000/udp', 'true', 'all', 'a', '$' + '{env:X}'),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.string(),
);

describe('any input causes configuration errors only', () => {
  test('any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        for (const read of [readVirtualHost, readApplication, readOutputProfile]) onlyConfigErrors(() => read(applicationDefaults(json)));
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ['a virtual host', VirtualHostSchema, readVirtualHost],
    ['an application', ApplicationSchema, readApplication],
  ])('JSON that looks like %s', (_title, schema, read) => {
    fc.assert(
      fc.property(nearly(schema), (json) => onlyConfigErrors(() => read(json))),
      { numRuns: 150 },
    );
  });

  test('an echoed application is read to the same application again', () => {
    const providers = fieldsOf(ApplicationSchema).find(({ key }) => key === 'publishers');
    fc.assert(
      fc.property(nearly(providers?.schema ?? ApplicationSchema), (publishers) => {
        onlyConfigErrors(() => {
          const first = readApplication({ name: 'a', type: 'live', publishers });
          expect(readApplication(JSON.parse(JSON.stringify(first.echo)))).toEqual(first);
        });
      }),
      { numRuns: 200 },
    );
  });

  test('the shipped file with characters changed', () => {
    const text = defaultServerXml();
    const edit = fc.tuple(
      fc.nat(text.length),
      fc.nat(12),
      fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('<', '>', '&', '/', '"', '<!--', ']]>', '<X', '&#0;')),
    );
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
        let mutated = text;
        for (const [at, count, insert] of edits) mutated = mutated.slice(0, at) + insert + mutated.slice(at + count);
        onlyConfigErrors(() => parseServerConfig(mutated, 'Server.xml', { macros, directory: '/nonexistent' }));
      }),
      { numRuns: 300 },
    );
  });
});

describe('mergePatch', () => {
  test('merges objects, replaces everything else and changes neither side', () => {
    const target = { publishers: { llhls: { segmentCount: 5 }, ovt: {} }, list: [1, 2], type: 'live' };
    const before = structuredClone(target);
    expect(mergePatch(target, { publishers: { llhls: { segmentDuration: 4 }, file: {}, ovt: null }, list: [3], type: 'vod' })).toEqual({
      publishers: { llhls: { segmentCount: 5, segmentDuration: 4 }, ovt: null, file: {} },
      list: [3],
      type: 'vod',
    });
    expect(target).toEqual(before);
  });

  test('a null removes the member', () => {
    const { echo } = readApplication(applicationDefaults({ name: 'a', type: 'live' }));
    const patched = readApplication(mergePatch(echo, { publishers: { ovt: null } }));
    expect(Object.keys(patched.echo['publishers'] ?? {})).toEqual(['llhls', 'webrtc']);
    expect(patched.typed.publishers.ovt).toBeUndefined();
  });

  test('cannot reach prototypes', () => {
    const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
