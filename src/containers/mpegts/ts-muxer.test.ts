import { describe, expect, it } from 'vitest';
import { dataTrack } from '../../../test/fakes/synthetic-media.ts';
import { type EncodedMedia, encodeMedia } from '../../../test/support/encoded-media.ts';
import { decodeComplaints, ffprobe, type ProbedPacket } from '../../../test/support/ffprobe.ts';
import { demuxTs } from '../../../test/support/ts-demuxer.ts';
import { AnnexbCursor } from '../../codecs/nal/nal-cursor.ts';
import { buildOpusHead } from '../../codecs/opus/opus-head.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { Packet } from '../../media/packet.ts';
import { MILLISECONDS } from '../../media/timebase.ts';
import type { EventFormat } from '../../media/timed-event.ts';
import type { AudioTrack, Track, VideoTrack } from '../../media/track.ts';
import { buildId3Tag } from '../id3/id3-tag.ts';
import { buildCue } from '../markers/cue.ts';
import { buildSpliceInsert, parseSplice, type Splice } from '../markers/splice-info.ts';
import { canCarry } from './stream-type.ts';
import { TsBuffer } from './ts-buffer.ts';
import { TsDemuxer, type TsProgram } from './ts-demuxer.ts';
import { TIME_OFFSET, TsMuxer } from './ts-muxer.ts';

const FAST = ['-preset', 'ultrafast', '-bf', '2'];
const H264_AAC = encodeMedia({ seconds: 3, video: 'libx264', audio: 'aac', size: '640x360', gop: 30, extra: FAST });
const H265 = encodeMedia({ seconds: 1, video: 'libx265', audio: null, rate: 25, gop: 25, extra: FAST });

const videoOf = ({ video }: EncodedMedia): VideoTrack => video!;
const audioOf = ({ audio }: EncodedMedia): AudioTrack => audio!;

function mux(tracks: readonly Track[], packets: readonly Packet[]): Uint8Array {
  const muxer = new TsMuxer(tracks);
  const output = new TsBuffer(1);
  muxer.writeTables(output);
  for (const packet of packets) muxer.writePacket(packet, output);
  return output.view().slice();
}

function isRising(times: readonly number[]): boolean {
  return times.every((time, index) => index === 0 || time > times[index - 1]!);
}

describe('TsMuxer with H.264 and AAC', () => {
  const ts = mux(H264_AAC.tracks, H264_AAC.packets);
  const content = demuxTs(ts);

  it('writes a stream without faults', () => {
    expect(content.faults).toEqual([]);
    expect(content.streams.map(({ streamType }) => streamType)).toEqual([0x1b, 0x0f]);
  });

  it('satisfies ffprobe and a decoder', () => {
    const { streams, packets, complaints } = ffprobe(ts);
    expect(complaints).toEqual([]);
    expect(decodeComplaints(ts)).toEqual([]);
    expect(streams[0]).toMatchObject({ codec_name: 'h264', width: 640, height: 360 });
    expect(streams[1]).toMatchObject({ codec_name: 'aac', sample_rate: '48000', channels: 2 });
    const dtsOf = (type: string): number[] =>
      packets.filter(({ codec_type }) => codec_type === type).map(({ dts_time }: ProbedPacket) => Number(dts_time));
    expect(dtsOf('video')).toHaveLength(90);
    expect(isRising(dtsOf('video'))).toBe(true);
    expect(isRising(dtsOf('audio'))).toBe(true);
    expect(packets.filter((packet) => packet.codec_type === 'video' && packet.flags.startsWith('K'))).toHaveLength(3);
  });

  it('keeps the times of every packet', () => {
    const expected = H264_AAC.packets
      .filter(({ track }) => track.type === 'video')
      .map(({ pts, dts }) => [pts + TIME_OFFSET, dts + TIME_OFFSET]);
    expect(content.streams[0]!.pes.map(({ pts, dts }) => [pts, dts])).toEqual(expected);
  });

  it('puts a delimiter before every frame and parameter sets before keyframes, once', () => {
    const [first, second] = content.streams[0]!.pes;
    const types = (data: Uint8Array): number[] => {
      const found: number[] = [];
      const nals = new AnnexbCursor(data);
      while (nals.next()) found.push((data[nals.start] ?? 0) & 0x1f);
      return found;
    };
    expect(types(first!.data).filter((type) => type !== 6)).toEqual([9, 7, 8, 5]);
    expect(types(second!.data).filter((type) => type !== 6)).toEqual([9, 1]);
  });

  it('has a clock that rises and runs ahead of no decoding time', () => {
    expect(content.pcrPid).toBe(content.streams[0]!.pid);
    expect(isRising(content.pcrs)).toBe(true);
    expect(content.pcrs).toHaveLength(90);
    expect(content.pcrs[0]).toBeLessThan(content.streams[0]!.pes[0]!.dts);
  });

  it('marks random access points', () => {
    const marked = content.adaptationFlags.filter(({ pid, flags }) => pid === content.pcrPid && (flags & 0x40) !== 0);
    expect(marked).toHaveLength(3);
  });

  it('writes the length of audio packets and leaves that of video open', () => {
    expect(content.streams[0]!.pes.every(({ declaredLength }) => declaredLength === 0)).toBe(true);
    expect(content.streams[1]!.pes.every(({ declaredLength }) => declaredLength > 0)).toBe(true);
  });
});

describe('TsMuxer with other tracks', () => {
  it('carries H.265', () => {
    const ts = mux(H265.tracks, H265.packets);
    expect(demuxTs(ts).faults).toEqual([]);
    const { streams, packets, complaints } = ffprobe(ts);
    expect(complaints).toEqual([]);
    expect(decodeComplaints(ts)).toEqual([]);
    expect(streams).toEqual([expect.objectContaining({ codec_name: 'hevc', width: 320, height: 180 })]);
    expect(packets).toHaveLength(25);
  });

  it('uses the first track for the clock when there is no video', () => {
    const audio = H264_AAC.packets.filter(({ track }) => track.type === 'audio');
    const content = demuxTs(mux([audioOf(H264_AAC)], audio));
    expect(content.faults).toEqual([]);
    expect(content.pcrs).toHaveLength(audio.length);
  });

  it('carries ID3 with the descriptors that players expect', () => {
    const data = dataTrack(9);
    const tag = buildId3Tag([{ type: 'TXXX', description: 'info', text: 'value' }]);
    const event: Packet = { track: data, pts: 45_000, dts: 45_000, duration: 0, keyframe: true, data: tag };
    const ts = mux([...H264_AAC.tracks, data], [...H264_AAC.packets.slice(0, 40), event]);
    const content = demuxTs(ts);
    expect(content.faults).toEqual([]);
    expect(Buffer.from(content.programDescriptors).toString('latin1')).toContain('ID3 ');
    const stream = content.streams.find(({ streamType }) => streamType === 0x15)!;
    expect(stream.descriptors[0]).toBe(0x26);
    expect(stream.pes).toEqual([expect.objectContaining({ pts: 45_000 + TIME_OFFSET, streamId: 0xbd, data: tag })]);
    expect(ffprobe(ts).streams.map(({ codec_name }) => codec_name)).toContain('timed_id3');
  });

  it('announces splices with the first one, and writes their time on the clock of the stream', () => {
    const data = dataTrack(9);
    const section = buildSpliceInsert({ id: 3, type: 'out', time: 0, duration: 90_000, autoReturn: true });
    const event = (format: EventFormat, bytes: Uint8Array): Packet => ({
      ...{ track: data, pts: 63_000, dts: 45_000, duration: 0, keyframe: true, data: bytes, event: { format, target: 'all' } },
    });
    const splice = event('scte35', section);
    const cue = event('cue', buildCue({ type: 'out', duration: 1, elapsed: 0 }));
    const plain = mux([...H264_AAC.tracks, data], [...H264_AAC.packets.slice(0, 40), cue]);
    expect(ffprobe(plain).streams.map(({ codec_name }) => codec_name)).not.toContain('scte_35');
    const rest = H264_AAC.packets.slice(40);
    const ts = mux([...H264_AAC.tracks, data], [...H264_AAC.packets.slice(0, 40), splice, cue, ...rest, splice]);
    expect(ffprobe(ts).streams.map(({ codec_name }) => codec_name)).toContain('scte_35');
    expect(decodeComplaints(ts)).toEqual([]);
    const sections: (Splice | null)[] = [];
    const programs: TsProgram[] = [];
    const demuxer = new TsDemuxer({
      onProgram: (program) => programs.push(program),
      onPes: () => undefined,
      onSplice: (bytes) => sections.push(parseSplice(bytes)),
    });
    demuxer.push(ts);
    expect(programs.map(({ streams }) => streams.some(({ kind }) => kind.type === 'splices'))).toEqual([false, true]);
    const expected = { id: 3, type: 'out', time: 63_000 + TIME_OFFSET, duration: 90_000, autoReturn: true };
    expect(sections).toEqual([expected, expected]);
    expect(demuxer.counters).toMatchObject({ gaps: 0, malformed: 0 });
    expect(Buffer.from(demuxTs(ts).programDescriptors).toString('latin1')).toContain('CUEI');
  });

  it('carries Opus with a control header', () => {
    const track: AudioTrack = {
      ...audioOf(H264_AAC),
      id: 5,
      codec: AudioCodec.OPUS,
      timebase: MILLISECONDS,
      config: buildOpusHead({ channels: 2 }),
      language: 'kor',
    };
    // CELT 20 ms, stereo, code 0: every payload is a valid frame.
    const packets = Array.from({ length: 50 }, (_, index): Packet => {
      const data = new Uint8Array(300).fill(index).fill(0xfc, 0, 1);
      return { track, pts: index * 20, dts: index * 20, duration: 20, keyframe: true, data };
    });
    const ts = mux([track], packets);
    const content = demuxTs(ts);
    expect(content.faults).toEqual([]);
    expect([...content.streams[0]!.pes[0]!.data.subarray(0, 4)]).toEqual([0x7f, 0xe0, 255, 45]);
    const { streams, packets: probed } = ffprobe(ts);
    expect(streams[0]).toMatchObject({ codec_name: 'opus', channels: 2, tags: { language: 'kor' } });
    expect(probed).toHaveLength(50);
  });

  it('leaves out tracks that MPEG-TS cannot carry', () => {
    const vp8: VideoTrack = { ...videoOf(H264_AAC), id: 77, codec: VideoCodec.VP8, config: null };
    const mp3: AudioTrack = { ...audioOf(H264_AAC), id: 78, codec: AudioCodec.MP3, config: null };
    expect(canCarry(vp8)).toBe(false);
    expect(canCarry({ ...videoOf(H264_AAC), config: null })).toBe(false);
    const muxer = new TsMuxer([vp8, mp3, { ...mp3, id: 79, sampleRate: 22_050 }]);
    expect([77, 78, 79].map((id) => muxer.carries(id))).toEqual([false, true, true]);
    const output = new TsBuffer();
    muxer.writeTables(output);
    muxer.writePacket({ ...H264_AAC.packets[0]!, track: vp8 }, output);
    expect(demuxTs(output.view()).streams.map(({ streamType }) => streamType)).toEqual([0x03, 0x04]);
  });
});

describe('TsMuxer over time', () => {
  it('keeps the continuity counters over buffers, tables and changes of tracks', () => {
    const muxer = new TsMuxer(H264_AAC.tracks);
    const output = new TsBuffer();
    const pieces: Uint8Array[] = [];
    for (const [index, packet] of H264_AAC.packets.entries()) {
      if (index % 20 === 0) {
        pieces.push(output.view().slice());
        output.reset();
        if (index === 40) muxer.setTracks([...H264_AAC.tracks, dataTrack(9)]);
        muxer.writeTables(output);
      }
      muxer.writePacket(packet, output);
    }
    const content = demuxTs(new Uint8Array(Buffer.concat(pieces)));
    expect(content.faults).toEqual([]);
    expect(new Set(content.pmtVersions)).toEqual(new Set([0, 1]));
  });

  it('follows a new decoder configuration of the same track', () => {
    const video = videoOf(H264_AAC);
    const other = encodeMedia({ seconds: 1, video: 'libx264', audio: null, size: '320x240', extra: ['-preset', 'ultrafast'] });
    const changed: VideoTrack = { ...videoOf(other), id: video.id };
    const ts = mux([video], [H264_AAC.packets.find(({ track }) => track === video)!, { ...other.packets[0]!, track: changed }]);
    const { pes } = demuxTs(ts).streams[0]!;
    expect(Buffer.from(pes[1]!.data).indexOf(Buffer.from(changed.config!.subarray(8, 20)))).toBeGreaterThan(0);
  });

  it('wraps times at 33 bits', () => {
    const packet = {
      ...H264_AAC.packets.find(({ track }) => track.type === 'video')!,
      dts: 2 ** 33 - TIME_OFFSET + 5,
      pts: 2 ** 33 - TIME_OFFSET + 10,
    };
    const content = demuxTs(mux([packet.track], [packet]));
    expect(content.streams[0]!.pes[0]).toMatchObject({ dts: 5, pts: 10 });
    expect(content.pcrs[0]).toBeGreaterThan(2 ** 32);
  });

  it('writes every length of payload without a fault', () => {
    const audio = audioOf(H264_AAC);
    const packets = Array.from(
      { length: 600 },
      (_, length): Packet => ({
        track: audio,
        pts: length * 1024,
        dts: length * 1024,
        duration: 1024,
        keyframe: true,
        data: new Uint8Array(length + 1),
      }),
    );
    const content = demuxTs(mux([audio], packets));
    expect(content.faults).toEqual([]);
    expect(content.streams[0]!.pes.map(({ data }) => data.length)).toEqual(packets.map(({ data }) => data.length + 7));
  });

  it.each([
    [16, 16],
    [50, 40],
  ])('writes tables of several packets: of %i tracks with languages %i are carried', (count, carried) => {
    const source = H264_AAC.packets.filter(({ track }) => track.type === 'audio').slice(0, 5);
    const tracks = Array.from({ length: count }, (_unused, index) => ({ ...audioOf(H264_AAC), id: index, language: 'deu' }));
    const packets = source.flatMap((packet) => tracks.map((track) => ({ ...packet, track })));
    const muxer = new TsMuxer(tracks);
    const output = new TsBuffer(1);
    muxer.writeTables(output);
    muxer.writeTables(output);
    for (const packet of packets) muxer.writePacket(packet, output);
    const ts = output.view().slice();
    const content = demuxTs(ts);
    expect(content.faults).toEqual([]);
    expect(content.streams.map(({ pes }) => pes.length)).toEqual(new Array(carried).fill(5));
    const programs: TsProgram[] = [];
    const demuxer = new TsDemuxer({ onProgram: (program) => programs.push(program), onPes: () => undefined }, { maxStreams: 64 });
    demuxer.push(ts);
    expect(programs.map(({ streams }) => streams.map(({ language }) => language))).toEqual([new Array(carried).fill('deu')]);
    const probed = ffprobe(ts);
    expect(probed.complaints).toEqual([]);
    expect(probed.streams.map(({ codec_name, tags }) => [codec_name, tags?.['language']])).toEqual(new Array(carried).fill(['aac', 'deu']));
  });

  it('writes no bytes of a broken packet', () => {
    const muxer = new TsMuxer(H264_AAC.tracks);
    const output = new TsBuffer();
    const broken = { ...H264_AAC.packets[0]!, track: videoOf(H264_AAC), data: Uint8Array.of(0, 0, 1, 0, 5) };
    expect(() => muxer.writePacket(broken, output)).toThrow(expect.objectContaining({ code: 'NAL_LENGTH' }));
    expect(output.length).toBe(0);
  });
});
