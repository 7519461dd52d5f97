import { describe, expect, test } from 'vitest';
import type { SegmentMark } from '../../media/segment-mark.ts';
import { markContents, parseMark } from './mark.ts';

const MARK: SegmentMark = {
  run: 'a-run',
  msn: 7,
  time: 12_345.6789,
  startTime: 1_795_458_744_798.5,
  discontinuity: true,
  discontinuities: 2,
  tags: '#EXT-X-DATERANGE:ID="1"\n',
  expected: 14_345.1000000001,
  earliest: 13_000,
  facts: {
    ...{ segmentDuration: 2, chunkDuration: 0.5, targetDuration: 0, partHoldBack: 1.5, offset: 1000 },
    tracks: [{ id: 3, partTicks: 45_034, generation: 1 }],
  },
};
const overTheWire = (mark: object): unknown => JSON.parse(JSON.stringify(mark));

test('a mark crosses to the last digit, with and without an expected end', () => {
  for (const mark of [MARK, { ...MARK, expected: null }]) {
    const placed = { trackId: 3, dts: 900_000, mark };
    expect(parseMark(overTheWire({ ...markContents(placed), later: 'versions say more' }))).toEqual(placed);
  }
});

describe('an invalid mark is refused with the member at fault:', () => {
  const contents = markContents({ trackId: 3, dts: 900_000, mark: MARK });
  test.each([
    ['contents', null],
    ['run', { ...contents, run: 'x'.repeat(65) }],
    ['tags', { ...contents, tags: 'seg_1.m4s\n' }],
    ['tags', { ...contents, tags: '#EXT-X-ENDLIST' }],
    ['msn', { ...contents, msn: -1 }],
    ['dts', { ...contents, dts: '900000' }],
    ['expected', { ...contents, expected: undefined }],
    ['facts', { ...contents, facts: [] }],
    ['segmentDuration', { ...contents, facts: { ...MARK.facts, segmentDuration: 0 } }],
    ['targetDuration', { ...contents, facts: { ...MARK.facts, targetDuration: 1e9 } }],
    ['tracks', { ...contents, facts: { ...MARK.facts, tracks: Array(257).fill(MARK.facts.tracks[0]) } }],
    ['generation', { ...contents, facts: { ...MARK.facts, tracks: [{ id: 1, partTicks: 1, generation: 0.5 }] } }],
  ])('%s', (member, json) => {
    expect(() => parseMark((overTheWire({ json }) as { json: unknown }).json)).toThrow(`'${member}'`);
  });
});
