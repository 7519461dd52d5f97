import { expect, it } from 'vitest';
import { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { TimedMetadata } from './timed-metadata.ts';

const MIB = 1024 * 1024;
const VIDEO = { id: 0, type: 'video' } as const;
const AUDIO = { id: 1, type: 'audio' } as const;

function tag(length: number): Uint8Array {
  const data = new Uint8Array(length);
  data.set(Buffer.from('ID3'));
  return data;
}

/** Bytes that are written up to the end of time. */
function written(metadata: TimedMetadata): number {
  const writer = new BoxWriter();
  metadata.write(writer, VIDEO, { start: 0, end: Number.POSITIVE_INFINITY, offset: 0, timescale: 1000, leads: true });
  return writer.length;
}

it('drops the oldest tags when too many or too large ones wait for one part', () => {
  const many = new TimedMetadata();
  for (let n = 0; n < 70; n += 1) many.push(n, tag(10), 'leader');
  expect(many.dropped).toBe(6);
  const large = new TimedMetadata();
  for (let n = 0; n < 20; n += 1) large.push(n, tag(MIB), 'leader');
  expect([large.dropped, written(large) < 17 * MIB]).toEqual([4, true]);
  // Written tags make room.
  for (let n = 0; n < 16; n += 1) large.push(n, tag(MIB), 'leader');
  expect([large.dropped, written(large) > 16 * MIB]).toEqual([4, true]);
});

it('writes ID3 events that are due, and skips events that are not ID3', () => {
  const metadata = new TimedMetadata();
  metadata.push(0, Buffer.from('TAG'), 'leader');
  expect(written(metadata)).toBe(0);
  metadata.push(1000, tag(10), 'leader');
  const writer = new BoxWriter();
  metadata.write(writer, VIDEO, { start: 0, end: 1000, offset: 0, timescale: 1000, leads: true });
  expect(writer.length).toBe(0);
  metadata.write(writer, VIDEO, { start: 1000, end: 1001, offset: 0, timescale: 1000, leads: true });
  expect(Buffer.from(writer.view()).includes('ID3')).toBe(true);
});

it('writes a tag once into each of its target tracks, under one number', () => {
  const part = { start: 0, end: 2000, offset: 0, timescale: 1000 };
  const lengths = (target: 'all' | 'video' | 'audio'): number[] => {
    const metadata = new TimedMetadata();
    metadata.push(1000, tag(10), target);
    return [VIDEO, AUDIO, VIDEO, AUDIO].map((track) => {
      const writer = new BoxWriter();
      metadata.write(writer, track, { ...part, leads: track === VIDEO });
      return writer.length;
    });
  };
  const [one = 0] = lengths('video');
  expect(one).toBeGreaterThan(10);
  expect(lengths('video')).toEqual([one, 0, 0, 0]);
  expect(lengths('audio')).toEqual([0, one, 0, 0]);
  expect(lengths('all')).toEqual([one, one, 0, 0]);
});

it('forgets a tag after all tracks have passed it', () => {
  const metadata = new TimedMetadata();
  metadata.push(1000, tag(10), 'all');
  for (const end of [5000, 11_000]) metadata.write(new BoxWriter(), VIDEO, { start: 0, end, offset: 0, timescale: 1000, leads: true });
  expect(metadata.isEmpty).toBe(false);
  metadata.write(new BoxWriter(), VIDEO, { start: 0, end: 11_001, offset: 0, timescale: 1000, leads: true });
  expect(metadata.isEmpty).toBe(true);
});

it('moves a late tag to the start of the current part', () => {
  const times = (tagAt: number): number => {
    const metadata = new TimedMetadata();
    metadata.push(tagAt, tag(10), 'leader');
    const writer = new BoxWriter();
    metadata.write(writer, VIDEO, { start: 4000, end: 5000, offset: 500, timescale: 1000, leads: true });
    // Behind the header of a full box and the timescale.
    return Number(Buffer.from(writer.view()).readBigUInt64BE(16));
  };
  expect([times(4700), times(1000)]).toEqual([5200, 4500]);
});
