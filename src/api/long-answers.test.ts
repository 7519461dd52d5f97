import { expect, test } from 'vitest';
import { turnsDuring } from '../../test/support/turns-during.ts';
import { ok } from './envelope.ts';
import { jsonInSlices, okInSlices, okList } from './long-answers.ts';

/** The steps of a long answer take `work` ms each, so that it has slices. */
function busy(work: number): void {
  const end = performance.now() + work;
  while (performance.now() < end);
}

const names = Array.from({ length: 1000 }, (_, n) => `stream "${n}"`);

test('a long list is the same as a short one, and lets others have their turns', async () => {
  const wanted = ok(names);
  const { turns, result } = await turnsDuring(() =>
    okList(names, (name) => {
      busy(0.02);
      return name;
    }),
  );
  expect(result).toEqual(wanted);
  expect(turns).toBeGreaterThan(2);
});

test('a short list is answered at once', () => {
  expect(okList(['a', 'b'], (name) => ({ name }))).toEqual(ok([{ name: 'a' }, { name: 'b' }]));
  expect(okList([], (name) => name)).toEqual(ok([]));
});

test('a deep answer is the same in slices', async () => {
  const value = { b: [{ d: [], c: {} }, null, [[1]], 'é'], a: undefined, '': { names } };
  expect(await okInSlices(value)).toEqual(ok(value));
  expect(await jsonInSlices([])).toBe('[]');
});
