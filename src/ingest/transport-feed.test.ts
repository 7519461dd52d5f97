import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { FakeIngestGate, type FakeIngestStream } from '../../test/fakes/fake-ingest-gate.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack, dataTrack } from '../../test/fakes/synthetic-media.ts';
import { codeOf } from '../../test/support/error-code.ts';
import { survivesHostileBytes } from '../../test/support/hostile-bytes.ts';
import { buildSpliceInsert, parseSplice } from '../containers/markers/splice-info.ts';
import { TsBuffer } from '../containers/mpegts/ts-buffer.ts';
import { TIME_OFFSET, TsMuxer } from '../containers/mpegts/ts-muxer.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { TransportFeed, type TransportFeedOptions } from './transport-feed.ts';

const INPUTS = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=r=48000'];
const VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-pix_fmt', 'yuv420p'];

function encode(...output: string[]): Uint8Array {
  const args = ['-v', 'error', '-nostdin', ...INPUTS, '-t', '3', ...output, '-f', 'mpegts', 'pipe:1'];
  return new Uint8Array(execFileSync('ffmpeg', args, { maxBuffer: 2 ** 26 }));
}

const SAMPLE = encode(...VIDEO, '-c:a', 'aac', '-metadata:s:a:0', 'language=fra');

function open(options: Partial<TransportFeedOptions> = {}): { feed: TransportFeed; stream: FakeIngestStream } {
  const gate = new FakeIngestGate();
  const request = { streamName: 's', provider: 'mpegts', sourceType: 'MPEGTS', sourceUrl: 'udp://x', onClose: () => undefined } as const;
  gate.openIngest({ host: 'h', app: 'a' }, request);
  const stream = gate.streams[0]!;
  return { feed: new TransportFeed({ stream, logger: new RecordingLogger(), ...options }), stream };
}

/** Tables of a program of these tracks. */
function tables(tracks: readonly Track[]): Uint8Array {
  const buffer = new TsBuffer();
  new TsMuxer(tracks).writeTables(buffer);
  return buffer.view().slice();
}

describe('an unusable source', () => {
  const audios = [0, 1].map((id) => audioTrack({ id: id + 1 }));

  it('is refused when its program changes continuously, but not for occasional changes', () => {
    const clock = new ManualClock();
    const { feed } = open({ clock });
    const [one, two] = [tables(audios.slice(0, 1)), tables(audios)];
    // A counter that continues, like that of one multiplexer.
    let packets = 0;
    const send = (table: Uint8Array): void => {
      const copy = table.slice();
      for (let at = 0; at < copy.length; at += 188) copy[at + 3] = (copy[at + 3]! & 0xf0) | (packets & 0xf);
      packets += 1;
      feed.push(copy);
    };
    for (let change = 0; change < 200; change += 1) {
      send(change % 2 === 0 ? one : two);
      clock.advance(2000);
    }
    expect(feed.counters.programs).toBe(200);
    const flood = (): void => {
      for (let change = 0; change < 200; change += 1) send(change % 2 === 0 ? one : two);
    };
    expect(codeOf(flood)).toBe('TS_PROGRAMS');
    expect(feed.counters.programs).toBeLessThan(265);
    expect(codeOf(() => send(one))).toBe('TS_PROGRAMS');
  });

  it('is accepted without a clock, as files have no arrival times', () => {
    const { feed } = open();
    for (let change = 0; change < 400; change += 1) {
      const copy = tables(audios.slice(0, 1 + (change % 2)));
      for (let at = 0; at < copy.length; at += 188) copy[at + 3] = (copy[at + 3]! & 0xf0) | (change & 0xf);
      feed.push(copy);
    }
    expect(feed.counters.programs).toBe(400);
  });
});

it('an unsupported stream is named once, even in a later program map', () => {
  const logger = new RecordingLogger();
  const { feed } = open({ logger });
  const later = encode('-c:v', 'mpeg2video', '-c:a', 'ac3');
  for (const source of [SAMPLE, later, SAMPLE, later]) feed.push(source);
  expect(feed.counters.programs).toBe(4);
  expect(logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
    'streams left out: MPEG-2 video, AC-3 audio; a transport stream can bring H.264, H.265, AAC, MP3, Opus, ID3 and SCTE-35',
  ]);
});

describe('splices', () => {
  const data = { ...dataTrack(0), timebase: MPEG_90K };
  const audio = audioTrack({ id: 1 });

  /** A second of audio, a splice told then, and more audio. */
  function stream(section: Uint8Array): Uint8Array {
    const buffer = new TsBuffer();
    const muxer = new TsMuxer([data, audio]);
    muxer.writeTables(buffer);
    const frames = audioPackets(audio, 2);
    for (const packet of frames.slice(0, 40)) muxer.writePacket(packet, buffer);
    const pts = 450_000;
    muxer.writePacket(
      { track: data, pts, dts: 0, duration: 0, keyframe: true, data: section, event: { format: 'scte35', target: 'all' } },
      buffer,
    );
    for (const packet of frames.slice(40)) muxer.writePacket(packet, buffer);
    return buffer.view().slice();
  }

  it('are passed on with their time on the clock of the source, for any PTS adjustment', () => {
    const { feed, stream: taken } = open();
    const section = buildSpliceInsert({ id: 9, type: 'out', time: 123, duration: 90_000, autoReturn: false });
    feed.push(stream(section));
    feed.end();
    expect(taken.tracks.map(({ type }) => type)).toEqual(['data', 'audio']);
    expect(taken.events.map(({ format, at }) => [format, at])).toEqual([['scte35', (450_000 + TIME_OFFSET) / 90_000]]);
    expect(parseSplice(taken.events[0]?.data ?? new Uint8Array(0))).toMatchObject({ id: 9, type: 'out', duration: 90_000 });
  });

  it('keep their bytes after their buffer is reused, and are dropped before the tracks are known', () => {
    const { feed, stream: taken } = open();
    const [before, first, second] = [1, 2, 3].map((id) =>
      buildSpliceInsert({ id, type: 'out', time: 0, duration: 90_000, autoReturn: false }),
    );
    const buffer = new TsBuffer();
    const muxer = new TsMuxer([data, audio]);
    muxer.writeTables(buffer);
    const splice = (section: Uint8Array): void =>
      muxer.writePacket(
        { track: data, pts: 450_000, dts: 0, duration: 0, keyframe: true, data: section, event: { format: 'scte35', target: 'all' } },
        buffer,
      );
    const frames = audioPackets(audio, 2);
    splice(before!);
    for (const packet of frames.slice(0, 40)) muxer.writePacket(packet, buffer);
    splice(first!);
    splice(second!);
    for (const packet of frames.slice(40)) muxer.writePacket(packet, buffer);
    const bytes = buffer.view().slice();
    for (let at = 0; at < bytes.length; at += 188) {
      const piece = bytes.slice(at, at + 188);
      feed.push(piece);
      piece.fill(0xff);
    }
    expect(taken.events.map(({ data: section }) => parseSplice(section)?.id)).toEqual([2, 3]);
  });

  it('have the time of the media after the clock of the source has wrapped', () => {
    const { feed, stream: taken } = open();
    const buffer = new TsBuffer();
    const muxer = new TsMuxer([data, audio]);
    muxer.writeTables(buffer);
    const lap = 2 ** 33 / 90_000;
    const frames = audioPackets(audio, 4).map((packet) => {
      const moved = Math.round((lap - 3) * 48_000);
      return { ...packet, pts: packet.pts + moved, dts: packet.dts + moved };
    });
    for (const packet of frames) muxer.writePacket(packet, buffer);
    const section = buildSpliceInsert({ id: 9, type: 'out', time: 0, duration: 90_000, autoReturn: false });
    const pts = Math.round((lap + 2) * 90_000);
    muxer.writePacket(
      { track: data, pts, dts: 0, duration: 0, keyframe: true, data: section, event: { format: 'scte35', target: 'all' } },
      buffer,
    );
    for (const packet of frames.slice(-2)) muxer.writePacket(packet, buffer);
    feed.push(buffer.view().slice());
    feed.end();
    const last = taken.packets.at(-3)!;
    expect(taken.events[0]!.at! - last.pts / 90_000).toBeCloseTo(1, 0);
  });

  it('that are malformed are dropped without other loss', () => {
    const { feed, stream: taken } = open();
    const section = buildSpliceInsert({ id: 9, type: 'out', time: 123, duration: 90_000, autoReturn: false });
    const bytes = stream(section);
    const at = bytes.findIndex((_byte, index) => index % 188 === 0 && ((bytes[index + 1]! & 0x1f) << 8) + bytes[index + 2]! === 0x1f0);
    bytes[at + 12]! ^= 1;
    feed.push(bytes);
    feed.end();
    expect([taken.events, taken.packets.length > 80]).toEqual([[], true]);
  });
});

describe('TransportFeed', () => {
  it('announces all tracks at once with their parameters and passes every unit on in order', () => {
    let started = 0;
    const { feed, stream } = open({ onStarted: () => (started += 1) });
    for (let at = 0; at < SAMPLE.length; at += 1316) feed.push(SAMPLE.subarray(at, at + 1316));
    feed.end();
    expect(started).toBe(1);
    expect(stream.trackSets).toHaveLength(1);
    expect(stream.tracks).toMatchObject([
      { id: 0x100, type: 'video', codec: 'H264', format: 'length-prefixed', width: 320, height: 180 },
      { id: 0x101, type: 'audio', codec: 'AAC', format: 'aac-raw', sampleRate: 48_000, channels: 1, language: 'fra' },
    ]);
    const video = stream.packets.filter(({ trackId }) => trackId === 0x100);
    expect(video).toHaveLength(75);
    expect(stream.packets.length - video.length).toBeGreaterThanOrEqual(140);
    // 4-byte lengths that lead from unit to unit up to the end.
    for (const { data } of video) {
      let at = 0;
      while (at < data.length) at += 4 + new DataView(data.buffer, data.byteOffset).getUint32(at);
      expect(at).toBe(data.length);
    }
    expect(feed.counters).toEqual({ programs: 1, malformed: 0, firstFault: null });
    expect(feed.undecodable).toBe(0);
  });

  it('does not start a stream without readable tracks, and names the fault', () => {
    const { feed, stream } = open({ limits: { trackWait: 1000 } });
    stream.fault = new ProtocolError('AVCC', 'made up');
    feed.push(SAMPLE);
    feed.checkStart(0);
    feed.checkStart(1000);
    feed.end();
    expect([feed.started, feed.fault, stream.packets]).toEqual([false, 'AVCC: made up', []]);
  });

  it('names audio tracks by the audio map', () => {
    const { feed, stream } = open({ audioLabels: [{ name: 'Commentary', language: 'en', characteristics: 'public.x' }] });
    feed.push(SAMPLE);
    expect(stream.tracks[1]).toMatchObject({ publicName: 'Commentary', language: 'en', characteristics: 'public.x' });
  });

  it('starts without a track that never sends its parameters, after the waiting time', () => {
    const { feed, stream } = open({ limits: { trackWait: 1000 } });
    // A stream joined in the middle: audio at once, parameter sets of the frame not before the next keyframe.
    const withoutVideo = SAMPLE.slice();
    for (let at = 0; at < withoutVideo.length; at += 188) {
      if ((withoutVideo[at + 1]! & 0x1f) === 1 && withoutVideo[at + 2] === 0) withoutVideo[at + 3]! |= 0x80;
    }
    const half = Math.floor(withoutVideo.length / 376) * 188;
    feed.push(withoutVideo.subarray(0, half));
    feed.checkStart(0);
    feed.checkStart(999);
    expect(stream.trackSets).toHaveLength(0);
    feed.checkStart(1000);
    expect(stream.tracks.map(({ type }) => type)).toEqual(['audio']);
    expect(stream.packets.length).toBeGreaterThan(10);
    feed.push(SAMPLE.subarray(half));
    feed.end();
    expect(stream.tracks.map(({ type }) => type)).toEqual(['video', 'audio']);
  });

  it('follows a program map that loses and wins a stream', () => {
    const { feed, stream } = open();
    feed.push(SAMPLE);
    feed.push(encode(...VIDEO, '-an'));
    feed.end();
    expect(stream.trackSets.map((tracks) => tracks.map(({ id }) => id))).toEqual([[0x100, 0x101], [0x100]]);
    feed.push(SAMPLE);
    feed.end();
    expect(stream.tracks.map(({ id }) => id)).toEqual([0x100, 0x101]);
  });

  it('takes the configured program of several', () => {
    const programs = ['-map', '0:v', '-map', '1:a', '-map', '0:v', '-map', '1:a', '-s:v:1', '160x90'];
    const split = ['-program', 'program_num=1:st=0:st=1', '-program', 'program_num=7:st=2:st=3'];
    const both = encode(...VIDEO, '-c:a', 'aac', ...programs, ...split);
    const take = (program?: number) => {
      const { feed, stream } = open(program === undefined ? {} : { program });
      feed.push(both);
      feed.end();
      return {
        fault: feed.fault,
        ids: stream.trackSets.flat().map(({ id }) => id),
        width: stream.trackSets[0]?.[0],
        packets: stream.packets,
      };
    };
    expect(take()).toMatchObject({ fault: null, ids: [0x100, 0x101], width: { width: 320 } });
    expect(take(1)).toMatchObject({ fault: null, ids: [0x100, 0x101], width: { width: 320 } });
    const seventh = take(7);
    expect(seventh).toMatchObject({ fault: null, ids: [0x102, 0x103], width: { width: 160 } });
    expect(new Set(seventh.packets.map(({ trackId }) => trackId))).toEqual(new Set([0x102, 0x103]));
    expect(take(3)).toMatchObject({ fault: 'there is no program 3 among 1, 7', ids: [], packets: [] });
  });

  it('bounds the packets that it holds', () => {
    const { feed, stream } = open({ limits: { heldPackets: 20 } });
    const withoutAudio = SAMPLE.slice();
    for (let at = 0; at < withoutAudio.length; at += 188) {
      if ((withoutAudio[at + 1]! & 0x1f) === 1 && withoutAudio[at + 2] === 1) withoutAudio[at + 3]! |= 0x80;
    }
    feed.push(withoutAudio);
    expect(stream.tracks.map(({ type }) => type)).toEqual(['video']);
    expect(stream.packets.length).toBeGreaterThan(60);
  });

  it('survives hostile streams', () => {
    const starts = [SAMPLE, encode('-vn', '-c:a', 'aac', '-mpegts_flags', 'latm'), encode('-vn', '-c:a', 'libopus')].map((ts) =>
      ts.subarray(0, 188 * 12),
    );
    survivesHostileBytes((bytes) => {
      const { feed } = open();
      feed.push(bytes);
      feed.end();
    }, starts);
  });
});
