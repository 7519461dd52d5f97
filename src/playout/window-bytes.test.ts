import { expect, it } from 'vitest';
import type { FileBytes } from './file-bytes.ts';
import { WindowBytes } from './window-bytes.ts';

const MIB = 1_048_576;

/** A file whose bytes contain their position, and which counts the reads. */
class CountedBytes implements FileBytes {
  readonly size = 64 * MIB;
  calls = 0;
  bytesRead = 0;

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.calls += 1;
    this.bytesRead += length;
    return Uint8Array.from({ length }, (_, index) => (offset + index) & 0xff);
  }
}

it('reads consecutive ranges with few calls, and nothing twice', async () => {
  const file = new CountedBytes();
  const bytes = new WindowBytes(file);
  for (let at = 0; at < 4 * MIB; at += 4096) {
    const read = await bytes.read(at, 4096);
    expect([read[0], read.length]).toEqual([at & 0xff, 4096]);
  }
  expect(file.calls).toBeLessThan(25);
  expect(file.bytesRead).toBeLessThan(4.3 * MIB);
});

it('reads three distant tracks without reading anything twice', async () => {
  const file = new CountedBytes();
  const bytes = new WindowBytes(file);
  for (let frame = 0; frame < 1000; frame += 1) {
    for (const [from, length] of [
      [0, 3000],
      [20 * MIB, 400],
      [40 * MIB, 300],
    ] as const) {
      const read = await bytes.read(from + frame * length, length);
      expect([read[0], read.length]).toEqual([(from + frame * length) & 0xff, length]);
    }
  }
  expect(file.bytesRead).toBeLessThan(3000 * 1000 + 400 * 1000 + 300 * 1000 + 3 * 262_144);
  expect(file.calls).toBeLessThan(50);
});

it('bounds the memory kept per small read at any distance', async () => {
  for (const step of [20_000, 300_000]) {
    const bytes = new WindowBytes(new CountedBytes());
    const kept = new Set<ArrayBufferLike>();
    for (let frame = 0; frame < 200; frame += 1) kept.add((await bytes.read(frame * step, 10)).buffer);
    const all = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(all / 200).toBeLessThanOrEqual(16_384);
  }
});

it('reads at most to the end of the file, and leaves reads beyond it to the file', async () => {
  const file = new CountedBytes();
  const bytes = new WindowBytes(file);
  expect((await bytes.read(file.size - 10, 10)).length).toBe(10);
  expect(file.bytesRead).toBe(10);
  await bytes.read(file.size - 10, 20);
  expect(file.bytesRead).toBe(30);
});
