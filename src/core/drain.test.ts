import { expect, it } from 'vitest';
import { Drain } from './drain.ts';

it('notifies its followers of changes only', () => {
  const drain = new Drain();
  const told: boolean[] = [];
  drain.follow((active) => told.push(active));
  for (const active of [false, true, true, false, false]) drain.set(active);
  expect([told, drain.active]).toEqual([[true, false], false]);
});
