import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { areCueSettings, readCuePayload, writeCuePayload } from './cue-payload.ts';
import { writeVtt } from './vtt-writer.ts';

describe('the text of a cue', () => {
  const written = (text: string): string => readCuePayload(writeCuePayload({ settings: '', text })).text;

  test.each([
    ['hi', 'hi'],
    ['two\r\nlines\rand\none', 'two\nlines\nand\none'],
    ['a\n\n\nb\n \n', 'a\nb'],
    ['a --> b', 'a --&gt; b'],
    ['Tom & Jerry &amp; &#39; &nope;', 'Tom &amp; Jerry &amp; &#39; &amp;nope;'],
    ['<b>bold</b> <i.red>x</i> <v Fred>hello</v> <00:01.000>later', '<b>bold</b> <i.red>x</i> <v Fred>hello</v> <00:01.000>later'],
    ['I <3 you <script>alert(1)</script> 1 < 2', 'I &lt;3 you &lt;script>alert(1)&lt;/script> 1 &lt; 2'],
    ['\0', '\ufffd'],
    ['\n\n', ''],
  ])('%j becomes %j', (text, expected) => {
    expect(written(text)).toBe(expected);
  });

  test('never ends its cue and never begins another', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('-->', '\n', '\r', ' ', '\0', '<', '&', '--', '>', 'WEBVTT', 'a')), (pieces) => {
        const text = written(pieces.join(''));
        expect(text).not.toMatch(/-->|\r|\0|\n\s*\n|^\n|\n$/);
      }),
    );
  });
});

test.each([
  ['', true],
  ['line:90%', true],
  ['vertical:rl  line:-1,end position:10%,line-left size:35% align:start region:fred', true],
  ['line', false],
  ['line:', false],
  ['line:1 --> 00:00', false],
  ['line:1\nline:2', false],
  ['onclick:alert', false],
  ['line:1\0', false],
])('settings %j: %s', (settings, good) => {
  expect(areCueSettings(settings)).toBe(good);
});

test.each([
  [
    { settings: 'line:90%  align:start', text: 'a\nb' },
    { settings: 'line:90% align:start', text: 'a\nb' },
  ],
  [
    { settings: '', text: '' },
    { settings: '', text: '' },
  ],
  [
    { settings: 'bad -->', text: 'x' },
    { settings: '', text: 'x' },
  ],
])('a packet keeps settings and text: %j', (cue, kept) => {
  expect(readCuePayload(writeCuePayload(cue))).toEqual(kept);
});

test('a file maps its local time to the time of the media, and has the cues', () => {
  const cues = [
    { id: 'one', start: 59_999.6, end: 3_600_000, settings: '', text: 'a' },
    { id: '2', start: 100 * 3_600_000, end: 100 * 3_600_000 + 1, settings: 'line:1', text: 'b\nc' },
  ];
  expect(writeVtt(cues, 60_000, 61_000)).toBe(`WEBVTT
X-TIMESTAMP-MAP=LOCAL:00:01:00.000,MPEGTS:5490000

one
00:01:00.000 --> 01:00:00.000
a

2
100:00:00.000 --> 100:00:00.001 line:1
b
c
`);
});

test('a file without cues is valid, and times of the media have 33 bits', () => {
  const day = 27 * 3_600_000;
  expect(writeVtt([], day, day)).toBe(`WEBVTT\nX-TIMESTAMP-MAP=LOCAL:27:00:00.000,MPEGTS:${day * 90 - 2 ** 33}\n`);
});
