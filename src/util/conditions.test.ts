import { expect, test } from 'vitest';
import { Conditions, MAX_CONDITIONS } from './conditions.ts';

test('a condition stays until it is cleared, and equal reasons are listed once', () => {
  const conditions = new Conditions();
  conditions.raise('a', 'the disk is full');
  conditions.raise('b', 'the disk is full');
  conditions.raise('c', 'one port is closed');
  conditions.raise('c', 'two ports are closed');
  expect(conditions.reasons).toEqual(['the disk is full', 'two ports are closed']);
  conditions.clear('a');
  conditions.clear('unknown');
  expect(conditions.reasons).toEqual(['the disk is full', 'two ports are closed']);
  conditions.clear('b');
  conditions.clear('c');
  expect(conditions.reasons).toEqual([]);
});

test('conditions beyond the limit are only counted', () => {
  const conditions = new Conditions();
  for (let index = 0; index < MAX_CONDITIONS + 2; index += 1) conditions.raise(String(index), `reason ${index}`);
  conditions.raise('0', 'another reason');
  expect([conditions.reasons.length, conditions.unlisted, conditions.reasons[0]]).toEqual([MAX_CONDITIONS, 2, 'another reason']);
});

test('a reason from a callback is listed after the raised ones, while it is not null', () => {
  const conditions = new Conditions();
  let reason: string | null = null;
  conditions.ask(() => reason);
  expect(conditions.reasons).toEqual([]);
  reason = 'lines are dropped';
  conditions.raise('a', 'the disk is full');
  expect(conditions.reasons).toEqual(['the disk is full', 'lines are dropped']);
  reason = null;
  expect(conditions.reasons).toEqual(['the disk is full']);
});
