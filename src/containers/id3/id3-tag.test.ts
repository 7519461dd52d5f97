import { describe, expect, it } from 'vitest';
import { buildId3Tag, isTextFrameId } from './id3-tag.ts';

const text = (data: Uint8Array): string => Buffer.from(data).toString('latin1');

describe('buildId3Tag', () => {
  it('writes user text, text and private frames in one tag', () => {
    const tag = buildId3Tag([
      { type: 'TXXX', description: 'AB', text: 'C' },
      { type: 'text', id: 'TIT2', text: 'ñ' },
      { type: 'PRIV', owner: 'me', data: Uint8Array.of(1, 2) },
    ]);
    expect(text(tag)).toBe(
      'ID3\x04\0\0\0\0\0\x2d' + 'TXXX\0\0\0\x06\0\0\x03AB\0C\0' + 'TIT2\0\0\0\x04\0\0\x03\xc3\xb1\0' + 'PRIV\0\0\0\x05\0\0me\0\x01\x02',
    );
  });

  it('spreads sizes over groups of seven bits', () => {
    const tag = buildId3Tag([{ type: 'PRIV', owner: '', data: new Uint8Array(300) }]);
    expect([...tag.subarray(6, 10)]).toEqual([0, 0, 2, 55]); // 311 = 2 * 128 + 55
    expect([...tag.subarray(14, 18)]).toEqual([0, 0, 2, 45]);
  });

  it('refuses ids other than text frames', () => {
    expect(() => buildId3Tag([{ type: 'text', id: 'PRIV', text: '' }])).toThrow(TypeError);
    expect(['TIT2', 'TXXX', 'tit2', 'TALB', 'T', 'PRIV'].map(isTextFrameId)).toEqual([true, false, false, true, false, false]);
  });
});
