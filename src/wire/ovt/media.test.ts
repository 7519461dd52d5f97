import { describe, expect, test } from 'vitest';
import { audioTrack, dataTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { ASC, AVCC, HVCC } from '../../../test/fixtures/bitstreams.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { parameterSetsOfConfig } from '../../codecs/parameter-sets.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { parseMediaPacket } from './media-packet.ts';
import { canRelay, MediaPacketizer } from './media-packetizer.ts';
import { PACKET_HEADER_LENGTH } from './packet.ts';
import { OvtReader } from './reader.ts';
import { OvtFlag, OvtFormat, OvtPacketType } from './wire-numbers.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

function packet(track: Track, data: Uint8Array, overrides: Partial<Packet> = {}): Packet {
  return { track, pts: 3000, dts: 0, duration: 3000, keyframe: true, data, ...overrides };
}

function unpack(bytes: Uint8Array) {
  const packets: ReturnType<typeof parseMediaPacket>[] = [];
  new OvtReader({ message: 0, media: 1e6 }).push(bytes, (_type, payload) => packets.push(parseMediaPacket(payload)));
  return packets;
}

describe('media packets', () => {
  test('a keyframe of H.264 is laid out to the byte', () => {
    const track = videoTrack({ id: 2, config: AVCC.baseline180 });
    // Delimiter and an SPS of its own, which the configuration replaces, then a slice.
    const data = hex('00000002 09f0 00000003 674200 00000003 658801');
    const bytes = new MediaPacketizer(5).packetize(packet(track, data, { pts: 93_000, dts: 90_000 }));
    const { sps, pps } = parameterSetsOfConfig('H264', AVCC.baseline180);
    const body = Buffer.concat([hex('00000001'), sps[0]!, hex('00000001'), pps[0]!, hex('00000001 658801')]);
    const size = body.length.toString(16).padStart(8, '0');
    const payload = (36 + body.length).toString(16).padStart(4, '0');
    const expected = hex(`60 1e 0000 0000000000016b48 00000005 ${payload}
      00000002 0000000000016b48 0000000000015f90 0000000000000bb8 00 02 01 03 ${size}`);
    expect(bytes).toEqual(Buffer.concat([expected, body]));
  });

  test('further frames are only given start codes, and packets are numbered on', () => {
    const packetizer = new MediaPacketizer(5);
    const track = videoTrack();
    const data = hex('00000002 41aa 00000003 01bbcc');
    packetizer.packetize(packet(track, data));
    const bytes = packetizer.packetize(packet(track, data, { keyframe: false, dts: -90 }));
    expect(bytes.readUInt16BE(2)).toBe(1);
    expect(unpack(bytes)).toEqual([
      {
        trackId: 0,
        pts: 3000,
        dts: -90,
        duration: 3000,
        flag: OvtFlag.NONE,
        format: OvtFormat.H264_ANNEXB,
        packetType: OvtPacketType.NALU,
        data: hex('00000001 41aa 00000001 01bbcc'),
      },
    ]);
  });

  test('H.265 has its parameter sets before keyframes', () => {
    const track = videoTrack({ codec: 'H265', config: HVCC.main1080 });
    const [unit] = unpack(new MediaPacketizer(1).packetize(packet(track, hex('00000003 260101'))));
    const { vps, sps, pps } = parameterSetsOfConfig('H265', HVCC.main1080);
    expect(unit?.format).toBe(OvtFormat.H265_ANNEXB);
    expect(unit?.data).toEqual(Buffer.concat([...vps, ...sps, ...pps, hex('260101')].flatMap((nal) => [hex('00000001'), nal])));
  });

  test('AAC is sent as ADTS, laid out to the byte', () => {
    const bytes = new MediaPacketizer(9).packetize(
      packet(audioTrack({ config: ASC.plainStereo48 }), hex('0102'), { pts: 1024, dts: 1024, duration: 1024 }),
    );
    expect(bytes).toEqual(
      hex(`60 1e 0000 0000000000000400 00000009 002d
        00000001 0000000000000400 0000000000000400 0000000000000400 01 02 0a 01 00000009
        fff14c80013ffc 0102`),
    );
  });

  test.each([
    ['OPUS', OvtFormat.OPUS],
    ['MP3', OvtFormat.MP3],
  ] as const)('audio in %s is sent unchanged', (codec, format) => {
    const [unit] = unpack(new MediaPacketizer(9).packetize(packet(audioTrack({ codec, config: null }), hex('0102'))));
    expect(unit).toMatchObject({ format, data: hex('0102') });
  });

  test.each([
    ['VP8', OvtFormat.VP8],
    ['VP9', OvtFormat.UNKNOWN],
    ['JPEG', OvtFormat.JPEG],
  ] as const)('video in %s is sent unchanged', (codec, format) => {
    const [unit] = unpack(new MediaPacketizer(9).packetize(packet(videoTrack({ codec, config: null }), hex('0102'))));
    expect(unit).toMatchObject({ format, data: hex('0102') });
  });

  test('a large frame crosses in several packets', () => {
    const slice = Buffer.alloc(100_000, 0x55);
    slice.writeUInt32BE(slice.length - 4);
    slice[4] = 0x41;
    const packetizer = new MediaPacketizer(5);
    const bytes = packetizer.packetize(packet(videoTrack(), slice, { keyframe: false }));
    expect(bytes.length).toBe(slice.length + 36 + 4 * PACKET_HEADER_LENGTH);
    expect(slice.subarray(4).equals(unpack(bytes)[0]!.data.subarray(4))).toBe(true);
    expect(packetizer.packetize(packet(videoTrack(), slice)).readUInt16BE(2)).toBe(4);
  });

  test('a track with new parameters is sent with these', () => {
    const packetizer = new MediaPacketizer(5);
    const slice = hex('00000002 6588');
    packetizer.packetize(packet(videoTrack({ config: AVCC.baseline180 }), slice));
    const [unit] = unpack(packetizer.packetize(packet(videoTrack({ config: AVCC.main1080 }), slice)));
    expect(unit?.data.subarray(4, 8)).toEqual(hex('674d4028'));
  });

  test('broken packets are refused', () => {
    const packetizer = new MediaPacketizer(5);
    expect(() => packetizer.packetize(packet(videoTrack(), hex('000000ff 65')))).toThrow(expect.objectContaining({ code: 'NAL_LENGTH' }));
    expect(() => packetizer.packetize(packet(audioTrack(), new Uint8Array(9000)))).toThrow(expect.objectContaining({ code: 'ADTS' }));
    expect(unpack(packetizer.packetize(packet(audioTrack(), hex('01'))))).toHaveLength(1);
  });

  test('tracks without a number are not relayed', () => {
    expect([videoTrack(), audioTrack(), dataTrack(3), audioTrack({ codec: 'PCMA' })].map(canRelay)).toEqual([true, true, false, false]);
  });

  test.each([
    ['too short', hex('00'.repeat(35))],
    ['data size too large', Buffer.concat([hex('00'.repeat(32)), hex('00000002'), hex('00')])],
    ['data size too small', Buffer.concat([hex('00'.repeat(32)), hex('00000000'), hex('00')])],
  ])('%s is refused', (_name, payload) => {
    expect(() => parseMediaPacket(payload)).toThrow(expect.objectContaining({ code: 'OVT_MEDIA' }));
  });

  test('survive hostile bytes', () => {
    survivesHostileBytes(unpack, [new MediaPacketizer(9).packetize(packet(audioTrack(), hex('0102')))]);
  });
});
