import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeMedia } from '../../../test/support/encoded-media.ts';
import type { Packet } from '../../media/packet.ts';
import { toMilliseconds } from '../../media/timebase.ts';
import { PtsSpan } from './pts-span.ts';
import { TsBuffer } from './ts-buffer.ts';
import { TsMuxer } from './ts-muxer.ts';

const SECONDS = 4;
const sample = encodeMedia({ seconds: SECONDS, video: 'libx264', audio: 'aac', rate: 25, gop: 25 });

const starts = sample.packets.map(({ pts, track }) => toMilliseconds(pts, track.timebase));
const ends = sample.packets.map(({ pts, duration, track }) => toMilliseconds(pts + duration, track.timebase));
const LENGTH = Math.max(...ends) - Math.min(...starts);
const FRAME = 40;

/** The sample as a file, `delay` s later. */
function file(delay: number): Uint8Array {
  const buffer = new TsBuffer();
  const muxer = new TsMuxer(sample.tracks);
  muxer.writeTables(buffer);
  for (const packet of sample.packets) {
    const ticks = delay * packet.track.timebase.den;
    muxer.writePacket({ ...packet, pts: packet.pts + ticks, dts: packet.dts + ticks } satisfies Packet, buffer);
  }
  return new Uint8Array(buffer.view());
}

function measured(...pieces: readonly Uint8Array[]): number | null {
  const span = new PtsSpan();
  for (const piece of pieces) span.push(piece);
  return span.milliseconds;
}

// The last second lies after the wrap of 33 bits.
test.each([0, 2 ** 33 / 90_000 - SECONDS + 1])('a file that starts at %d s has the length of its media', (delay) => {
  const bytes = file(delay);
  expect(Math.abs((measured(bytes) ?? 0) - LENGTH)).toBeLessThanOrEqual(FRAME);
  // The middle of the file is not needed, and truncated packets are ignored.
  expect(measured(bytes.subarray(0, 40_001), bytes.subarray(-40_003))).toBe(measured(bytes));
});

test('other bytes have no length, and random bytes are accepted', () => {
  expect(measured(new Uint8Array(1000))).toBeNull();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2000 }), fc.nat(5000), (noise, at) => {
      const bytes = file(0).slice(0, 8000);
      bytes.set(noise.subarray(0, bytes.length - at), at);
      const length = measured(bytes);
      expect(length === null || (length >= 0 && Number.isFinite(length))).toBe(true);
    }),
  );
});
