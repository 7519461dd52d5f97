import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { demuxTs } from '../../../test/support/ts-demuxer.ts';
import { buildOpusHead } from '../../codecs/opus/opus-head.ts';
import { AudioCodec } from '../../media/codec.ts';
import { MPEG_90K } from '../../media/timebase.ts';
import type { AudioTrack, DataTrack } from '../../media/track.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { buildId3Tag } from '../id3/id3-tag.ts';
import { crc32Mpeg } from './crc32.ts';
import type { ElementaryUnit, UnitReader } from './elementary-unit.ts';
import { buildPat, buildPmt } from './psi.ts';
import { putPcr, putTimestamp } from './timestamp.ts';
import { TsBuffer } from './ts-buffer.ts';
import { type TsCounters, TsDemuxer, type TsDemuxerOptions, type TsProgram } from './ts-demuxer.ts';
import { TIME_OFFSET, TsMuxer } from './ts-muxer.ts';
import { unitReader } from './unit-reader.ts';

const PACKET = 188;

interface Demuxed {
  readonly programs: TsProgram[];
  /** By PID. */
  readonly units: Map<number, ElementaryUnit[]>;
  readonly configs: Map<number, Uint8Array>;
  readonly pes: { pid: number; pts: number | null; dts: number | null; length: number; discontinuity: boolean }[];
  readonly counters: TsCounters;
  readonly skippedBytes: number;
  readonly brokenTables: number;
  readonly faults: string[];
}

/** Pushes the pieces one after the other, each in a buffer that is overwritten afterwards. */
function demux(pieces: Iterable<Uint8Array>, options: TsDemuxerOptions = {}): Demuxed {
  const readers = new Map<number, UnitReader>();
  const result = {
    programs: [] as TsProgram[],
    units: new Map<number, ElementaryUnit[]>(),
    configs: new Map<number, Uint8Array>(),
    pes: [] as Demuxed['pes'],
    faults: [] as string[],
  };
  const demuxer = new TsDemuxer(
    {
      onProgram: (program) => {
        result.programs.push(program);
        for (const { pid, kind } of program.streams) {
          if (kind.type !== 'unsupported' && kind.type !== 'splices') readers.set(pid, unitReader(kind));
        }
      },
      onPes: (packet) => {
        const { pid, pts, dts, data, discontinuity } = packet;
        result.pes.push({ pid, pts, dts, length: data.length, discontinuity });
        const reader = readers.get(pid)!;
        const units = result.units.get(pid) ?? [];
        result.units.set(pid, units);
        try {
          reader.read(packet, (unit) => {
            units.push(unit);
            if (reader.config !== null) result.configs.set(pid, reader.config);
          });
        } catch (error) {
          if (!(error instanceof ProtocolError)) throw error;
          result.faults.push(error.message);
        }
      },
    },
    options,
  );
  for (const piece of pieces) {
    const copy = piece.slice();
    demuxer.push(copy);
    copy.fill(0xaa);
  }
  demuxer.flush();
  return { ...result, counters: demuxer.counters, skippedBytes: demuxer.skippedBytes, brokenTables: demuxer.brokenTables };
}

function encode(...output: string[]): Uint8Array {
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=r=44100'];
  const args = ['-v', 'error', '-nostdin', ...inputs, '-t', '2', ...output, '-f', 'mpegts', 'pipe:1'];
  return new Uint8Array(execFileSync('ffmpeg', args, { maxBuffer: 2 ** 26 }));
}

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-bf', '2', '-pix_fmt', 'yuv420p'];
const SAMPLE = encode(...X264, '-c:a', 'aac', '-ac', '2');

function pieces(data: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(data.length / size) }, (_, index) => data.subarray(index * size, (index + 1) * size));
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

const pidAt = (ts: Uint8Array, at: number): number => ((ts[at + 1]! & 0x1f) << 8) | ts[at + 2]!;
const packetsOf = (ts: Uint8Array): Uint8Array[] => pieces(ts, PACKET);

/** One packet with `payload`, filled by its adaptation field. */
function packet(pid: number, counter: number, payload: Uint8Array, { start = true, flags = 0 } = {}): Uint8Array {
  const bytes = new Uint8Array(PACKET).fill(0xff);
  const adaptation = PACKET - 4 - payload.length;
  bytes.set([0x47, (start ? 0x40 : 0) | (pid >> 8), pid & 0xff, (adaptation > 0 ? 0x30 : 0x10) | (counter & 0xf)]);
  if (adaptation > 0) bytes[4] = adaptation - 1;
  if (adaptation > 1) bytes[5] = flags;
  bytes.set(payload, 4 + adaptation);
  return bytes;
}

function section(pid: number, counter: number, bytes: Uint8Array): Uint8Array {
  const payload = new Uint8Array(184).fill(0xff);
  payload[0] = 0;
  payload.set(bytes, 1);
  return packet(pid, counter, payload);
}

const NO_DESCRIPTORS = new Uint8Array(0);
function tables(version: number, streamTypes: Readonly<Record<number, number>>, counter = 0): Uint8Array[] {
  const entries = Object.entries(streamTypes).map(([pid, streamType]) => ({ pid: Number(pid), streamType, descriptors: NO_DESCRIPTORS }));
  return [
    section(0, counter, buildPat(0x1000, version)),
    section(0x1000, counter, buildPmt({ pcrPid: 0x1fff, version, descriptors: NO_DESCRIPTORS, entries })),
  ];
}

describe('TsDemuxer with streams of ffmpeg', () => {
  const whole = demux([SAMPLE]);
  const [videoPid, audioPid] = [0x100, 0x101];

  it('finds the program and its streams', () => {
    expect(whole.programs).toHaveLength(1);
    expect(whole.programs[0]!.streams.map(({ pid, kind }) => [pid, kind])).toEqual([
      [videoPid, { type: 'video', codec: 'H264' }],
      [audioPid, { type: 'audio', codec: 'AAC', layout: 'adts' }],
    ]);
  });

  it('agrees with an independent reader on every packet and time', () => {
    const judge = demuxTs(SAMPLE);
    for (const stream of judge.streams) {
      const ours = whole.pes.filter(({ pid }) => pid === stream.pid);
      expect(ours.map(({ pts, dts, length }) => [pts, dts, length])).toEqual(
        stream.pes.map(({ pts, dts, data }) => [pts, dts, data.length]),
      );
    }
    expect(whole.counters).toMatchObject({ errors: 0, gaps: 0, duplicates: 0, scrambled: 0, malformed: 0, damaged: 0 });
    expect(whole.faults).toEqual([]);
  });

  it('outputs every video and audio frame with its parameters', () => {
    expect(whole.units.get(videoPid)).toHaveLength(50);
    expect(whole.configs.get(videoPid)![0]).toBe(1);
    const audio = whole.units.get(audioPid)!;
    expect(audio.length).toBeGreaterThanOrEqual(86);
    expect([...whole.configs.get(audioPid)!]).toEqual([0x12, 0x10]);
    const steps = audio.slice(1).map((unit, index) => unit.pts - audio[index]!.pts);
    for (const step of steps) expect(Math.abs(step - (1024 * 90_000) / 44_100)).toBeLessThan(1.5);
  });

  it.each([1, 7, 187, 188, 189, 1316, 4096])('reads the same from pieces of %i bytes', (size) => {
    const cut = demux(pieces(SAMPLE, size));
    expect(cut.pes).toEqual(whole.pes);
    expect(cut.units).toEqual(whole.units);
  });

  it('skips garbage between packets, and an incomplete first packet', () => {
    const garbage = Uint8Array.from({ length: 500 }, (_, index) => (index * 37) & 0xff);
    const dirty = concat([garbage, SAMPLE.subarray(0, PACKET * 40), garbage, SAMPLE.subarray(PACKET * 40)]);
    const result = demux(pieces(dirty, 1316));
    expect(result.pes.map(({ pts }) => pts)).toEqual(whole.pes.map(({ pts }) => pts));
    // Garbage is skipped, except for bytes that happen to look like a packet.
    expect(result.skippedBytes).toBe(1000);
    const late = demux([SAMPLE.subarray(100)]);
    expect(late.units.get(videoPid)).toHaveLength(50);
  });

  it('continues after a truncated datagram', () => {
    const datagrams = pieces(SAMPLE, 1316).map((bytes, index) => (index === 5 ? bytes.subarray(0, 700) : bytes));
    const result = demux(datagrams);
    expect(result.counters.gaps).toBeGreaterThan(0);
    expect(result.units.get(videoPid)!.length).toBeGreaterThan(45);
  });

  it('drops the unit damaged by a lost packet and marks the next one', () => {
    const packets = packetsOf(SAMPLE);
    const lost = packets.findIndex((bytes, index) => index > 100 && pidAt(bytes, 0) === videoPid && (bytes[1]! & 0x40) === 0);
    const result = demux([concat(packets.filter((_, index) => index !== lost))]);
    expect(result.counters).toMatchObject({ gaps: 1, damaged: 1 });
    const video = result.pes.filter(({ pid }) => pid === videoPid);
    expect(video).toHaveLength(49);
    expect(video.filter(({ discontinuity }) => discontinuity)).toHaveLength(1);
  });

  it('drops packets that are repeated, scrambled or marked as broken', () => {
    const packets = packetsOf(SAMPLE);
    expect(demux([concat(packets.flatMap((bytes) => [bytes, bytes]))]).units).toEqual(whole.units);
    const scrambled = packets.map((bytes) => {
      const copy = bytes.slice();
      if (pidAt(bytes, 0) === audioPid) copy[3]! |= 0x80;
      return copy;
    });
    const silent = demux([concat(scrambled)]);
    expect(silent.units.get(audioPid)).toBeUndefined();
    expect(silent.counters.scrambled).toBeGreaterThan(80);
    expect(silent.units.get(videoPid)).toHaveLength(50);
    const broken = packets.map((bytes) => Uint8Array.from(bytes, (byte, index) => (index === 1 ? byte | 0x80 : byte)));
    expect(demux([concat(broken)]).counters.errors).toBe(packets.length);
  });

  it('reads LATM, MP3, H.265 and Opus, and names unsupported streams', () => {
    const latm = demux([encode(...X264, '-c:a', 'aac', '-ac', '1', '-mpegts_flags', 'latm')]);
    expect([...latm.configs.get(0x101)!].slice(0, 2)).toEqual([0x12, 0x08]);
    expect(latm.units.get(0x101)!.length).toBeGreaterThanOrEqual(86);
    expect(latm.faults).toEqual([]);

    const mp3 = demux([encode('-vn', '-map', '1:a', '-c:a', 'libmp3lame')]);
    expect(mp3.programs[0]!.streams[0]!.kind).toMatchObject({ codec: 'MP3' });
    expect(mp3.units.get(0x100)!.length).toBeGreaterThanOrEqual(76);

    const hevc = demux([encode('-an', '-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none', '-pix_fmt', 'yuv420p')]);
    expect(hevc.programs[0]!.streams[0]!.kind).toMatchObject({ codec: 'H265' });
    expect(hevc.units.get(0x100)).toHaveLength(50);
    expect(hevc.configs.has(0x100)).toBe(true);

    const opus = demux([encode('-vn', '-map', '1:a', '-c:a', 'libopus')]);
    expect(opus.programs[0]!.streams[0]!.kind).toEqual({ type: 'audio', codec: 'OPUS', channels: 1 });
    expect(opus.units.get(0x100)!.length).toBeGreaterThanOrEqual(100);
    expect(opus.faults).toEqual([]);

    const other = demux([encode('-c:v', 'mpeg2video', '-c:a', 'ac3')]);
    const unsupported = other.programs[0]!.streams.map(({ kind }) => (kind.type === 'unsupported' ? kind.what : kind.type));
    expect(unsupported).toEqual(['MPEG-2 video', 'AC-3 audio']);
  });
});

describe('TsDemuxer', () => {
  it("reads the muxer's output: Opus and ID3", () => {
    const base = { variantName: '', timebase: MPEG_90K, bitrateConf: 0, language: 'deu', characteristics: '', bypass: true };
    const config = buildOpusHead({ channels: 2 });
    const audio: AudioTrack = {
      ...base,
      type: 'audio',
      id: 1,
      publicName: 'a',
      codec: AudioCodec.OPUS,
      sampleRate: 48_000,
      channels: 2,
      config,
      codecString: 'opus',
    };
    const data: DataTrack = { ...base, type: 'data', id: 2, publicName: 'd', language: '' };
    const tag = buildId3Tag([{ type: 'TXXX', description: '', text: 'hello' }]);
    const frame = new Uint8Array(700).fill(7);
    frame[0] = 0xfc;
    const muxer = new TsMuxer([audio, data]);
    const output = new TsBuffer();
    muxer.writeTables(output);
    for (const [track, payload, time] of [
      [audio, frame, 0],
      [data, tag, 900],
      [audio, frame, 1800],
    ] as const) {
      muxer.writePacket({ track, pts: time, dts: time, duration: 1800, keyframe: true, data: payload }, output);
    }
    const result = demux([output.view()]);
    expect(result.programs[0]!.streams.map(({ kind, language }) => [kind.type, language])).toEqual([
      ['audio', 'deu'],
      ['data', ''],
    ]);
    expect(result.units.get(0x100)!.map(({ pts, data: bytes }) => [pts - TIME_OFFSET, bytes])).toEqual([
      [0, frame],
      [1800, frame],
    ]);
    expect(result.units.get(0x101)!.map(({ pts, data: bytes }) => [pts - TIME_OFFSET, bytes])).toEqual([[900, tag]]);
  });

  it('counts time on past the wrap of 33 bits, in every stream and for late times', () => {
    const pes = (pts: number): Uint8Array => {
      const bytes = Uint8Array.of(0, 0, 1, 0xc0, 0, 0, 0x80, 0x80, 5, 0, 0, 0, 0, 0, 1);
      bytes.set(
        [
          0x21 | (Math.floor(pts / 2 ** 30) << 1),
          (pts >>> 22) & 0xff,
          ((pts >>> 14) & 0xfe) | 1,
          (pts >>> 7) & 0xff,
          ((pts << 1) & 0xfe) | 1,
        ],
        9,
      );
      return bytes;
    };
    const wrap = 2 ** 33;
    const sent: readonly (readonly [number, number])[] = [
      [0x100, wrap - 9000],
      [0x101, wrap - 3000],
      [0x100, 0],
      [0x101, wrap - 1000],
      [0x101, 3000],
      [0x100, 9000],
    ];
    const counters = new Map<number, number>();
    const packets = sent.map(([pid, pts]) => {
      counters.set(pid, (counters.get(pid) ?? -1) + 1);
      return packet(pid, counters.get(pid)!, pes(pts));
    });
    const result = demux([...tables(0, { 256: 0x03, 257: 0x03 }), ...packets]);
    const timesOf = (wanted: number): (number | null)[] => result.pes.filter(({ pid }) => pid === wanted).map(({ pts }) => pts);
    expect(timesOf(0x100)).toEqual([wrap - 9000, wrap, wrap + 9000]);
    expect(timesOf(0x101)).toEqual([wrap - 3000, wrap - 1000, wrap + 3000]);
  });

  it.each([
    ['a PID of its own', 0x200],
    ['the PID of a stream', 0x100],
  ])('uses the clock on %s between distant timestamps', (_where, pcrPid) => {
    const clock = (pid: number, ticks: number): Uint8Array => {
      const bytes = packet(pid, 0, NO_DESCRIPTORS, { start: false, flags: 0x10 });
      bytes[3] = 0x20;
      putPcr(bytes, 6, ticks);
      return bytes;
    };
    const sound = (counter: number, pts: number): Uint8Array => {
      const pes = Uint8Array.of(0, 0, 1, 0xc0, 0, 9, 0x80, 0x80, 5, 0, 0, 0, 0, 0, 1);
      putTimestamp(pes, 9, 2, pts);
      return packet(0x100, counter, pes);
    };
    const entries = [{ pid: 0x100, streamType: 0x03, descriptors: NO_DESCRIPTORS }];
    const map = buildPmt({ pcrPid, version: 0, descriptors: NO_DESCRIPTORS, entries });
    const quarter = 2 ** 31;
    const stream = [section(0, 0, buildPat(0x1000, 0)), section(0x1000, 0, map), sound(0, 0)];
    // A step of three quarters of a day would seem to lead back if only one time were seen. Clocks on other PIDs are ignored.
    for (const count of [1, 2, 3]) stream.push(clock(pcrPid, count * quarter), clock(0x300, 0));
    expect(demux([...stream, sound(1, 3 * quarter + 9000)]).pes.map(({ pts }) => pts)).toEqual([0, 3 * quarter + 9000]);
  });

  it('follows a changed program map and keeps the streams that stay', () => {
    const result = demux([
      ...tables(0, { 256: 0x1b, 257: 0x0f }),
      ...tables(0, { 256: 0x1b, 257: 0x0f }, 1),
      ...tables(1, { 256: 0x1b, 258: 0x24 }, 2),
    ]);
    expect(result.programs).toHaveLength(2);
    expect(result.programs[1]!.streams.map(({ pid }) => pid)).toEqual([0x100, 0x102]);
    expect(result.programs[1]!.streams[0]).toBe(result.programs[0]!.streams[0]);
  });

  const withCrc = (bytes: Uint8Array): Uint8Array => {
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(bytes.length - 4, crc32Mpeg(bytes.subarray(0, -4)));
    return bytes;
  };
  /** Programs by number, with the PID of their map; `part` is one of the sections up to `last`. */
  const pat = (programs: Readonly<Record<number, number>>, part = 0, last = 0): Uint8Array => {
    const body = Object.entries(programs).flatMap(([number, pid]) => [0, Number(number), 0xe0 | (pid >> 8), pid & 0xff]);
    return withCrc(Uint8Array.from([0x00, 0xb0, 5 + body.length + 4, 0, 1, 0xc1, part, last, ...body, 0, 0, 0, 0]));
  };
  const pmt = (programNumber: number, streamType: number): Uint8Array => {
    const entries = [{ pid: 0x100, streamType, descriptors: NO_DESCRIPTORS }];
    const bytes = buildPmt({ pcrPid: 0x1fff, version: 0, descriptors: NO_DESCRIPTORS, entries });
    bytes[4] = programNumber;
    return withCrc(bytes);
  };
  const followed = (stream: readonly Uint8Array[], options: TsDemuxerOptions = {}): number[] =>
    demux(stream, options).programs.map(({ programNumber }) => programNumber);

  it('selects the first program or the configured one', () => {
    const stream = [section(0, 0, pat({ 1: 0x1000, 2: 0x1100 })), section(0x1000, 0, pmt(1, 0x1b)), section(0x1100, 0, pmt(2, 0x24))];
    expect(followed(stream)).toEqual([1]);
    expect(followed(stream, { program: 2 })).toEqual([2]);
    expect(followed(stream, { program: 3 })).toEqual([]);
  });

  it('follows its program to another PID, switches to another program after its end, and ignores a table in several sections', () => {
    const maps = (at: number): Uint8Array[] => [section(0x1000, at, pmt(1, 0x1b)), section(0x1100, at, pmt(2, 0x24))];
    const begin = [section(0, 0, pat({ 1: 0x1000, 2: 0x1100 })), ...maps(0)];
    const moved = [section(0, 1, pat({ 1: 0x1200 })), section(0x1000, 1, pmt(1, 0x0f)), section(0x1200, 0, pmt(1, 0x24))];
    const { programs } = demux([...begin, ...moved]);
    expect(programs.map(({ streams }) => streams.map(({ kind }) => kind))).toMatchObject([[{ codec: 'H264' }], [{ codec: 'H265' }]]);
    expect(followed([...begin, section(0, 1, pat({ 2: 0x1100 })), ...maps(1)])).toEqual([1, 2]);
    const parts = (at: number): Uint8Array[] => [section(0, at, pat({ 1: 0x1000 }, 0, 1)), section(0, at + 1, pat({ 2: 0x1100 }, 1, 1))];
    expect(followed([...parts(0), ...maps(0), ...parts(2), ...maps(1)])).toEqual([1]);
    expect(followed([...parts(0), ...maps(0)], { program: 2 })).toEqual([2]);
  });

  it('refuses tables whose checksum is wrong', () => {
    const packets = tables(0, { 256: 0x1b });
    packets[1]![20]! ^= 1;
    const result = demux(packets);
    expect(result.programs).toEqual([]);
    expect(result.brokenTables).toBe(1);
  });

  it('bounds a packet that never ends', () => {
    const start = packet(0x100, 0, Uint8Array.of(0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0));
    const more = Array.from({ length: 100 }, (_, index) => packet(0x100, index + 1, new Uint8Array(184), { start: false }));
    const result = demux([...tables(0, { 256: 0x1b }), start, ...more], { maxPesBytes: 2000 });
    expect(result.counters.oversized).toBe(1);
    expect(result.pes).toEqual([]);
  });

  it('survives any bytes, and real streams with any bytes changed', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 400 }), { maxLength: 5 }), (parts) => {
        demux(parts);
      }),
      { numRuns: 300 },
    );
    const start = SAMPLE.slice(0, PACKET * 60);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(start.length - 1), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 2000 }),
        (changes, size) => {
          const changed = start.slice();
          for (const [at, value] of changes) changed[at] = value;
          demux(pieces(changed, size));
        },
      ),
      { numRuns: 300 },
    );
  });
});
