import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { EncodedFiles } from '../../test/support/encoded-files.ts';
import { toSeconds } from '../media/timebase.ts';
import { type FileBytes, OpenFile } from './file-bytes.ts';
import type { MediaFile } from './media-file.ts';
import { openMediaFile } from './open-media-file.ts';

const SOURCE = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=30', '-f', 'lavfi', '-i', 'sine=sample_rate=48000', '-t', '2'];
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '30', '-c:a', 'aac'];

let files: EncodedFiles;
let folder: string;
beforeAll(() => {
  files = new EncodedFiles(SOURCE);
  folder = files.folder;
});
afterAll(() => files.close());

function encode(name: string, options: readonly string[]): string {
  return files.encode(name, options);
}

interface Line {
  readonly type: string;
  readonly pts: string;
  readonly hash: string;
}

/** Packets as ffprobe lists them, without those that the edit list cuts off. */
function expected(path: string): Line[] {
  const entries = 'packet=codec_type,pts_time,data_hash,flags';
  const options = ['-v', 'error', '-of', 'json', '-show_packets', '-show_data_hash', 'md5', '-show_entries', entries];
  const { packets } = JSON.parse(execFileSync('ffprobe', [...options, path], { encoding: 'utf8', maxBuffer: 1 << 26 })) as {
    packets: { codec_type: string; pts_time: string; data_hash: string; flags: string }[];
  };
  return packets
    .filter(({ flags }) => !flags.includes('D'))
    .map(({ codec_type, pts_time, data_hash }) => ({ type: codec_type, pts: Number(pts_time).toFixed(4), hash: data_hash.slice(4) }));
}

async function readAll(file: MediaFile): Promise<{ lines: Line[]; disorder: number; tracks: number }> {
  const types = new Map<number, string>();
  const lines: Line[] = [];
  let last = Number.NEGATIVE_INFINITY;
  let disorder = 0;
  let tracks = 0;
  for (let event = await file.next(); event !== null; event = await file.next()) {
    if (event.type === 'tracks') {
      tracks += 1;
      for (const { id, type } of event.tracks) types.set(id, type);
      continue;
    }
    const { packet, timebase } = event;
    const at = toSeconds(packet.dts, timebase);
    if (at < last) disorder += 1;
    last = at;
    const hash = createHash('md5').update(packet.data).digest('hex');
    lines.push({ type: types.get(packet.trackId) ?? '', pts: toSeconds(packet.pts, timebase).toFixed(4), hash });
  }
  return { lines, disorder, tracks };
}

const of = (lines: readonly Line[], type: string) => lines.filter((line) => line.type === type);

describe('a media file', () => {
  it.each([
    ['MP4 with its tables at the end', 'end.mp4', H264],
    ['MP4 with its tables first', 'first.mp4', [...H264, '-movflags', '+faststart']],
    ['fragmented MP4 that counts from the beginning of the file', 'base.mp4', [...H264, '-movflags', 'frag_keyframe+empty_moov']],
    ['fragmented MP4', 'fragments.mp4', [...H264, '-movflags', 'frag_keyframe+empty_moov+default_base_moof']],
    ['MP4 whose second half is fragments', 'hybrid.mp4', [...H264, '-movflags', 'frag_keyframe']],
    ['a fragment for each track alone', 'separate.mp4', [...H264, '-movflags', 'frag_keyframe+empty_moov+separate_moof+omit_tfhd_offset']],
    ['QuickTime', 'quick.mov', H264],
    ['H.265 and Opus', 'hevc.mp4', ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none', '-c:a', 'libopus']],
    ['VP9 and MP3', 'vp9.mp4', ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-c:a', 'libmp3lame']],
    ['audio alone', 'sound.m4a', ['-vn', '-c:a', 'aac']],
  ])('%s is read packet by packet, in the order of decoding, and again', async (_what, name, options) => {
    const path = encode(name, options);
    const bytes = await OpenFile.open(path);
    const file = await openMediaFile(bytes, new RecordingLogger());
    const first = await readAll(file);
    const wanted = expected(path);
    expect(of(first.lines, 'video')).toEqual(of(wanted, 'video'));
    expect(of(first.lines, 'audio')).toEqual(of(wanted, 'audio'));
    expect([first.disorder, first.tracks]).toEqual([0, 1]);
    file.rewind();
    expect(await readAll(file)).toEqual(first);
    await bytes.close();
    await bytes.close();
  });

  it('MPEG-TS is read packet by packet, and again', async () => {
    const path = encode('stream.ts', H264);
    const bytes = await OpenFile.open(path);
    const file = await openMediaFile(bytes, new RecordingLogger());
    const first = await readAll(file);
    const times = (lines: readonly Line[], type: string) => of(lines, type).map(({ pts }) => pts);
    expect(times(first.lines, 'video')).toEqual(times(expected(path), 'video'));
    expect(times(first.lines, 'audio')).toEqual(times(expected(path), 'audio'));
    file.rewind();
    expect(await readAll(file)).toEqual(first);
    await bytes.close();
  });

  it.each([
    ['is neither', 'neither MP4 nor MPEG-TS', () => Buffer.from('hello, this is a text and no media file')],
    ['is empty', 'neither MP4 nor MPEG-TS', () => Buffer.alloc(0)],
    ['has no moov yet', 'no moov', () => Buffer.from('\0\0\0\x10ftypisom\0\0\0\0', 'latin1')],
    ['is cut off', 'not complete', () => readFileSync(encode('cut.mp4', [...H264, '-movflags', '+faststart'])).subarray(0, 900)],
  ])('is refused when it %s', async (_what, reason, contents) => {
    const path = join(folder, 'broken');
    writeFileSync(path, contents());
    const bytes = await OpenFile.open(path);
    await expect(openMediaFile(bytes, new RecordingLogger())).rejects.toThrow(reason);
    await bytes.close();
  });

  const put = (bytes: Buffer, type: string, values: readonly (readonly [at: number, value: number])[]): void => {
    for (const [at, value] of values) bytes.writeUInt32BE(value, bytes.indexOf(type) + at);
  };

  /** As many samples as a table can name, of one byte and without duration. */
  const claimEndless = (bytes: Buffer): void => {
    put(bytes, 'stsz', [
      [8, 1],
      [12, 0xff_ff_ff_ff],
    ]);
    put(bytes, 'stts', [
      [12, 0xff_ff_ff_ff],
      [16, 0],
    ]);
  };

  it('fails when a small file claims very long audio before its start, without blocking the event loop', async () => {
    const bytes = readFileSync(encode('priming.m4a', ['-vn', '-c:a', 'aac']));
    claimEndless(bytes);
    // All in one chunk.
    put(bytes, 'stsc', [[16, 0xff_ff_ff_ff]]);
    const file = await openMediaFile(inMemory(bytes), new RecordingLogger());
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    await expect(readAll(file)).rejects.toThrow(/without anything to play/);
    clearInterval(others);
    expect(turns).toBeGreaterThan(0);
  });

  /** Samples of one byte without number, all at one time and place. */
  const endless = (): Buffer => {
    const bytes = readFileSync(encode('endless.mp4', [...H264, '-an']));
    claimEndless(bytes);
    // The first is shown when it is decoded, all others very much later.
    expect(bytes.indexOf('ctts')).toBeGreaterThan(0);
    put(bytes, 'ctts', [
      [12, 1],
      [16, 0],
      [20, 0xff_ff_ff_ff],
      [24, 0x10_00_00_00],
    ]);
    put(bytes, 'stsc', [[16, 0xff_ff_ff_ff]]);
    // A file can be started at each of them.
    bytes.write('free', bytes.indexOf('stss'), 'latin1');
    return bytes;
  };

  it('does not block the event loop while a small file yields endless frames', async () => {
    const file = await openMediaFile(inMemory(endless()), new RecordingLogger());
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    for (let read = 0; turns < 3; read += 1) {
      expect(read).toBeLessThan(5_000_000);
      if ((await file.next()) === null) throw new Error('it has ended');
    }
    clearInterval(others);
  });

  it('limits the search for a keyframe, without blocking the event loop', async () => {
    const file = await openMediaFile(inMemory(endless()), new RecordingLogger());
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    await expect(file.seek(1)).rejects.toThrow('1000 keyframes that are shown later');
    clearInterval(others);
    expect(turns).toBeGreaterThan(0);
  });

  it('fails at an oversized frame, and after thousands of boxes without a sample', async () => {
    const large = readFileSync(encode('large.mp4', [...H264, '-an']));
    large.writeUInt32BE(17_000_000, large.indexOf('stsz') + 16);
    const roomy = { size: 100_000_000, read: async (offset: number, length: number) => large.subarray(offset, offset + length) };
    await expect(readAll(await openMediaFile(roomy, new RecordingLogger()))).rejects.toThrow(/^a sample of 17000000 bytes(?! lies)/);
    const fragmented = readFileSync(encode('boxes.mp4', [...H264, '-movflags', 'frag_keyframe+empty_moov']));
    const head = fragmented.subarray(0, fragmented.indexOf('moof') - 4);
    const free = Buffer.from('\0\0\0\x08free', 'latin1');
    const empty = Buffer.concat([head, ...new Array<Buffer>(10_100).fill(free), fragmented.subarray(head.length)]);
    await expect(readAll(await openMediaFile(inMemory(empty), new RecordingLogger()))).rejects.toThrow('10001 boxes without a sample');
  });

  it('ends when fragments pile up that never get later', async () => {
    const options = [...H264, '-movflags', 'frag_keyframe+empty_moov+separate_moof+default_base_moof'];
    const bytes = readFileSync(encode('piled.mp4', options));
    const boxes: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) boxes.push(bytes.subarray(at, at + bytes.readUInt32BE(at)));
    const typeOf = (box: Buffer): string => box.toString('latin1', 4, 8);
    const fragments = boxes.filter((box) => typeOf(box) === 'moof');
    // Of the first track, and not the frame at 0, which would follow the previous one.
    const repeated = fragments.filter((box) => box.readUInt32BE(box.indexOf('tfhd') + 8) === 1)[1]!;
    const head = boxes.slice(0, boxes.indexOf(fragments[0]!));
    const piled = Buffer.concat([...head, ...new Array<Buffer>(5000).fill(repeated)]);
    const file = await openMediaFile(inMemory(piled), new RecordingLogger());
    await expect(readAll(file)).rejects.toThrow(/samples that wait for another track/);
  });

  it.each([
    ['of another container', 'foreign.mkv', H264, true],
    ['of MP4 with unsupported audio', 'foreign.mp4', [...H264, '-c:a', 'ac3'], true],
    ['of MPEG-TS with unsupported video', 'foreign.ts', ['-c:v', 'mpeg2video', '-c:a', 'mp2'], true],
    ['of MP4 with supported codecs', 'own.mp4', H264, false],
    ['of MPEG-TS with supported codecs', 'own.ts', H264, false],
  ])('%s is passed to another reader if necessary', async (_what, name, options, expected) => {
    const bytes = await OpenFile.open(encode(name, options));
    const theirs: MediaFile = await openMediaFile(inMemory(readFileSync(encode('theirs.mp4', H264))), new RecordingLogger());
    const file = await openMediaFile(bytes, new RecordingLogger(), async () => theirs);
    expect(file === theirs).toBe(expected);
    await bytes.close();
  });

  it('is played without tracks that cannot be read, and the log names them', async () => {
    const logger = new RecordingLogger();
    const bytes = await OpenFile.open(encode('half.mp4', [...H264, '-c:a', 'ac3']));
    const file = await openMediaFile(bytes, logger, () => Promise.reject(new Error('no room')));
    const { lines } = await readAll(file);
    expect([of(lines, 'video').length, of(lines, 'audio').length]).toEqual([60, 0]);
    expect(logger.lines).toMatchObject([{ message: 'ac-3 cannot be read: no room' }, { message: 'tracks left out: ac-3' }]);
    await bytes.close();
  });

  it('signals its close to other readers of its descriptor', async () => {
    const bytes = await OpenFile.open(encode('closing.ts', H264));
    expect([bytes.descriptor > 2, bytes.closed.aborted]).toEqual([true, false]);
    await bytes.close();
    expect(bytes.closed.aborted).toBe(true);
  });

  it('is refused when it is a folder or a device', async () => {
    await expect(OpenFile.open(folder)).rejects.toThrow('is not a file');
    await expect(OpenFile.open('/dev/zero')).rejects.toThrow('is not a file');
  });

  it.each([
    ['MP4', 'hostile.mp4', []],
    ['fragmented MP4', 'hostile-fragments.mp4', ['-movflags', 'frag_keyframe+empty_moov+default_base_moof']],
    ['MPEG-TS', 'hostile.ts', []],
  ])('%s with damaged bytes ends or is refused', async (_what, name, options) => {
    const good = readFileSync(encode(name, [...H264, ...options, '-t', '0.3']));
    const attempt = async (bytes: Buffer): Promise<void> => {
      try {
        const file = await openMediaFile(inMemory(bytes), new RecordingLogger());
        await file.length();
        await file.seek(0.2);
        for (let count = 0; count < 1000 && (await file.next()) !== null; count += 1);
      } catch (error) {
        expect(error).toMatchObject({ name: expect.stringMatching(/^(ProtocolError|Error)$/) });
      }
    };
    await attempt(good);
    const change = fc.record({ at: fc.nat(good.length - 1), value: fc.nat(255), length: fc.integer({ min: 1, max: good.length }) });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, value, length }) => {
        const changed = Buffer.from(good);
        changed[at] = value;
        await attempt(changed);
        await attempt(good.subarray(0, length));
      }),
      { numRuns: 150 },
    );
  });
});

describe('a place in a media file', () => {
  const GOPS = [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-bf',
    '2',
    '-g',
    '30',
    '-keyint_min',
    '30',
    '-sc_threshold',
    '0',
    '-c:a',
    'aac',
  ];
  const long = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=30', '-f', 'lavfi', '-i', 'sine=sample_rate=48000', '-t', '20'];

  function encodeLong(name: string, options: readonly string[]): string {
    const path = join(folder, name);
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...long, ...GOPS, ...options, path]);
    return path;
  }

  /** Hashes of video, and of audio, from the first frame of video on. */
  async function rest(file: MediaFile): Promise<{ video: string[]; audio: string[]; first: Line }> {
    const { lines } = await readAll(file);
    const first = lines.find(({ type }) => type === 'video')!;
    return {
      first,
      video: of(lines, 'video').map(({ hash }) => hash),
      audio: of(lines, 'audio').flatMap(({ pts, hash }) => (Number(pts) >= Number(first.pts) ? [hash] : [])),
    };
  }

  it.each([
    ['MP4', 'place.mp4', []],
    ['fragmented MP4', 'place-fragments.mp4', ['-movflags', 'frag_keyframe+empty_moov+default_base_moof']],
    ['MP4 whose second half is fragments', 'place-hybrid.mp4', ['-movflags', 'frag_keyframe']],
    ['MP4 without edit list', 'place-raw.mp4', ['-use_editlist', '0']],
    ['MPEG-TS', 'place.ts', []],
    ['a large MPEG-TS file', 'place-large.ts', ['-muxrate', '4000000', '-output_ts_offset', '95440']],
  ])('of %s is the keyframe before it, with all that follows', async (_what, name, options) => {
    const bytes = await OpenFile.open(encodeLong(name, options));
    const file = await openMediaFile(bytes, new RecordingLogger());
    const start = await file.start();
    const { lines: whole } = await readAll(file);
    const video = of(whole, 'video');
    expect(start).toBeCloseTo(Number(video[0]!.pts), 3);
    expect(Math.abs((await file.length())! - 20)).toBeLessThan(0.001);
    for (const [position, key] of [
      [0, 0],
      [0.5, 0],
      [1, 30],
      [7.99, 210],
      [8, 240],
      [13.4, 390],
      [19.99, 570],
      [500, 570],
    ] as const) {
      await file.seek(position);
      const found = await rest(file);
      expect({ position, at: Number(found.first.pts) - start, frames: found.video.length }).toEqual({
        position,
        at: expect.closeTo(key / 30, 3),
        frames: 600 - key,
      });
      expect(found.video).toEqual(video.slice(key).map(({ hash }) => hash));
      const audio = of(whole, 'audio').flatMap(({ pts, hash }) => (Number(pts) >= Number(found.first.pts) ? [hash] : []));
      expect(found.audio).toEqual(audio);
    }
    await bytes.close();
  });

  it('with audio only is the frame at that time', async () => {
    const bytes = await OpenFile.open(encodeLong('place.m4a', ['-vn']));
    const file = await openMediaFile(bytes, new RecordingLogger());
    expect(await file.length()).toBeCloseTo(20, 1);
    await file.seek(12);
    const { lines } = await readAll(file);
    expect(Math.abs(Number(lines[0]!.pts) - 12)).toBeLessThan(0.022);
    await bytes.close();
  });
});

function inMemory(bytes: Buffer): FileBytes {
  return {
    size: bytes.length,
    read: async (offset, length) => {
      if (offset < 0 || offset + length > bytes.length) throw new Error('beyond the end');
      return bytes.subarray(offset, offset + length);
    },
  };
}
