import { describe, expect, it } from 'vitest';
import { PacketMerge } from './packet-merge.ts';

const packet = (seconds: number, length = 1) => ({ seconds, data: new Uint8Array(length) });

describe('packets of several tracks', () => {
  it('come in order of decoding, and wait for a track that may send earlier ones', () => {
    const merge = new PacketMerge([0, 1]);
    for (const seconds of [1, 2]) merge.put(0, packet(seconds));
    expect(merge.take(false)).toBeNull();
    merge.put(1, packet(1.5));
    expect([merge.take(false), merge.take(false), merge.take(false)]).toMatchObject([{ seconds: 1 }, { seconds: 1.5 }, null]);
    expect([merge.take(true), merge.take(true)]).toMatchObject([{ seconds: 2 }, null]);
  });

  it('wait for a silent track for at most five seconds, 64 MiB or 32768 packets', () => {
    const held = (packets: Iterable<ReturnType<typeof packet>>): (number | undefined)[] => {
      const merge = new PacketMerge([0, 1]);
      return Array.from(packets, (each) => {
        merge.put(0, each);
        return merge.take(false)?.seconds;
      });
    };
    expect(held([packet(0), packet(5), packet(5.1)])).toEqual([undefined, undefined, 0]);
    expect(held([packet(0, 2 ** 26), packet(1)])).toEqual([undefined, 0]);
    // All of one time: the file says so.
    const many = held(Array.from({ length: 32_769 }, () => packet(7)));
    expect([many.slice(0, -1).every((each) => each === undefined), many.at(-1)]).toEqual([true, 7]);
  });
});
