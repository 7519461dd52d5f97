import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readSubtitleFile } from '../../../test/support/subtitles.ts';
import { MAX_SUBTITLE_FILE, SubtitleFile } from './subtitle-file.ts';

const read = (text: string) =>
  readSubtitleFile(Buffer.from(text)).map(({ start, duration, settings, text: shown }) => [start, duration, settings, shown]);

describe('subtitle files', () => {
  test.each<[string, string, readonly (readonly (string | number)[])[]]>([
    [
      'WebVTT',
      '\ufeffWEBVTT - film\nKind: captions\n\nNOTE 00:00:00.000 --> 00:00:09.000\nno cue\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.500 --> 00:00:04.000 line:10% align:start\n<i>Hello</i>\nthere\n\n01:00:00.000 --> 01:00:01.250\nlate\n',
      [
        [1500, 2500, 'line:10% align:start', '<i>Hello</i>\nthere'],
        [3_600_000, 1250, '', 'late'],
      ],
    ],
    [
      'SubRip, with the line ends of Windows',
      '\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n{\\an8}<font color="#fff">Hi</font>\r\n<b>you</b>\r\n\r\n2\r\n00:00:00,5 --> 00:00:00,75 X1:1 X2:2\r\nfirst\r\n',
      [
        [500, 250, '', 'first'],
        [1000, 1500, '', 'Hi\n<b>you</b>'],
      ],
    ],
    ['SubRip without numbers', '00:00:01,000 --> 00:00:02,000\nx', [[1000, 1000, '', 'x']]],
    ['invalid settings', 'WEBVTT\n\n00:01.000 --> 00:02.000 onclick:x --> y\nx', [[1000, 1000, '', 'x']]],
    ['times that go back', 'WEBVTT\n\n00:02.000 --> 00:01.000\nx\n\n00:03.000 --> 00:04.000\ny', [[3000, 1000, '', 'y']]],
    ['minutes of more than an hour', 'WEBVTT\n\n00:61.000 --> 00:62.000\nx\n\n61:00.000 --> 61:01.000\nx', []],
    ['a cue without an end', '00:00:00,000 --> 99999:00:00,000\nx', [[0, 3_600_000, '', 'x']]],
    ['no text', '1\n00:00:01,000 --> 00:00:02,000\n\n', []],
    ['a film', 'ftypisom\0\0\0', []],
    ['nothing', '', []],
  ])('%s', (_what, text, cues) => {
    expect(read(text)).toEqual(cues);
  });

  test('have bounds', () => {
    expect(readSubtitleFile(Buffer.alloc(MAX_SUBTITLE_FILE + 1, 'a'))).toEqual([]);
    const many = Array.from({ length: 30_000 }, (_, index) => `00:00:0${index % 10},000 --> 00:01:00,000\nx\n`).join('\n');
    expect(readSubtitleFile(Buffer.from(many))).toHaveLength(20_000);
    expect(read(`00:00:01,000 --> 00:00:02,000\n${'x'.repeat(10_000)}`)[0]?.[3]).toHaveLength(4096);
  });

  test.each(['\n', '\r\n', '\r'])('are read in small pieces without losing a cue at a boundary: %j', (lineEnd) => {
    const texts = Array.from({ length: 5000 }, (_, index) => `cue ${index}${lineEnd}${'x'.repeat(index % 97)}y`);
    const blocks = texts.map((text, index) =>
      [`${index}`, `00:00:00,${String(index % 1000).padStart(3, '0')} --> 01:00:00,000`, text, ''].join(lineEnd),
    );
    const film = `${blocks.join(lineEnd)}${lineEnd}`;
    for (const text of [film, lineEnd.repeat(100_000), `x${lineEnd}${lineEnd}`.repeat(50_000)]) {
      const file = new SubtitleFile(Buffer.from(text));
      let pieces = 1;
      while (file.readOn()) pieces += 1;
      expect(pieces).toBeGreaterThanOrEqual(Math.floor(text.length / 20_000));
      expect(file.cues.map((cue) => cue.text).toSorted()).toEqual(
        text === film ? texts.map((each) => each.replace(lineEnd, '\n')).toSorted() : [],
      );
    }
  });

  test('of another encoding than UTF-8 lose letters, not cues', () => {
    const bytes = Buffer.concat([Buffer.from('1\n00:00:01,000 --> 00:00:02,000\ncaf'), Uint8Array.of(0xe9)]);
    expect(readSubtitleFile(bytes)[0]?.text).toBe('caf\ufffd');
  });

  test('of random lines are read without throwing', () => {
    const line = fc.constantFrom(
      'WEBVTT',
      '',
      '1',
      '00:00:01,000 --> 00:00:02,000',
      '-->',
      '00:01.000 --> x',
      'text',
      '\0',
      '<font',
      '{\\',
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 40 }), (lines) => {
        for (const { start, duration } of readSubtitleFile(Buffer.from(lines.join('\n')))) expect(start + duration).toBeGreaterThan(0);
      }),
    );
  });
});
