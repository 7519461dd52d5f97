import { describe, expect, it } from 'vitest';
import { AUDIO } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { parseMpegAudioHeader } from './frame-header.ts';

describe('parseMpegAudioHeader', () => {
  it.each([
    [
      'lame, MPEG-1',
      AUDIO.mp3Mono44,
      { version: 1, layer: 3, bitrate: 64_000, sampleRate: 44_100, channels: 1, samplesPerFrame: 1152, frameLength: 208 },
    ],
    [
      'lame, MPEG-2',
      AUDIO.mp3Mono22,
      { version: 2, layer: 3, bitrate: 32_000, sampleRate: 22_050, samplesPerFrame: 576, frameLength: 104 },
    ],
    ['MPEG-2.5 layer III', Uint8Array.of(0xff, 0xe3, 0x88, 0x00), { version: 2.5, layer: 3, sampleRate: 8000, channels: 2 }],
    ['layer II', Uint8Array.of(0xff, 0xfd, 0x84, 0x00), { version: 1, layer: 2, bitrate: 128_000, sampleRate: 48_000, frameLength: 384 }],
    ['layer I', Uint8Array.of(0xff, 0xff, 0x44, 0x00), { version: 1, layer: 1, bitrate: 128_000, samplesPerFrame: 384, frameLength: 128 }],
    ['MPEG-2 layer I', Uint8Array.of(0xff, 0xf7, 0x44, 0x00), { version: 2, layer: 1, bitrate: 64_000, sampleRate: 24_000 }],
  ])('reads %s', (_name, data, expected) => {
    expect(parseMpegAudioHeader(data)).toMatchObject(expected);
  });

  it.each([
    ['no sync word', [0, 0, 0, 0], 0],
    ['a reserved version', [0xff, 0xeb, 0x90, 0], 1],
    ['a reserved layer', [0xff, 0xf9, 0x90, 0], 1],
    ['a free bitrate', [0xff, 0xfb, 0x00, 0], 2],
    ['a reserved rate', [0xff, 0xfb, 0x9c, 0], 2],
    ['three bytes', [0xff, 0xfb, 0x90], 3],
  ])('refuses %s', (_name, data, offset) => {
    expect(() => parseMpegAudioHeader(Uint8Array.from(data))).toThrow(expect.objectContaining({ code: 'MP3_HEADER', offset }));
  });

  it('survives hostile bytes', () => survivesHostileBytes(parseMpegAudioHeader, [AUDIO.mp3Mono44]));
});
