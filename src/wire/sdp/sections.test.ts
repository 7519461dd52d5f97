import { describe, expect, test } from 'vitest';
import { codeOf } from '../../../test/support/error-code.ts';
import { attributeOf, byFormat, formatParameters, payloadTypeOf, splitSections } from './sections.ts';

const TEXT =
  'v=0\r\na=control:*\r\nb=CT:9\nm=video 0 RTP/AVP 96\nb=AS:500\nb=AS:9\na=rtpmap:96 H264/90000\na=recvonly\n\nm=audio 0 RTP/AVP 0\n';

describe('sections', () => {
  test('are the head and each m-line with its attributes', () => {
    expect(splitSections(TEXT, 'refuse')).toEqual([
      { line: 1, head: '0', attributes: [{ name: 'control', value: '*' }], bandwidth: undefined },
      {
        line: 4,
        head: 'video 0 RTP/AVP 96',
        attributes: [
          { name: 'rtpmap', value: '96 H264/90000' },
          { name: 'recvonly', value: '' },
        ],
        bandwidth: '500',
      },
      { line: 10, head: 'audio 0 RTP/AVP 0', attributes: [], bandwidth: undefined },
    ]);
  });

  test.each(['', '\nv=0\n', 'm=video 0 RTP/AVP 96\nv=0\n', 'RTSP/1.0 200 OK'])('%j is split into no sections', (text) => {
    expect(splitSections(text, 'skip')).toEqual([]);
  });

  test('skip a malformed line only when the caller allows it', () => {
    expect(splitSections('v=0\n garbage\nm=x', 'skip')).toHaveLength(2);
    expect(() => splitSections('v=0\n garbage\nm=x', 'refuse')).toThrow(expect.objectContaining({ code: 'SDP_LINE', offset: 2 }));
  });

  test.each([
    ['m-lines', 'SDP_MEDIA', `v=0\n${'m=x\n'.repeat(33)}`, `v=0\n${'m=x\n'.repeat(32)}`],
    ['attributes', 'SDP_ATTRIBUTES', `v=0\n${'a=x\n'.repeat(1025)}`, `v=0\n${'a=x\n'.repeat(1024)}m=x\na=x\n`],
  ])('have a limit of %s', (_what, code, many, most) => {
    for (const stray of ['skip', 'refuse'] as const) {
      expect(codeOf(() => splitSections(many, stray))).toBe(code);
      expect(splitSections(most, stray).length).toBeGreaterThan(0);
    }
  });
});

test('attributes are found by name, the first of them, and by format, all of them', () => {
  const [head] = splitSections('v=0\na=x:1\na=x:2\na=fmtp:96 a=1\na=fmtp:97\na=fmtp:96 b', 'refuse');
  if (head === undefined) throw new Error('no head');
  expect([attributeOf(head, 'x'), attributeOf(head, 'y')]).toEqual(['1', undefined]);
  expect([...byFormat(head, 'fmtp')]).toEqual([
    ['96', ['a=1', 'b']],
    ['97', ['']],
  ]);
});

test('parameters of a format have names in lower case, and may have no value', () => {
  expect([...formatParameters(' A = 1;b;=x; ;c==2')]).toEqual([
    ['a', '1'],
    ['b', ''],
    ['c', '=2'],
  ]);
});

test.each([
  ['0', 0],
  ['127', 127],
  ['128', null],
  ['1e1', null],
  ['', null],
])('%j as payload type is %s', (format, payloadType) => {
  expect(payloadTypeOf(format)).toBe(payloadType);
});
