import { describe, expect, test } from 'vitest';
import { beginningOf, fieldMeant, patchOf } from './schema-document.ts';

describe('the contents of a PATCH', () => {
  test.each([
    [{ a: 1 }, { a: 1 }, undefined],
    [{ a: 1, b: { c: 1, d: 2 } }, { a: 1, b: { c: 3, d: 2 } }, { b: { c: 3 } }],
    [{ a: { b: {} } }, { a: {} }, { a: { b: null } }],
    [{ a: [1, 2] }, { a: [2] }, { a: [2] }],
    [{}, { a: { b: true } }, { a: { b: true } }],
  ])('from %j to %j: %j', (before, after, patch) => expect(patchOf(before, after)).toEqual(patch));
});

describe('the field that a refusal is about', () => {
  const value = {
    name: '',
    publishers: { llhls: { segmentDuration: -1 }, hls: { segmentDuration: 0 } },
    programs: [{ scheduled: 'x', items: [{ url: 'bad' }] }],
  };
  test.each([
    ['[Config] application.publishers.llhls.segmentDuration must be a number', 'publishers.llhls.segmentDuration'],
    ['[Config] application.publishers.hls.segmentDuration must be a number', 'publishers.hls.segmentDuration'],
    ['[Config] application.name must not be empty', 'name'],
    ['[HTTP] Failed to parse scheduled attribute: Invalid ISO 8601 string (400)', 'programs[0].scheduled'],
    ['[HTTP] Failed to parse url: bad (400)', 'programs[0].items[0].url'],
    ['Invalid programs[0].items[0].url', 'programs[0].items[0].url'],
    ['[HTTP] The VirtualHost is read-only: [default] (403)', null],
    ['(.*)+$ [[[', null],
  ])('%s', (message, path) => expect(fieldMeant(message, value)).toBe(path));
});

test('a new member starts with its required members', () => {
  const schema = {
    type: 'object',
    required: ['name', 'list', 'kind', 'count', 'on'],
    properties: {
      name: { type: 'string' },
      list: { type: 'array', items: { type: 'string' } },
      kind: { anyOf: [{ const: 'a' }, { const: 'b' }] },
      count: { type: 'integer', minimum: 1 },
      on: { type: 'boolean', default: true },
      other: { type: 'string' },
    },
  };
  expect(beginningOf(schema)).toEqual({ name: '', list: [], kind: 'a', count: 1, on: true });
});
