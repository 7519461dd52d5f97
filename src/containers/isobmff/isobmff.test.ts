import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { audioTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../test/fixtures/bitstreams.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { findBox, readBoxes } from './box-reader.ts';
import { BoxWriter } from './box-writer.ts';
import { ID3_SCHEME, writeEventMessage } from './event-message.ts';
import { type FragmentSample, writeFragmentHeader } from './fragment.ts';
import { buildInitSegment } from './init-segment.ts';
import { hasSampleEntry } from './sample-entry.ts';

const sample = (overrides: Partial<FragmentSample> = {}): FragmentSample => ({
  size: 100,
  duration: 3000,
  compositionOffset: 0,
  keyframe: false,
  ...overrides,
});

function fragment(samples: readonly FragmentSample[], video: boolean, baseDecodeTime = 90_000): Uint8Array {
  const writer = new BoxWriter();
  writeFragmentHeader(writer, { trackId: 1, sequence: 7, baseDecodeTime, video, samples });
  const payload = samples.reduce((sum, { size }) => sum + size, 0);
  writer.zeros(payload);
  return writer.copy();
}

function bodyHex(bytes: Uint8Array, path: readonly string[]): string {
  return Buffer.from(findBox(bytes, path)?.body ?? []).toString('hex');
}

describe('a box writer', () => {
  it('writes numbers big-endian and patches sizes', () => {
    const writer = new BoxWriter();
    const outer = writer.box('outr');
    const inner = writer.fullBox('innr', 1, 2);
    writer.u8(1);
    writer.u16(2);
    writer.u32(3);
    writer.i32(-1);
    writer.u64(2 ** 40 + 5);
    writer.end(inner);
    writer.end(outer);
    expect(Buffer.from(writer.view()).toString('hex')).toBe(
      '00000027' +
        Buffer.from('outr').toString('hex') +
        '0000001f' +
        Buffer.from('innr').toString('hex') +
        '0100000201000200000003ffffffff0000010000000005',
    );
  });

  it('grows beyond its first memory and keeps it when reset', () => {
    const writer = new BoxWriter();
    writer.zeros(10_000);
    writer.bytes(Uint8Array.of(1, 2, 3));
    expect([...writer.view().subarray(9_999)]).toEqual([0, 1, 2, 3]);
    writer.reset();
    expect(writer.length).toBe(0);
    writer.zeros(4);
    expect([...writer.copy()]).toEqual([0, 0, 0, 0]);
  });
});

describe('an init segment', () => {
  it.each([
    [VideoCodec.H264, 'avc1', 'avcC'],
    [VideoCodec.H265, 'hvc1', 'hvcC'],
    [VideoCodec.AV1, 'av01', 'av1C'],
    [VideoCodec.VP9, 'vp09', 'vpcC'],
  ] as const)('has the sample entry of %s', (codec, entry, config) => {
    const init = buildInitSegment(videoTrack({ codec }), { timescale: 90_000, trackId: 1 });
    const stsd = findBox(init, ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd']);
    const [found] = readBoxes(stsd?.body.subarray(8) ?? new Uint8Array());
    expect(found?.type).toBe(entry);
    const size = new DataView(found?.body.buffer ?? new ArrayBuffer(0), found?.body.byteOffset).getUint32(24);
    expect(size).toBe((1280 << 16) | 720);
    const [record] = readBoxes(found?.body.subarray(78) ?? new Uint8Array());
    expect(record?.type).toBe(config);
    expect(record?.body.length).toBe(AVCC.high720.length + (config === 'vpcC' ? 4 : 0));
  });

  it('writes version and flags of vpcC once, with or without them in the source', () => {
    const record = Uint8Array.of(0, 31, 0x82, 2, 2, 2, 0, 0);
    const init = (config: Uint8Array) => buildInitSegment(videoTrack({ codec: VideoCodec.VP9, config }), { timescale: 90_000, trackId: 1 });
    const told = init(Uint8Array.of(1, 0, 0, 0, ...record));
    expect(told).toEqual(init(record));
    const at = Buffer.from(told).indexOf('vpcC') + 4;
    expect([...told.subarray(at, at + 12)]).toEqual([1, 0, 0, 0, ...record]);
  });

  it('declares NAL lengths of four bytes for any length size of the source', () => {
    const record = AVCC.high720.slice();
    record[4] = 0xfc;
    const init = Buffer.from(buildInitSegment(videoTrack({ config: record }), { timescale: 90_000, trackId: 1 }));
    expect(init[init.indexOf('avcC') + 8]).toBe(0xff);
    expect(record[4]).toBe(0xfc);
  });

  it('carries the AudioSpecificConfig of AAC in its descriptors', () => {
    const init = Buffer.from(buildInitSegment(audioTrack(), { timescale: 48_000, trackId: 1 }));
    const esds = init.subarray(init.indexOf('esds') + 4);
    expect(esds.subarray(0, 33).toString('hex')).toBe(
      '00000000' + '03190000' + '00' + '0411' + '4015000000' + '0001f4000001f400' + '0502' + '1190' + '060102' + '0000',
    );
  });

  it('turns an OpusHead into dOps', () => {
    const head = Uint8Array.from([...Buffer.from('OpusHead'), 1, 2, 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0]);
    const init = Buffer.from(buildInitSegment(audioTrack({ codec: AudioCodec.OPUS, config: head }), { timescale: 48_000, trackId: 1 }));
    const dops = init.subarray(init.indexOf('dOps') + 4);
    expect(dops.subarray(0, 11).toString('hex')).toBe('00020138' + '0000bb80' + '0000' + '00');
    const bare = Buffer.from(buildInitSegment(audioTrack({ codec: AudioCodec.OPUS, config: null }), { timescale: 48_000, trackId: 1 }));
    expect(
      bare
        .subarray(bare.indexOf('dOps') + 4)
        .subarray(0, 8)
        .toString('hex'),
    ).toBe('000200000000bb80');
  });

  it('packs languages of three letters and calls others undetermined', () => {
    const language = (code: string): number => {
      const init = buildInitSegment(audioTrack({ language: code }), { timescale: 48_000, trackId: 1 });
      const body = findBox(init, ['moov', 'trak', 'mdia', 'mdhd'])?.body ?? new Uint8Array();
      return new DataView(body.buffer, body.byteOffset).getUint16(20);
    };
    expect(language('eng')).toBe(0x15c7);
    expect(language('en')).toBe(0x55c4);
    expect(language('')).toBe(0x55c4);
  });

  it('is refused without what decoders need', () => {
    expect(hasSampleEntry(videoTrack({ config: null }))).toBe(false);
    expect(hasSampleEntry(videoTrack({ codec: VideoCodec.VP8 }))).toBe(false);
    expect(hasSampleEntry(audioTrack({ config: null }))).toBe(false);
    expect(hasSampleEntry(audioTrack({ codec: AudioCodec.MP3, config: null }))).toBe(true);
    expect(() => buildInitSegment(videoTrack({ codec: VideoCodec.VP8 }), { timescale: 1000, trackId: 1 })).toThrow(TypeError);
    const long = audioTrack({ config: new Uint8Array(200) });
    expect(() => buildInitSegment(long, { timescale: 1000, trackId: 1 })).toThrow(TypeError);
  });
});

describe('a fragment header', () => {
  it('names every sample of a video with its flags and signed composition offset', () => {
    const samples = [sample({ keyframe: true, compositionOffset: 3000 }), sample({ size: 50, duration: 2990, compositionOffset: -3000 })];
    const bytes = fragment(samples, true);
    expect(bodyHex(bytes, ['moof', 'mfhd'])).toBe('0000000000000007');
    expect(bodyHex(bytes, ['moof', 'traf', 'tfhd'])).toBe('000200200000000101010000');
    expect(bodyHex(bytes, ['moof', 'traf', 'tfdt'])).toBe('010000000000000000015f90');
    const moof = readBoxes(bytes)[0];
    const dataOffset = (8 + (moof?.body.length ?? 0) + 8).toString(16).padStart(8, '0');
    expect(bodyHex(bytes, ['moof', 'traf', 'trun'])).toBe(
      `01000f0100000002${dataOffset}00000bb8000000640200000000000bb8${'00000bae'}0000003201010000fffff448`,
    );
    expect(Buffer.from(bytes.subarray(-158, -150)).toString('hex')).toBe('0000009e6d646174');
  });

  it('stores one number per audio sample of constant duration', () => {
    const bytes = fragment([sample({ duration: 1024 }), sample({ duration: 1024, size: 7 })], false);
    expect(bodyHex(bytes, ['moof', 'traf', 'tfhd'])).toBe('00020028000000010000040002000000');
    expect(bodyHex(bytes, ['moof', 'traf', 'trun'])).toMatch(/^0100020100000002.{8}0000006400000007$/);
  });

  it('holds decode times beyond 32 bits', () => {
    expect(bodyHex(fragment([sample()], true, 2 ** 33 + 1), ['moof', 'traf', 'tfdt'])).toBe('010000000000000200000001');
  });
});

describe('an event message', () => {
  it('carries ID3 as CMAF requires', () => {
    const writer = new BoxWriter();
    writeEventMessage(writer, { scheme: ID3_SCHEME, timescale: 90_000, presentationTime: 180_000, id: 3, data: Buffer.from('ID3') });
    const [emsg] = readBoxes(writer.view());
    expect(emsg?.type).toBe('emsg');
    expect(Buffer.from(emsg?.body ?? []).toString('latin1')).toBe(
      `\x01\0\0\0\x00\x01\x5f\x90\0\0\0\0\x00\x02\xbf\x20\xff\xff\xff\xff\0\0\0\x03${ID3_SCHEME}\0\0ID3`,
    );
  });
});

describe('reading boxes', () => {
  it('follows sizes of 64 bits and boxes that reach the end', () => {
    const large = Buffer.from(`00000001${Buffer.from('larg').toString('hex')}0000000000000012aabb`, 'hex');
    const open = Buffer.from(`00000000${Buffer.from('last').toString('hex')}cc`, 'hex');
    const boxes = readBoxes(Buffer.concat([large, open]));
    expect(boxes.map((box) => [box.type, box.offset, Buffer.from(box.body).toString('hex')])).toEqual([
      ['larg', 0, 'aabb'],
      ['last', 18, 'cc'],
    ]);
  });

  it('reads or refuses a real header truncated at any byte', () => {
    const bytes = buildInitSegment(videoTrack(), { timescale: 90_000, trackId: 1 });
    for (let length = 0; length < bytes.length; length++) {
      try {
        readBoxes(bytes.subarray(0, length));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });

  it('refuses more boxes side by side than any file has', () => {
    const empty = Buffer.from('0000000866726565', 'hex');
    expect(readBoxes(Buffer.concat(new Array(65_536).fill(empty)))).toHaveLength(65_536);
    expect(() => readBoxes(Buffer.concat(new Array(65_537).fill(empty)))).toThrow('65536 boxes');
  });

  it('survives random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          readBoxes(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});
