import { expect, test } from 'vitest';
import { similarName } from './similar-name.js';

const KNOWN = ['SegmentCount', 'SegmentDuration', 'LLHLS', 'HLS', 'Url', 'Port'];

test.each([
  ['SegmentCuont', 'SegmentCount'],
  ['segmentcount', 'SegmentCount'],
  ['SegmentCounts', 'SegmentCount'],
  ['SegmentDurtion', 'SegmentDuration'],
  ['SegmntDurtion', 'SegmentDuration'],
  ['LLHSL', 'LLHLS'],
  ['hls', 'HLS'],
])('%s is meant to be %s', (written, meant) => {
  expect(similarName(written, KNOWN)).toBe(meant);
});

test.each(['Bogus', 'Pxrts', 'LLHPL', 'SegmentLength', 'Uri', 'HSL', '', 'P', 'x'.repeat(1_000_000)])(
  '%.20s has no similar name',
  (written) => {
    expect(similarName(written, KNOWN)).toBeUndefined();
  },
);

test('the name with the fewest typos is returned', () => {
  expect(similarName('MinBitrat', ['MaxBitrate', 'MinBitrate'])).toBe('MinBitrate');
});
