import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Span } from '../../../delivery/feed/messages.ts';
import { DvrArchive } from '../dvr/dvr-archive.ts';
import { RunFolder } from '../dvr/run-folder.ts';
import type { HlsSegment, HlsUpdate } from '../wire/ts/update.ts';
import { VariantSegments, type VariantSegmentsContext } from './ts/variant-segments.ts';

let root: string;
let updates: HlsUpdate[];
let released: number[];

const context: VariantSegmentsContext = {
  read: (spans) => spans.map(({ block }) => Uint8Array.of(block)),
  release: (spans) => released.push(...spans.map(({ block }) => block)),
  asksBack: () => false,
  update: (update) => updates.push(structuredClone(update)),
};
const span = (block: number): Span => ({ block, offset: 0, length: 1 });
const segment = (number: number): HlsSegment => ({
  number,
  duration: 2,
  startTime: 0,
  discontinuity: false,
  discontinuities: 0,
  tags: '',
  spans: [span(number)],
  path: null,
});
const summary = (): string[] =>
  updates.map((update) => {
    if (update.type === 'segment') return `segment ${update.segment.number}`;
    if (update.type === 'archive') return `archive ${update.number}`;
    return update.type === 'retire' ? `retire ${update.firstNumber}` : update.type;
  });

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'hls-dvr-'));
  updates = [];
  released = [];
});

afterEach(() => rm(root, { recursive: true, force: true }));

describe('SegmentWindow without DVR', () => {
  it('keeps the newest segments, and releases the others after the views have retired them', () => {
    const kept = new VariantSegments('7', { memoryCount: 2, rewinding: null }, context);
    for (let number = 0; number < 4; number++) kept.add(segment(number));
    expect(summary()).toEqual(['segment 0', 'segment 1', 'segment 2', 'retire 1', 'segment 3', 'retire 2']);
    expect(released).toEqual([0, 1]);
    expect(kept.snapshot()).toEqual([expect.objectContaining({ segment: segment(2) }), expect.objectContaining({ segment: segment(3) })]);
    kept.window.clear();
    expect(released).toEqual([0, 1, 2, 3]);
  });
});

describe('SegmentWindow of oversized segments', () => {
  it('keeps the newest segment while the stream exceeds its memory', () => {
    let held = 0;
    const crowded = { ...context, asksBack: (spans: () => readonly Span[]) => held > 5 && spans().length > 0 };
    const kept = new VariantSegments('7', { memoryCount: 5, rewinding: null }, crowded);
    for (held = 1; held <= 7; held++) kept.add(segment(held));
    expect(summary().slice(4)).toEqual([
      'segment 5',
      'segment 6',
      ...['retire 2', 'retire 3', 'retire 4', 'retire 5', 'retire 6'],
      'segment 7',
      'retire 7',
    ]);
    expect(released).toEqual([1, 2, 3, 4, 5, 6]);
    expect(kept.window.shortened).toBe(5);
  });

  it('releases only as many segments as necessary', () => {
    const crowded = { ...context, asksBack: (spans: () => readonly Span[]) => spans().length > 3 };
    const kept = new VariantSegments('7', { memoryCount: 5, rewinding: null }, crowded);
    for (let number = 0; number < 6; number++) kept.add(segment(number));
    expect(released).toEqual([0, 1, 2]);
  });
});

describe('SegmentWindow with DVR', () => {
  const open = (archive: DvrArchive, maxDuration: number): VariantSegments =>
    new VariantSegments('7', { memoryCount: 2, rewinding: { archive, maxDuration } }, context);
  const files = async (): Promise<string[]> => (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.ts')).sort();

  it('moves segments to files and retires them when the window is full', async () => {
    const archive = new DvrArchive(new RunFolder(root, ['#default#app', '../stream'], 'hls'));
    const kept = open(archive, 8);
    for (let number = 0; number < 6; number++) {
      kept.add(segment(number));
      await archive.settled;
    }
    expect(summary().filter((line) => !line.startsWith('segment'))).toEqual([
      'archive 0',
      'archive 1',
      'retire 1',
      'archive 2',
      'retire 2',
      'archive 3',
    ]);
    expect(released).toEqual([0, 1, 2, 3]);
    await archive.settled;
    const names = await files();
    expect(names.map((name) => name.split('/').slice(-2).join('/'))).toEqual(['7/2.ts', '7/3.ts']);
    expect(names[0]?.split('/').slice(0, 2)).toEqual(['#default#app', '.._stream']);
    expect([...(await readFile(join(root, names[0] ?? '')))]).toEqual([2]);
    expect(kept.snapshot()).toHaveLength(4);
    kept.window.clear();
    archive.close();
    archive.close();
    await archive.settled;
    expect(await files()).toEqual([]);
  });

  it('drops a segment that cannot be written, and all segments before it', async () => {
    const blocked = join(root, 'file');
    await writeFile(blocked, '');
    const archive = new DvrArchive(new RunFolder(blocked, ['app', '..'], 'hls'));
    const kept = open(archive, 60);
    for (let number = 0; number < 4; number++) kept.add(segment(number));
    await archive.settled;
    expect(summary().slice(4)).toEqual(['retire 1', 'retire 2']);
    expect(released).toEqual([0, 1]);
    expect(archive.failures).toBe(2);
  });

  it('drops segments when the disk cannot keep up', () => {
    const faults: unknown[] = [];
    const archive = new DvrArchive(new RunFolder(root, [], 'hls', { onFault: (fault) => faults.push(fault) }));
    const kept = open(archive, 1000);
    for (let number = 0; number < 30; number++) kept.add(segment(number));
    expect(archive.failures).toBeGreaterThan(0);
    expect(faults).toEqual([new Error('the disk cannot keep up')]);
    expect(released.length).toBeGreaterThan(0);
    archive.close();
  });

  it('removes files of segments that were dropped while they were written', async () => {
    const archive = new DvrArchive(new RunFolder(root, [], 'hls'));
    const kept = open(archive, 1000);
    for (let number = 0; number < 4; number++) kept.add(segment(number));
    kept.window.clear();
    await archive.settled;
    await archive.settled;
    expect(await files()).toEqual([]);
    expect(released.sort()).toEqual([0, 1, 2, 3]);
  });
});
