import { describe, expect, test } from 'vitest';
import { captionUnit, FIELD_1, FIELD_2, PACKET_DATA, PACKET_START, popOn, type Triplet } from '../../../test/support/captions.ts';
import { VideoCodec } from '../../media/codec.ts';
import { CaptionReader } from './captions.ts';
import { buildSeiUnit } from './sei-writer.ts';

const SLICES = { [VideoCodec.H264]: Uint8Array.of(0x41, 1, 2, 3), [VideoCodec.H265]: Uint8Array.of(0x02, 1, 2, 3) };
type Codec = keyof typeof SLICES;

function frameOf(...units: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    units.flatMap((unit) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(unit.length);
      return [length, unit];
    }),
  );
}

/** Channels seen in frames with these triplets. */
function seen(frames: readonly (readonly Triplet[])[], codec: Codec = VideoCodec.H264): string[] {
  const reader = new CaptionReader();
  for (const triplets of frames) reader.read(codec, frameOf(captionUnit(codec, triplets), SLICES[codec]));
  return [...reader.channels];
}

describe('captions in frames', () => {
  test.each<[string, readonly (readonly Triplet[])[], string[]]>([
    ['padding alone', [[[FIELD_1, 0x80, 0x80]]], []],
    ['text without its control codes', [[[FIELD_1, 0xc8, 0xe9]]], []],
    ['a pop-on caption', popOn('HELLO', 3).map((triplet) => [triplet]), ['CC1']],
    ['the second channel of a field', [[[FIELD_1, 0x1c, 0x20]]], ['CC2']],
    [
      'the other field',
      [
        [
          [FIELD_2, 0x15, 0x2f],
          [FIELD_2, 0x9d, 0x2c],
        ],
      ],
      ['CC3', 'CC4'],
    ],
    ['XDS', [[[FIELD_2, 0x01, 0x03]]], []],
    [
      'services, over several frames',
      [[[PACKET_START, 0x02, 0x22]], [[PACKET_DATA, 0x41, 0x42]], [[PACKET_START, 0x42, 0x41]], [[PACKET_DATA, 0x41, 0x00]]],
      ['SERVICE1', 'SERVICE2'],
    ],
    [
      'an extended service',
      [
        [
          [PACKET_START, 0x03, 0xe1],
          [PACKET_DATA, 0x09, 0x41],
          [PACKET_DATA, 0x00, 0x00],
        ],
      ],
      ['SERVICE9'],
    ],
    ['a packet that is only begun', [[[PACKET_START, 0x3f, 0x22]]], []],
    ['the rest of a packet that is not there', [[[PACKET_DATA, 0x22, 0x41]]], []],
    ['a service block without data', [[[PACKET_START, 0x01, 0x20]]], []],
  ])('%s', (_what, frames, channels) => {
    expect(seen(frames)).toEqual(channels);
  });

  test('of H.265, too', () => {
    expect(seen([[[FIELD_1, 0x14, 0x20]]], VideoCodec.H265)).toEqual(['CC1']);
  });

  test('are read from all SEI messages before the first slice, and not from later ones', () => {
    const other = Uint8Array.of(0xb5, 0, 0x31, ...Buffer.from('DTG1'), 0x41, 0xff);
    const units = [buildSeiUnit('H264', 4, other), buildSeiUnit('H264', 5, other), captionUnit('H264', [[FIELD_1, 0x14, 0x20]])];
    const reader = new CaptionReader();
    reader.read('H264', frameOf(SLICES.H264, ...units));
    expect([...reader.channels]).toEqual([]);
    reader.read('H264', frameOf(...units, SLICES.H264));
    expect([...reader.channels]).toEqual(['CC1']);
  });

  test('truncated at any byte do not throw', () => {
    const unit = captionUnit('H264', [
      [PACKET_START, 0x04, 0x22],
      [PACKET_DATA, 0x41, 0x42],
      [FIELD_1, 0x14, 0x20],
    ]);
    for (let length = 1; length <= unit.length; length += 1) {
      expect(() => new CaptionReader().read('H264', frameOf(unit.subarray(0, length), SLICES.H264))).not.toThrow();
    }
  });
});
