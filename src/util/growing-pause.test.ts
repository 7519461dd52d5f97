import { expect, it } from 'vitest';
import { growingPause, scatteredPause } from './growing-pause.ts';

it('a pause doubles up to its limit, however often', () => {
  expect([0, 1, 2, 3, 4, 5, 1e9].map((doublings) => growingPause(doublings, 100, 1000))).toEqual([100, 200, 400, 800, 1000, 1000, 1000]);
});

it('a scattered pause is up to a fifth shorter, also at its limit', () => {
  expect([0, 0.5, 1].map((random) => scatteredPause(1, 500, 30_000, random))).toEqual([800, 900, 1000]);
  expect([0, 1].map((random) => scatteredPause(1e9, 500, 30_000, random))).toEqual([24_000, 30_000]);
});
