import { expect, test } from 'vitest';
import { ApplicationSchema } from '../../config/index.ts';
import { spelledLike } from './spelling.ts';

test('members take the existing spelling', () => {
  const target = { publishers: { llhls: { dVR: { enable: true } } }, name: 'a' };
  const patch = { publishers: { llhls: { dvr: { Enable: false, maxDuration: 1 } }, hls: { dvr: {} } }, Name: 'b', x: 1 };
  expect(spelledLike(ApplicationSchema, target, patch)).toEqual({
    publishers: { llhls: { dVR: { Enable: false, maxDuration: 1 } }, hls: { dvr: {} } },
    Name: 'b',
    x: 1,
  });
});

test('members of the prototype are plain data', () => {
  const patch = JSON.parse('{"__proto__":{"polluted":true},"toString":1}');
  expect(Object.keys(spelledLike(ApplicationSchema, {}, patch))).toEqual(['__proto__', 'toString']);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
