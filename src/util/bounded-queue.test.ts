import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { BoundedQueue } from './bounded-queue.ts';

function queueOf(threshold: number, clock = new ManualClock()) {
  return new BoundedQueue<number>({ id: 1, urn: 'mngq:v=v#a:p=imr:r=indicator', type: 'number', threshold, clock });
}

describe('BoundedQueue', () => {
  it('refuses items beyond its size and keeps the others', () => {
    const queue = queueOf(2);
    expect([queue.push(1), queue.push(2), queue.push(3)]).toEqual([true, true, false]);
    expect(queue.full).toBe(true);
    expect([queue.shift(), queue.shift(), queue.shift()]).toEqual([1, 2, undefined]);
  });

  it('behaves like an array of limited length for any order of operations', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(3, 40),
        fc.array(fc.option(fc.integer(), { nil: undefined }), { maxLength: 200, size: 'max' }),
        (limit, operations) => {
          const queue = queueOf(limit);
          const model: number[] = [];
          for (const value of operations) {
            if (value === undefined) {
              expect(queue.shift()).toBe(model.shift());
            } else {
              expect(queue.push(value)).toBe(model.length < limit);
              if (model.length < limit) model.push(value);
            }
            expect(queue.size).toBe(model.length);
          }
        },
      ),
    );
  });

  it('measures rates per second and the waiting time in microseconds', () => {
    const clock = new ManualClock();
    const queue = queueOf(10, clock);
    for (let index = 0; index < 4; index += 1) queue.push(index);
    clock.advance(10);
    for (let index = 0; index < 4; index += 1) queue.shift();
    clock.advance(990);
    expect(queue.status()).toMatchObject({ size: 0, peak: 4, drop: 0, inputPerSecond: 4, outputPerSecond: 4, avgWaitingTime: 10_000 });
  });

  it('counts what its owner drops', () => {
    const queue = queueOf(2);
    queue.push(1);
    queue.push(2);
    queue.dropAll();
    queue.countDrop(3);
    expect(queue.status()).toMatchObject({ size: 0, drop: 5, peak: 2, threshold: 2 });
    expect(queue.push(7)).toBe(true);
    expect(queue.shift()).toBe(7);
  });
});
