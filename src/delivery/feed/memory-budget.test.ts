import { expect, test } from 'vitest';
import { MemoryBudget } from './memory-budget.ts';
import type { Span } from './messages.ts';

const feed = {
  store: (chunks: readonly Uint8Array[]): readonly Span[] => chunks.map(({ length }, block) => ({ block, offset: 0, length })),
  release: () => undefined,
};

test('counts stored spans until they are released', () => {
  const budget = new MemoryBudget(feed, 100);
  const spans = budget.store([new Uint8Array(60), new Uint8Array(50)]);
  expect(budget.held).toBe(110);
  budget.release(spans.slice(1));
  expect(budget.held).toBe(60);
});

test('beyond the limit asks for memory from holders of at least an equal part', () => {
  const budget = new MemoryBudget(feed, 100);
  const large = budget.store([new Uint8Array(90)]);
  const small = budget.store([new Uint8Array(10)]);
  expect(budget.asksBack(2, () => large)).toBe(false);
  budget.store([new Uint8Array(1)]);
  expect(budget.asksBack(2, () => large)).toBe(true);
  expect(budget.asksBack(2, () => small)).toBe(false);
});
