import { expect, test } from 'vitest';
import { mergeJson } from './merge-json.ts';

test('objects merge member by member, the rest replaces', () => {
  const target = { publishers: { llhls: { segmentDuration: 6, segmentCount: 10 }, ovt: {} }, list: [1, 2], type: 'live' };
  const merged = mergeJson(target, { publishers: { llhls: { segmentDuration: 4 }, file: {} }, list: [3], type: { odd: true } });
  expect(merged).toEqual({
    publishers: { llhls: { segmentDuration: 4, segmentCount: 10 }, ovt: {}, file: {} },
    list: [3],
    type: { odd: true },
  });
  expect(target.publishers.llhls.segmentDuration).toBe(6);
});

test('null removes a member', () => {
  expect(mergeJson({ a: { b: 1, c: 2 }, d: 3 }, { a: { b: null }, d: null, e: null })).toEqual({ a: { c: 2 } });
});

test('a patch cannot reach the prototype', () => {
  const patch = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  mergeJson({}, patch);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
