import { expect, test } from 'vitest';
import { guidedProcess } from './engine/guided-process.ts';
import { fuzzTests } from './support/fuzz-tests.ts';
import { FRAMING_TARGETS } from './targets/framing.ts';

fuzzTests('byte streams', FRAMING_TARGETS);

// Counted in blocks, not timed: quadratic work shows in blocks long before it shows in seconds.
test.each(['http-cuts', 'rtsp-cuts'])('%s: the cost of a byte does not grow with the bytes received before it', async (name) => {
  const { work } = await guidedProcess(name, { milliseconds: 1, seed: 1, keeps: 'nothing' });
  expect(work).toBeLessThan(1);
});
