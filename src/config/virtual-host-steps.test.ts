import { expect, test } from 'vitest';
import { atOnce } from '../util/in-slices.ts';
import { ConfigError, readVirtualHost, virtualHostSteps } from './index.ts';

const application = (n: number, more: object = {}) => ({ name: `app${n}`, type: 'live', providers: { rtmp: {} }, ...more });
const many = Array.from({ length: 50 }, (_, n) =>
  application(n, n === 7 ? { publishKeys: [{ name: 'k', key: 'a-key-of-application-7' }] } : {}),
);
const host = (applications: unknown, more: object = {}) => ({ name: 'v', host: { names: ['n'] }, ...more, applications });

function faultOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'none';
}

test('a virtual host with many applications is read in a step for each, with the same result', () => {
  const steps = virtualHostSteps(host(many), { directory: '/etc' });
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count += 1;
  expect(count).toBe(50);
  expect(step.value).toEqual(readVirtualHost(host(many), { directory: '/etc' }));
});

test.each([
  ['a few applications', host(many.slice(0, 2))],
  ['none', host([])],
  ['a list that is an object', host({ application: many })],
  ['no list', { name: 'v' }],
])('%s are read at once', (_what, json) => {
  expect(virtualHostSteps(json).next()).toEqual({ done: true, value: readVirtualHost(json) });
});

test.each([
  ['a wrong value', host(many.with(30, application(30, { type: 7 })))],
  ['an unknown member', host(many.with(30, application(30, { typ: 'live' })))],
  ['an unknown member of the host', host(many, { nam: 'v' })],
  ['a name that is there twice', host(many.with(30, application(31)))],
  ['a template', host(many.with(30, { ...application(30), name: '*' }))],
  ['an item that is no object', host(many.with(30, 'x' as never))],
  ['nothing', null],
])('%s is refused with the words of one read at once', (_what, json) => {
  const fault = faultOf(() => readVirtualHost(json));
  expect(fault).not.toBe('none');
  expect(faultOf(() => atOnce(virtualHostSteps(json)))).toBe(fault);
});
