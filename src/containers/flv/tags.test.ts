import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { parseAudioTag, serializeAudioTagHeader } from './audio-tag.ts';
import { parseVideoTag, serializeVideoTagHeader } from './video-tag.ts';

function bytes(text: string): Buffer {
  return Buffer.from(
    text.replace(/'(.*?)'/g, (_, word: string) => Buffer.from(word, 'latin1').toString('hex')).replaceAll(/\s/g, ''),
    'hex',
  );
}

/** Bodies as hex, so that tables read like the wire. */
function plain(units: readonly object[]): object[] {
  return units.map((unit) => ('body' in unit && unit.body instanceof Buffer ? { ...unit, body: unit.body.toString('hex') } : unit));
}

function frame(fields: { trackId?: number; codec?: VideoCodec; keyframe?: boolean; compositionTime?: number; body?: string }): object {
  return { kind: 'frame', trackId: 0, codec: VideoCodec.H264, keyframe: false, compositionTime: 0, body: 'aa', ...fields };
}

const VIDEO_TABLE: { name: string; wire: string; units: object[] }[] = [
  { name: 'AVC sequence header', wire: '17 00 000000 0142', units: [{ kind: 'config', trackId: 0, codec: 'H264', body: '0142' }] },
  { name: 'AVC keyframe', wire: '17 01 000021 aa', units: [frame({ keyframe: true, compositionTime: 33 })] },
  { name: 'AVC frame shown before it is decoded', wire: '27 01 fffff0 aa', units: [frame({ compositionTime: -16 })] },
  { name: 'AVC end of sequence', wire: '17 02 000000', units: [{ kind: 'other', trackId: 0 }] },
  { name: 'seek command', wire: '57 00', units: [{ kind: 'other', trackId: 0 }] },
  { name: 'classic HEVC', wire: '1c 01 000000 aa', units: [frame({ codec: VideoCodec.H265, keyframe: true })] },
  { name: 'Sorenson H.263', wire: '22 00', units: [{ kind: 'unsupported', trackId: 0, codec: '2' }] },
  { name: 'HEVC SequenceStart', wire: "90 'hvc1' 0101", units: [{ kind: 'config', trackId: 0, codec: 'H265', body: '0101' }] },
  { name: 'HEVC CodedFrames', wire: "a1 'hvc1' 000021 aa", units: [frame({ codec: VideoCodec.H265, compositionTime: 33 })] },
  { name: 'HEVC CodedFramesX', wire: "93 'hvc1' aa", units: [frame({ codec: VideoCodec.H265, keyframe: true })] },
  { name: 'AVC by FourCC', wire: "a1 'avc1' fffffe aa", units: [frame({ compositionTime: -2 })] },
  {
    name: 'AV1 CodedFrames, which has no composition time',
    wire: "91 'av01' aa",
    units: [frame({ codec: VideoCodec.AV1, keyframe: true })],
  },
  { name: 'VP9 CodedFrames', wire: "a1 'vp09' aa", units: [frame({ codec: VideoCodec.VP9 })] },
  { name: 'VP8 SequenceStart', wire: "90 'vp08' 01", units: [{ kind: 'config', trackId: 0, codec: 'VP8', body: '01' }] },
  { name: 'SequenceEnd', wire: "92 'hvc1'", units: [{ kind: 'other', trackId: 0 }] },
  { name: 'colour information', wire: "d4 'hvc1' 02000a", units: [{ kind: 'other', trackId: 0 }] },
  { name: 'enhanced seek command', wire: 'd1 00', units: [{ kind: 'other', trackId: 0 }] },
  { name: 'VVC', wire: "90 'vvc1' 01", units: [{ kind: 'unsupported', trackId: 0, codec: 'vvc1' }] },
  {
    name: 'ModEx with a nanosecond offset',
    wire: "97 02 000400 03 'hvc1' aa",
    units: [frame({ codec: VideoCodec.H265, keyframe: true })],
  },
  {
    name: 'two ModEx, one of them long and unknown',
    wire: `97 02 000400 07 ff 0100 ${'00'.repeat(257)} f3 'avc1' aa`,
    units: [frame({ keyframe: true })],
  },
  { name: 'multitrack, one track', wire: "96 01 'avc1' 02 000005 aa", units: [frame({ trackId: 2, keyframe: true, compositionTime: 5 })] },
  {
    name: 'multitrack, one codec',
    wire: "96 13 'hvc1' 00 000001 aa 01 000002 bbcc",
    units: [frame({ codec: VideoCodec.H265, keyframe: true }), frame({ codec: VideoCodec.H265, keyframe: true, trackId: 1, body: 'bbcc' })],
  },
  {
    name: 'multitrack, several codecs',
    wire: "96 20 'avc1' 00 000002 0142 'av01' 01 000001 81 'vvc1' 02 000000",
    units: [
      { kind: 'config', trackId: 0, codec: 'H264', body: '0142' },
      { kind: 'config', trackId: 1, codec: 'AV1', body: '81' },
      { kind: 'unsupported', trackId: 2, codec: 'vvc1' },
    ],
  },
];

const AUDIO_TABLE: { name: string; wire: string; units: object[] }[] = [
  { name: 'AAC sequence header', wire: 'af 00 1190', units: [{ kind: 'config', trackId: 0, codec: 'AAC', body: '1190' }] },
  { name: 'AAC frame', wire: 'af 01 aabb', units: [{ kind: 'frame', trackId: 0, codec: 'AAC', body: 'aabb' }] },
  { name: 'MP3', wire: '2f fffb', units: [{ kind: 'frame', trackId: 0, codec: 'MP3', body: 'fffb' }] },
  { name: 'MP3 at 8 kHz', wire: 'ee fffb', units: [{ kind: 'frame', trackId: 0, codec: 'MP3', body: 'fffb' }] },
  { name: 'Speex', wire: 'b2 00', units: [{ kind: 'unsupported', trackId: 0, codec: '11' }] },
  {
    name: 'Opus SequenceStart',
    wire: "90 'Opus' 'OpusHead'",
    units: [{ kind: 'config', trackId: 0, codec: 'OPUS', body: bytes("'OpusHead'").toString('hex') }],
  },
  { name: 'Opus CodedFrames', wire: "91 'Opus' fc", units: [{ kind: 'frame', trackId: 0, codec: 'OPUS', body: 'fc' }] },
  { name: 'AAC by FourCC', wire: "91 'mp4a' 21", units: [{ kind: 'frame', trackId: 0, codec: 'AAC', body: '21' }] },
  { name: 'MultichannelConfig', wire: "94 'Opus' 01 02 00000003", units: [{ kind: 'channels', trackId: 0, codec: 'OPUS', channels: 2 }] },
  { name: 'SequenceEnd', wire: "92 'Opus'", units: [{ kind: 'other', trackId: 0 }] },
  { name: 'FLAC', wire: "90 'fLaC'", units: [{ kind: 'unsupported', trackId: 0, codec: 'fLaC' }] },
  { name: 'ModEx', wire: "97 02 000400 01 'Opus' fc", units: [{ kind: 'frame', trackId: 0, codec: 'OPUS', body: 'fc' }] },
  {
    name: 'multitrack, several codecs',
    wire: "95 21 'mp4a' 00 000001 21 'Opus' 01 000002 fcfd",
    units: [
      { kind: 'frame', trackId: 0, codec: 'AAC', body: '21' },
      { kind: 'frame', trackId: 1, codec: 'OPUS', body: 'fcfd' },
    ],
  },
];

describe.each([
  { kind: 'video', parse: parseVideoTag as (tag: Uint8Array) => object[], table: VIDEO_TABLE },
  { kind: 'audio', parse: parseAudioTag as (tag: Uint8Array) => object[], table: AUDIO_TABLE },
])('$kind tags', ({ parse, table }) => {
  test.each(table)('reads $name', ({ wire, units }) => {
    expect(plain(parse(bytes(wire)))).toEqual(units);
  });

  test.each(table)('$name, ended at every byte, is read or refused with a ProtocolError', ({ wire }) => {
    const tag = bytes(wire);
    for (let end = 0; end < tag.length; end += 1) {
      try {
        parse(tag.subarray(0, end));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });

  test('random bytes give units or a ProtocolError', () => {
    fc.assert(
      fc.property(fc.constantFrom('', '95', '96', '97', "96 20 'avc1'", "90 'hvc1'"), fc.uint8Array({ maxLength: 200 }), (prefix, tail) => {
        try {
          parse(Buffer.concat([bytes(prefix), tail]));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe('refused tags', () => {
  test.each([
    { name: 'unknown AVC packet type', wire: '17 03 000000' },
    { name: 'unknown enhanced packet type', wire: "98 'avc1'" },
    { name: 'multitrack inside multitrack', wire: "96 06 'avc1' 00" },
    { name: 'unknown multitrack type', wire: "96 30 'avc1' 00" },
    { name: 'a track longer than the tag', wire: "96 10 'avc1' 00 ffffff 00" },
    { name: 'a ModEx longer than the tag', wire: '97 80 00' },
  ])('$name', ({ wire }) => {
    expect(() => parseVideoTag(bytes(wire))).toThrow(ProtocolError);
  });

  test('unknown AAC packet type', () => {
    expect(() => parseAudioTag(bytes('af 02'))).toThrow(ProtocolError);
  });
});

describe('written headers', () => {
  const body = Buffer.from('aabb', 'hex');

  test.each([VideoCodec.H264, VideoCodec.H265, VideoCodec.VP8, VideoCodec.VP9, VideoCodec.AV1])('%s survives the round trip', (codec) => {
    for (const kind of ['config', 'frame'] as const) {
      for (const keyframe of [true, false]) {
        for (const compositionTime of kind === 'frame' && (codec === VideoCodec.H264 || codec === VideoCodec.H265) ? [0, 40, -40] : [0]) {
          const tag = Buffer.concat([serializeVideoTagHeader({ kind, codec, keyframe, compositionTime }), body]);
          const timing = kind === 'frame' ? { keyframe, compositionTime } : {};
          expect(parseVideoTag(tag)).toEqual([{ kind, trackId: 0, codec, body, ...timing }]);
        }
      }
    }
  });

  test.each([AudioCodec.AAC, AudioCodec.OPUS, AudioCodec.MP3])('%s survives the round trip', (codec) => {
    for (const kind of ['config', 'frame'] as const) {
      expect(parseAudioTag(Buffer.concat([serializeAudioTagHeader({ kind, codec }), body]))).toEqual([{ kind, trackId: 0, codec, body }]);
    }
  });

  test('a codec FLV cannot carry is a mistake of the caller', () => {
    expect(() => serializeVideoTagHeader({ kind: 'frame', codec: VideoCodec.PNG, keyframe: true, compositionTime: 0 })).toThrow(TypeError);
  });
});
