import { describe, expect, it } from 'vitest';
import { ByteWriter } from './byte-writer.ts';

describe('ByteWriter', () => {
  it('writes big-endian integers of every width', () => {
    const writer = new ByteWriter(1)
      .u8(0x01)
      .u16(0x0203)
      .u24(0x040506)
      .u32(0xfffefdfc)
      .i32(-2)
      .u64(2 ** 40 + 5);
    expect(Buffer.from(writer.view()).toString('hex')).toBe('010203040506fffefdfcfffffffe0000010000000005');
  });

  it('grows over bytes, text and zeros', () => {
    const writer = new ByteWriter(2).bytes(Uint8Array.of(9, 8)).text('añ').zeros(3);
    expect([...writer.finish()]).toEqual([9, 8, 0x61, 0xc3, 0xb1, 0, 0, 0]);
  });

  it('patches a number that was not known before', () => {
    const writer = new ByteWriter().u32(0).u8(7);
    writer.patchU32(0, writer.length);
    expect([...writer.view()]).toEqual([0, 0, 0, 5, 7]);
    expect(() => writer.patchU32(2, 1)).toThrow(RangeError);
  });

  it('overwrites its buffer after a reset, finished copies stay', () => {
    const writer = new ByteWriter().u8(1);
    const kept = writer.finish();
    writer.reset().u8(2).zeros(1);
    expect([...kept]).toEqual([1]);
    expect([...writer.view()]).toEqual([2, 0]);
  });
});
