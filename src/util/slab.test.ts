import { expect, test } from 'vitest';
import { Slab } from './slab.ts';

test('buffers have their length and do not overlap, for any requested lengths', () => {
  const slab = new Slab();
  const lengths = [0, 1, 32_768, 32_769, 100_000, 5, 131_072, 7, ...Array.from({ length: 300 }, (_, n) => (n * 977) % 4000)];
  const buffers = lengths.map((length, index) => slab.allocate(length).fill(index % 251));
  expect(buffers.map(({ length }) => length)).toEqual(lengths);
  for (const [index, buffer] of buffers.entries()) expect(buffer.every((byte) => byte === index % 251)).toBe(true);
});

test('short buffers share memory, long ones have separate memory', () => {
  const slab = new Slab();
  expect(slab.allocate(10).buffer).toBe(slab.allocate(20).buffer);
  expect(slab.allocate(40_000).buffer.byteLength).toBe(40_000);
});
