import { expect, it } from 'vitest';
import { Semaphore } from './semaphore.ts';

it('runs tasks up to its limit, the others in order, even after a failure', async () => {
  const semaphore = new Semaphore(2);
  const began: number[] = [];
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const results = gates.map(({ promise }, index) =>
    semaphore.take(() => {
      began.push(index);
      return promise;
    }),
  );
  await Promise.resolve();
  expect(began).toEqual([0, 1]);
  gates[1]?.reject(new Error('no'));
  await expect(results[1]).rejects.toThrow('no');
  expect(began).toEqual([0, 1, 2]);
  for (const [index, gate] of gates.entries()) gate.resolve(index);
  expect((await Promise.allSettled(results)).map((result) => (result.status === 'fulfilled' ? result.value : 'no'))).toEqual([
    0,
    'no',
    2,
    3,
    4,
  ]);
  expect(await semaphore.take(async () => 'again')).toBe('again');
});

it('releases the place when the task throws at once', async () => {
  const semaphore = new Semaphore(1);
  const fails = semaphore.take(() => {
    throw new Error('at once');
  });
  await expect(fails).rejects.toThrow('at once');
  expect(await semaphore.take(async () => 1)).toBe(1);
});
