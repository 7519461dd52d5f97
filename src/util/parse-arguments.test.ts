import { expect, test } from 'vitest';
import { parseArguments } from './parse-arguments.js';

const options = { config: { type: 'string' }, 'log-level': { type: 'string' }, json: { type: 'boolean', short: 'j' } } as const;

test('known options have their values', () => {
  const { values, positionals } = parseArguments({ args: ['--config', 'a', '-j', 'x'], allowPositionals: true, options });
  expect([{ ...values }, positionals]).toEqual([{ config: 'a', json: true }, ['x']]);
});

test.each([
  [['--confg', 'a'], "unknown option '--confg' (did you mean --config?)"],
  [['--confg=a'], "unknown option '--confg' (did you mean --config?)"],
  [['--loglevel', 'a'], "unknown option '--loglevel' (did you mean --log-level?)"],
  [['--jsn'], "unknown option '--jsn' (did you mean --json?)"],
  [['--colour'], "unknown option '--colour'"],
  [['-c'], "unknown option '-c'"],
  [['--config'], "option '--config <value>' argument missing"],
  [['--json=1'], "option '-j, --json' does not take an argument"],
  [['x'], "unexpected argument 'x'"],
])('%j is refused with one sentence: %s', (args, sentence) => {
  expect(() => parseArguments({ args, options })).toThrow(new Error(sentence));
});
