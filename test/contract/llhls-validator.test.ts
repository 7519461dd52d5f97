/** Tests of the validator: it must find planted faults. */
import { describe, expect, it } from 'vitest';
import { LlhlsValidator } from '../validator/llhls-validator.ts';

const HEADER = `#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:4
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=3.0
#EXT-X-PART-INF:PART-TARGET=1.0
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-MAP:URI="init"
`;
const segment = (index: number): string => `#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:${String(index * 4).padStart(2, '0')}.000Z
#EXT-X-PART:DURATION=1.0,URI="p${index}.0",INDEPENDENT=YES
#EXT-X-PART:DURATION=1.0,URI="p${index}.1"
#EXT-X-PART:DURATION=1.0,URI="p${index}.2"
#EXT-X-PART:DURATION=1.0,URI="p${index}.3"
#EXTINF:4.0,
s${index}
`;
const GOOD = HEADER + segment(0) + segment(1);

function problems(...texts: readonly string[]): string[] {
  const validator = new LlhlsValidator();
  for (const text of texts) validator.observe(text);
  return validator.problems;
}

describe('the LL-HLS validator', () => {
  it('accepts valid playlists', () => {
    expect(problems(GOOD, GOOD + segment(2))).toEqual([]);
  });

  it.each([
    ['blank lines', [GOOD.replace('#EXTINF', '\n#EXTINF')], /blank/],
    ['a part longer than PART-TARGET', [GOOD.replace('DURATION=1.0,URI="p1.3"', 'DURATION=1.1,URI="p1.3"')], /PART-TARGET is/],
    ['a short part in the middle', [GOOD.replace('DURATION=1.0,URI="p1.1"', 'DURATION=0.8,URI="p1.1"')], /85 %/],
    ['a segment longer than TARGETDURATION', [GOOD.replaceAll('#EXTINF:4.0', '#EXTINF:4.6')], /TARGETDURATION is/],
    ['PART-HOLD-BACK too small', [GOOD.replace('BACK=3.0', 'BACK=2.9')], /PART-HOLD-BACK/],
    ['CAN-SKIP-UNTIL too small', [GOOD.replace('PART-HOLD', 'CAN-SKIP-UNTIL=20,PART-HOLD')], /CAN-SKIP-UNTIL/],
    ['HOLD-BACK too small', [GOOD.replace('PART-HOLD', 'HOLD-BACK=11,PART-HOLD')], /HOLD-BACK 11/],
    ['an old version', [GOOD.replace('VERSION:6', 'VERSION:3')], /version/],
    ['TARGETDURATION that changes', [GOOD, GOOD.replace('DURATION:4', 'DURATION:5')], /TARGETDURATION changed/],
    ['PART-TARGET that changes', [GOOD, GOOD.replace('TARGET=1.0', 'TARGET=1.01')], /PART-TARGET changed/],
    ['a segment that changes', [GOOD, GOOD.replace('4.0,\ns1', '4.0,\nx1')], /segment 1 changed/],
    ['a part that changes', [GOOD, GOOD.replace('p1.2', 'x1.2')], /part x1.2 changed/],
    ['a date-time that does not fit', [GOOD.replace('00:04.000', '00:05.000')], /begins 5 s later/],
    ['a missing date-time', [GOOD.replace('#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:04.000Z\n', '')], /no date-time/],
    ['segments that vanish from the end', [GOOD, HEADER + segment(0)], /disappeared/],
    ['a window that gets too short', [GOOD, HEADER.replace('SEQUENCE:0', 'SEQUENCE:1') + segment(1)], /left after removing/],
    ['a hint for a listed part', [`${GOOD}#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p1.3"\n`], /hinted and listed/],
    [
      'a skip that was not offered',
      [GOOD, `${HEADER.replace('VERSION:6', 'VERSION:9')}#EXT-X-SKIP:SKIPPED-SEGMENTS=1\n${segment(1)}`],
      /without CAN-SKIP/,
    ],
    ['a change after the end', [`${GOOD}#EXT-X-ENDLIST\n`, GOOD], /after its end/],
    ['segments without EXT-X-MAP', [GOOD.replace('#EXT-X-MAP:URI="init"\n', '')], /no EXT-X-MAP/],
  ])('finds %s', (_name, texts, problem) => {
    expect(problems(...texts).join('\n')).toMatch(problem);
  });
});
