import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { StallGuard } from './stall-guard.ts';

test('a peer that reads now and then has not stalled, nor a peer without pending data', () => {
  const stream = { bytesWritten: 0, writableLength: 0 };
  const guard = new StallGuard(stream as unknown as Duplex, 1000);
  const look = (bytesWritten: number, writableLength: number, now: number): boolean => {
    Object.assign(stream, { bytesWritten, writableLength });
    return guard.isStalled(now);
  };
  expect([look(0, 0, 0), look(0, 0, 5000)]).toEqual([false, false]);
  expect([look(100, 50, 6000), look(100, 50, 7000), look(101, 50, 7500), look(101, 50, 8500)]).toEqual([false, false, false, false]);
  // Bytes that were added meanwhile do not count as taken.
  expect([look(201, 150, 8501), look(201, 0, 9000), look(202, 1, 10_000), look(202, 1, 10_001)]).toEqual([true, false, false, true]);
});
