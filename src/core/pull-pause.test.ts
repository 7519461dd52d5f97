import { expect, it } from 'vitest';
import { pullPause } from './pull-pause.ts';

const pauses = (tries: readonly number[], urls: number, persistent: boolean): number[] =>
  tries.map((failures) => pullPause(failures, { urls, persistent }, 1));

it('a persistent stream is retried with delays that grow with each round over its URLs, up to half a minute', () => {
  expect(pauses([1, 2, 3, 4, 5, 6, 7, 8, 1e9], 1, true)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  expect(pauses([1, 2, 3, 4, 5, 6, 7], 3, true)).toEqual([500, 500, 500, 1000, 1000, 1000, 2000]);
});

it('a stream that is not persistent is retried at a constant interval', () => {
  expect(pauses([1, 2, 10], 1, false)).toEqual([500, 500, 500]);
});

it('streams of one origin return at different times', () => {
  expect([0, 0.5, 1].map((random) => pullPause(7, { urls: 1, persistent: true }, random))).toEqual([24_000, 27_000, 30_000]);
});
