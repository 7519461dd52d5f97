import { expect, it } from 'vitest';
import { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { TimedMetadata } from './timed-metadata.ts';

const MIB = 1024 * 1024;

function tag(length: number): Uint8Array {
  const data = new Uint8Array(length);
  data.set(Buffer.from('ID3'));
  return data;
}

/** Bytes that are written up to the end of time. */
function written(metadata: TimedMetadata): number {
  const writer = new BoxWriter();
  metadata.write(writer, { start: 0, end: Number.POSITIVE_INFINITY, offset: 0, timescale: 1000 });
  return writer.length;
}

it('drops the oldest tags where too many or too large ones wait for one part', () => {
  const many = new TimedMetadata();
  for (let n = 0; n < 70; n += 1) many.push(n, tag(10));
  expect(many.dropped).toBe(6);
  const large = new TimedMetadata();
  for (let n = 0; n < 20; n += 1) large.push(n, tag(MIB));
  expect([large.dropped, written(large) < 17 * MIB]).toEqual([4, true]);
  // What was written makes room.
  for (let n = 0; n < 16; n += 1) large.push(n, tag(MIB));
  expect([large.dropped, written(large) > 16 * MIB]).toEqual([4, true]);
});

it('writes what is due, and nothing that is not ID3', () => {
  const metadata = new TimedMetadata();
  metadata.push(0, Buffer.from('TAG'));
  expect(written(metadata)).toBe(0);
  metadata.push(1000, tag(10));
  const writer = new BoxWriter();
  metadata.write(writer, { start: 0, end: 1000, offset: 0, timescale: 1000 });
  expect(writer.length).toBe(0);
  metadata.write(writer, { start: 1000, end: 1001, offset: 0, timescale: 1000 });
  expect(Buffer.from(writer.view()).includes('ID3')).toBe(true);
});
