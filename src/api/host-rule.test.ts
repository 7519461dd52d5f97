import { expect, test } from 'vitest';
import { HostRule } from './host-rule.ts';

test.each([
  [['*'], 'anything', true],
  [['*'], undefined, true],
  [['api.example.org'], 'api.example.org', true],
  [['api.example.org'], 'API.Example.org:8081', true],
  [['api.example.org'], 'apixexample.org', false],
  [['*.example.org', '10.0.0.1'], 'a.b.example.org', true],
  [['*.example.org', '10.0.0.1'], '10.0.0.1:80', true],
  [['*.example.org', '10.0.0.1'], 'example.org', false],
  [['::1'], '[::1]:8081', true],
  [['::1'], '[::1]', true],
  [['localhost'], undefined, false],
  [[], 'localhost', false],
])('names %j, host %j: %j', (names, host, allowed) => {
  expect(new HostRule(names).check(host) === null).toBe(allowed);
});
