import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { findBox } from './box-reader.ts';
import { readMovie } from './movie-reader.ts';
import { SampleCursor } from './sample-cursor.ts';
import { readSampleDescription } from './sample-description.ts';

let moov: Uint8Array;
beforeAll(() => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-movie-'));
  const file = join(folder, 'short.mp4');
  const source = ['-f', 'lavfi', '-i', 'testsrc2=size=64x64:rate=30', '-f', 'lavfi', '-i', 'sine=sample_rate=48000'];
  const coding = ['-t', '0.4', '-c:v', 'libx264', '-bf', '2', '-g', '6', '-c:a', 'aac', '-metadata:s:a', 'language=deu'];
  execFileSync('ffmpeg', ['-v', 'error', ...source, ...coding, file]);
  moov = findBox(readFileSync(file), ['moov'])?.body ?? new Uint8Array();
  return () => rmSync(folder, { recursive: true, force: true });
});

/** All fields of a moov, up to a limit, because hostile ones are endless. */
function walk(bytes: Uint8Array): number {
  let samples = 0;
  for (const { tables } of readMovie(bytes).tracks) {
    const cursor = new SampleCursor(tables);
    for (let count = 0; count < 100 && cursor.next() !== null; count += 1) samples += 1;
  }
  return samples;
}

describe('reading moov', () => {
  it('finds tracks, codecs, languages, edits and every sample', () => {
    const { tracks, fragmented } = readMovie(moov);
    expect(fragmented).toBe(false);
    expect(tracks).toMatchObject([
      { trackId: 1, timescale: 15_360, language: '', shift: -1024, description: { type: 'video', codec: 'H264', width: 64, height: 64 } },
      { trackId: 2, timescale: 48_000, language: 'deu', shift: -1024, description: { type: 'audio', codec: 'AAC', sampleRate: 48_000 } },
    ]);
    const [video] = tracks;
    if (video === undefined) throw new Error('no video');
    const cursor = new SampleCursor(video.tables);
    const samples = Array.from({ length: 12 }, () => cursor.next());
    expect(cursor.next()).toBeNull();
    expect(samples.map((sample) => sample?.dts)).toEqual(samples.map((_sample, index) => index * 512));
    expect(samples.map((sample) => sample?.keyframe)).toEqual(samples.map((_sample, index) => index % 6 === 0));
    expect(samples.map((sample) => sample?.duration)).toEqual(samples.map(() => 512));
  });

  it('survives hostile bytes', () => {
    expect(walk(moov)).toBeGreaterThan(24);
    survivesHostileBytes(walk, [moov]);
  });

  it.each([
    ['an encrypted track', 'encv', { type: 'unsupported', what: 'encv' }],
    ['a name that every object has', '__proto__'.slice(0, 4), { type: 'unsupported', what: '__pr' }],
  ])('leaves out %s', (_what, type, expected) => {
    const entry = Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 100]), Buffer.from(type, 'latin1'), Buffer.alloc(92)]);
    expect(readSampleDescription(entry)).toEqual(expected);
  });

  it.each([
    ['stsd without an entry', Buffer.alloc(8)],
    ['a size that does not fit', Buffer.concat([Buffer.alloc(8), Buffer.from([0, 0, 1, 0]), Buffer.from('avc1')])],
    [
      'video without its configuration',
      Buffer.concat([Buffer.alloc(8), Buffer.from([0, 0, 0, 86]), Buffer.from('avc1'), Buffer.alloc(78)]),
    ],
  ])('refuses %s', (_what, bytes) => {
    expect(() => readSampleDescription(bytes)).toThrow(expect.objectContaining({ name: 'ProtocolError' }));
  });
});
