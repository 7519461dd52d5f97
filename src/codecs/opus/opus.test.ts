import { describe, expect, it } from 'vitest';
import { AUDIO } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { buildOpusHead, parseOpusHead } from './opus-head.ts';
import { opusPacketSamples } from './packet.ts';

describe('OpusHead', () => {
  it('is read and written back byte by byte', () => {
    const head = parseOpusHead(AUDIO.opusHead);
    expect(head).toMatchObject({ channels: 2, preSkip: 312, inputSampleRate: 48_000, outputGain: 0, mappingFamily: 0 });
    expect(buildOpusHead(head)).toEqual(AUDIO.opusHead);
  });

  it('has a channel mapping for surround', () => {
    const mapping = Uint8Array.of(4, 2, 0, 4, 1, 2, 3, 5);
    const data = buildOpusHead({ channels: 6, mappingFamily: 1, mapping, outputGain: -256 });
    expect(parseOpusHead(data)).toMatchObject({ channels: 6, mappingFamily: 1, mapping, outputGain: -256 });
  });

  it('takes sensible defaults', () => {
    expect(parseOpusHead(buildOpusHead({ channels: 1 }))).toMatchObject({ channels: 1, preSkip: 0, inputSampleRate: 48_000 });
  });

  it.each([
    ['another magic', (data: Uint8Array) => data.fill(0x41, 0, 1), 0],
    ['another version', (data: Uint8Array) => data.fill(0x10, 8, 9), 8],
    ['no channels', (data: Uint8Array) => data.fill(0, 9, 10), 9],
    ['a missing mapping', (data: Uint8Array) => data.fill(1, 18, 19), 19],
  ])('refuses %s', (_name, damage, offset) => {
    expect(() => parseOpusHead(damage(AUDIO.opusHead.slice()))).toThrow(expect.objectContaining({ code: 'OPUS_HEAD', offset }));
  });

  it('survives hostile bytes', () => survivesHostileBytes(parseOpusHead, [AUDIO.opusHead]));
});

describe('opusPacketSamples', () => {
  it.each([
    ['SILK 10 ms', [0 << 3], 480],
    ['SILK 60 ms twice', [(3 << 3) | 1], 5760],
    ['hybrid 20 ms', [13 << 3], 960],
    ['CELT 2.5 ms', [16 << 3], 120],
    ['CELT 20 ms', [31 << 3], 960],
    ['CELT 20 ms, six frames', [(31 << 3) | 3, 6], 5760],
    ['two frames of different size', [(30 << 3) | 2], 960],
  ])('%s', (_name, packet, expected) => {
    expect(opusPacketSamples(Uint8Array.from(packet))).toBe(expected);
  });

  it.each([
    ['nothing', []],
    ['no frame count', [(31 << 3) | 3]],
    ['no frames', [(31 << 3) | 3, 0]],
    ['more than 120 ms', [(31 << 3) | 3, 7]],
  ])('refuses %s', (_name, packet) => {
    expect(() => opusPacketSamples(Uint8Array.from(packet))).toThrow(expect.objectContaining({ code: 'OPUS_PACKET' }));
  });

  it('survives hostile bytes', () => survivesHostileBytes(opusPacketSamples, [Uint8Array.of(0xfc, 1, 2)]));
});
