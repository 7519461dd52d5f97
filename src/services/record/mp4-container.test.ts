import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EncodedMedia, encodeMedia } from '../../../test/support/encoded-media.ts';
import { readBoxes } from '../../containers/isobmff/box-reader.ts';
import type { Packet } from '../../media/packet.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { Mp4Container } from './mp4-container.ts';
import { finaliseMp4 } from './mp4-finaliser.ts';

let folder: string;
let sample: EncodedMedia;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-record-'));
  sample = encodeMedia({
    seconds: 4,
    video: 'libx264',
    audio: 'aac',
    rate: 25,
    gop: 25,
    extra: ['-x264-params', 'scenecut=0:bframes=2:b-adapt=0'],
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Records the sample and returns the path and how many bytes were in the file after each write. */
function record(name: string, { from = 0 } = {}): { path: string; ends: number[] } {
  const path = join(folder, name);
  writeFileSync(path, '');
  const ends: number[] = [];
  const first = sample.packets.slice(from).find(({ track, keyframe }) => track.type === 'video' && keyframe);
  if (first === undefined) throw new Error('no keyframe');
  const container = new Mp4Container({
    tracks: sample.tracks,
    first,
    startAt: 0,
    write: (chunks) => {
      appendFileSync(path, Buffer.concat(chunks));
      ends.push(statSync(path).size);
    },
  });
  for (const packet of sample.packets.slice(from)) container.push(packet);
  container.flush();
  return { path, ends };
}

it('holds some thousand packets at most, even tiny ones without a duration', () => {
  const audio = sample.packets.find(({ track }) => track.type === 'audio');
  if (audio === undefined) throw new Error('no audio');
  let writes = 0;
  const write = (): void => {
    writes += 1;
  };
  const container = new Mp4Container({ tracks: [audio.track], first: audio, startAt: 0, write });
  writes = 0;
  const data = Uint8Array.of(1);
  for (let at = 0; at < 20_000; at += 1) container.push({ ...audio, duration: 0, data });
  expect(writes).toBe(4);
  expect(container.pending).toBeLessThan(4096);
});

interface Probed {
  readonly type: string;
  readonly frames: number;
  readonly first: number;
  readonly last: number;
  readonly sorted: boolean;
}

function probe(path: string): Probed[] {
  const run = (...args: string[]): string => execFileSync('ffprobe', ['-v', 'error', '-of', 'json', ...args, path], { encoding: 'utf8' });
  const { streams } = JSON.parse(run('-show_streams')) as { streams: { index: number; codec_type: string }[] };
  const { frames } = JSON.parse(run('-show_frames', '-show_entries', 'frame=stream_index,pts_time')) as {
    frames: { stream_index: number; pts_time: string }[];
  };
  return streams.map(({ index, codec_type }) => {
    const times = frames.filter((frame) => frame.stream_index === index).map(({ pts_time }) => Number(pts_time));
    const sorted = times.every((time, i) => i === 0 || time > (times[i - 1] ?? 0));
    return { type: codec_type, frames: times.length, first: times[0] ?? -1, last: times.at(-1) ?? -1, sorted };
  });
}

describe('a recording in MP4', () => {
  it('is playable while it is written, with every frame at its time', () => {
    const [video, audio] = probe(record('running.mp4').path);
    expect(video).toMatchObject({ type: 'video', frames: 100, first: 0, sorted: true });
    expect(video?.last).toBeCloseTo(99 / 25, 3);
    expect(audio?.sorted).toBe(true);
    expect(audio?.frames).toBeGreaterThan(180);
  });

  it.each([0, 0.3])('holds at most 0.4 s of a track, even when audio is %s s ahead', (ahead) => {
    const held = new Map<number, Packet[]>();
    let most = 0;
    let writes = 0;
    const [first] = sample.packets.filter(({ track }) => track.type === 'video');
    if (first === undefined) throw new Error('no frame');
    const write = (): void => {
      writes += 1;
      held.clear();
    };
    const container = new Mp4Container({ tracks: sample.tracks, first, startAt: 0, write });
    const arrival = ({ track, dts }: Packet): number => dts / track.timebase.den - (track.type === 'audio' ? ahead : 0);
    writes = 0;
    for (const packet of sample.packets.toSorted((a, b) => arrival(a) - arrival(b))) {
      if (packet.track.type === 'audio' && packet.pts / 48_000 < first.pts / 90_000) continue;
      held.set(packet.track.id, [...(held.get(packet.track.id) ?? []), packet]);
      container.push(packet);
      for (const [oldest, ...others] of held.values()) {
        const newest = others.at(-1) ?? oldest;
        if (oldest === undefined || newest === undefined) continue;
        most = Math.max(most, (newest.dts + newest.duration - oldest.dts) / newest.track.timebase.den);
      }
      expect(held.size > 0).toBe(container.pending > 0);
    }
    expect(most).toBeLessThanOrEqual(0.4);
    // A run of each track for each 0.4 s, not more.
    expect(writes).toBeLessThanOrEqual(22);
  });

  it('becomes a plain seekable MP4 with the same frames', async () => {
    const { path } = record('finished.mp4');
    const before = probe(path);
    const media = readFileSync(path);
    const finished = await finaliseMp4(path);
    expect(finished).toMatchObject({ outcome: 'finalised', truncated: 0 });
    expect(probe(path)).toEqual(before);
    const bytes = readFileSync(path);
    expect(readBoxes(bytes).map(({ type }) => type)).toEqual(['ftyp', 'mdat', 'moov']);
    // Not a byte of media has moved or changed.
    expect(bytes.subarray(64, media.length).equals(media.subarray(64))).toBe(true);
    expect(await finaliseMp4(path)).toMatchObject({ outcome: 'already', durationMs: finished.durationMs });
    const duration = execFileSync('ffprobe', ['-v', 'error', '-show_entries', 'format=duration', '-of', 'csv=p=0', path], {
      encoding: 'utf8',
    });
    expect(Number(duration)).toBeGreaterThan(3.95);
    expect(Number(duration)).toBeLessThan(4.1);
    expect(finished.durationMs).toBeCloseTo(Number(duration) * 1000, -1);
  });

  it('that starts at a later keyframe starts at 0 with audio and video aligned', async () => {
    const from = sample.packets.findIndex(({ track, keyframe, pts }) => track.type === 'video' && keyframe && pts > 100_000);
    const { path } = record('later.mp4', { from });
    await finaliseMp4(path);
    const [video, audio] = probe(path);
    expect(video).toMatchObject({ frames: 50, first: 0, sorted: true });
    expect(audio?.first).toBeGreaterThanOrEqual(0);
    expect(audio?.first).toBeLessThan(0.03);
  });

  it('cut off at any byte is finished with all complete fragments', async () => {
    const { path, ends } = record('whole.mp4');
    const size = statSync(path).size;
    const head = ends[0] ?? 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: head, max: size - 1 }), async (cut) => {
        const torn = join(folder, 'torn.mp4');
        copyFileSync(path, torn);
        truncateSync(torn, cut);
        const whole = ends.filter((end) => end <= cut).at(-1) ?? head;
        const result = await finaliseMp4(torn);
        if (whole === head) {
          expect(result.outcome).toBe('empty');
          return;
        }
        expect(result).toMatchObject({ outcome: 'finalised', truncated: cut - whole });
        expect(readBoxes(readFileSync(torn)).map(({ type }) => type)).toEqual(['ftyp', 'mdat', 'moov']);
      }),
      { numRuns: 40 },
    );
  });

  it('cut off at any byte shows every frame it holds, even a frame whose neighbours are missing', async () => {
    const { path, ends } = record('reordered.mp4');
    let most = 0;
    for (const end of ends.filter((_end, index) => index % 3 === 1)) {
      const torn = join(folder, 'cut.mp4');
      copyFileSync(path, torn);
      truncateSync(torn, end);
      await finaliseMp4(torn);
      const decoded = execFileSync('ffmpeg', ['-v', 'error', '-i', torn, '-progress', 'pipe:1', '-f', 'null', '-'], { encoding: 'utf8' });
      const args = ['-v', 'error', '-select_streams', 'v', '-count_packets', '-show_entries', 'stream=nb_read_packets', '-of', 'csv=p=0'];
      const packets = Number.parseInt(execFileSync('ffprobe', [...args, torn], { encoding: 'utf8' }), 10) || 0;
      expect(Number([...decoded.matchAll(/^frame=\s*(\d+)$/gm)].at(-1)?.[1] ?? 0), `${end} bytes`).toBe(packets);
      most = Math.max(most, packets);
    }
    expect(most).toBeGreaterThan(0);
  });

  it('is finished after a crash in the middle of finishing', async () => {
    const { path } = record('crash.mp4');
    const done = join(folder, 'done.mp4');
    copyFileSync(path, done);
    await finaliseMp4(done);
    const finished = readFileSync(done);
    // The moov was appended, wholly or in part, and the header not turned over yet.
    for (const part of [1, 9, finished.length - statSync(path).size]) {
      const torn = join(folder, 'half.mp4');
      copyFileSync(path, torn);
      appendFileSync(torn, finished.subarray(statSync(path).size, statSync(path).size + part));
      expect(await finaliseMp4(torn)).toMatchObject({ outcome: 'finalised', truncated: part });
      expect(readFileSync(torn).equals(finished)).toBe(true);
    }
  });

  it('with random bytes is refused or cut, and never hangs', async () => {
    const { path } = record('noise.mp4');
    const good = readFileSync(path);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }), async (changes) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        const noisy = join(folder, 'noisy.mp4');
        writeFileSync(noisy, bytes);
        try {
          expect(['finalised', 'empty', 'already']).toContain((await finaliseMp4(noisy)).outcome);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 200 },
    );
  });
});
