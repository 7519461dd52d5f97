import { expect, test } from 'vitest';
import { MediaMemory } from './media-memory.ts';

const LENGTH = 100_000;
/** Buffers after which the size of the process has been looked up. */
const FIRST = 84;

/** How much of what is allocated in a process of `resident` bytes is counted by V8. */
function countedShare(resident: number): number {
  const memory = new MediaMemory(() => resident);
  for (let n = 0; n < FIRST; n += 1) memory.allocate(LENGTH);
  const buffers = Array.from({ length: 1000 }, () => memory.allocate(LENGTH));
  expect(new Set(buffers.map(({ length, byteOffset, buffer }) => `${length} ${byteOffset} ${buffer.byteLength}`))).toEqual(
    new Set([`${LENGTH} 0 ${LENGTH}`]),
  );
  return buffers.filter(({ buffer }) => buffer instanceof ArrayBuffer).length / buffers.length;
}

test('V8 counts all of it in a process of up to 400 MB, and its 64 MB are 15 % of a larger process', () => {
  expect(countedShare(100e6)).toBe(1);
  expect(countedShare(400e6)).toBe(1);
  expect(countedShare(1e9)).toBeCloseTo((64 * 2 ** 20) / 150e6, 2);
  expect(countedShare(10e9)).toBeCloseTo((64 * 2 ** 20) / 1.5e9, 2);
});

test('V8 does not count shared buffers', () => {
  const memory = new MediaMemory(() => 1e15);
  for (let n = 0; n < FIRST; n += 1) memory.allocate(LENGTH);
  const before = process.memoryUsage();
  const kept = Array.from({ length: 100 }, () => memory.allocate(1e6));
  const after = process.memoryUsage();
  expect(after.external - before.external).toBeLessThan(5e6);
  expect(after.arrayBuffers - before.arrayBuffers).toBeGreaterThan(95e6);
  expect(kept).toHaveLength(100);
});

test('the size of the process is looked up each 8 MB', () => {
  let looks = 0;
  const memory = new MediaMemory(() => {
    looks += 1;
    return 1e9;
  });
  for (let n = 0; n < 1000; n += 1) memory.allocate(LENGTH);
  expect(looks).toBe(11);
});
