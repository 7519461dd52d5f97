import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MPEG_90K } from '../../media/timebase.ts';
import { ChannelTime } from './channel-time.ts';

const AUDIO = { num: 1, den: 44_100 };
const SECOND = MPEG_90K.den;

function setUp(...starts: readonly number[]) {
  const time = new ChannelTime();
  const streams = starts.map((startedAt) => {
    const stream = { startedAt, estimatedStart: () => stream.startedAt };
    return stream;
  });
  const sources = streams.map((stream) => time.join(stream));
  return { time, streams, sources, offsets: () => sources.map((source) => source.offset(MPEG_90K)) };
}

describe('the time of a channel', () => {
  it('places each source at the wall-clock time of its media time 0', () => {
    const { sources, offsets } = setUp(1_000_000, 1_000_400, 998_500);
    expect(offsets()).toEqual([0, 0.4 * SECOND, -1.5 * SECOND]);
    expect(sources[1]?.offset(AUDIO)).toBe(0.4 * 44_100);
  });

  it("starts with the best estimate of a source's clock, and follows its start time when that changes", () => {
    const { streams, offsets } = setUp(1000, 1000);
    Object.assign(streams[1] ?? {}, { estimatedStart: () => 400 });
    expect(offsets()).toEqual([0, -0.6 * SECOND]);
    Object.assign(streams[1] ?? {}, { estimatedStart: () => 300 });
    expect(offsets()).toEqual([0, -0.6 * SECOND]);
    Object.assign(streams[1] ?? {}, { startedAt: 2500 });
    expect(offsets()).toEqual([0, 1.5 * SECOND]);
  });

  it('moves only the source whose clock changes', () => {
    const { streams, offsets } = setUp(1000, 1000);
    offsets();
    Object.assign(streams[1] ?? {}, { startedAt: 4000 });
    expect(offsets()).toEqual([0, 3 * SECOND]);
    Object.assign(streams[1] ?? {}, { startedAt: 2000 });
    expect(offsets()).toEqual([0, SECOND]);
  });

  it('makes no gap for a pause of all sources', () => {
    const { streams, offsets } = setUp(1000, 1000);
    offsets();
    for (const stream of streams) stream.startedAt = 6000;
    expect(offsets()).toEqual([0, 0]);
    Object.assign(streams[0] ?? {}, { startedAt: 9000 });
    Object.assign(streams[1] ?? {}, { startedAt: 8000 });
    expect(offsets()).toEqual([SECOND, 0]);
  });

  it('keeps the offset of a single source whose clock jumps, and aligns another source to the new clock', () => {
    const { time, streams, sources, offsets } = setUp(1000);
    offsets();
    Object.assign(streams[0] ?? {}, { startedAt: 6000 });
    expect(offsets()).toEqual([0]);
    expect(time.join({ startedAt: 7000, estimatedStart: () => 7000 }).offset(MPEG_90K)).toBe(SECOND);
    time.leave(sources[0] as never);
  });

  it('forgets a source that has left', () => {
    const { time, streams, sources } = setUp(1000, 1000);
    const [first, second] = sources;
    first?.offset(MPEG_90K);
    second?.offset(MPEG_90K);
    if (second !== undefined) time.leave(second);
    Object.assign(streams[0] ?? {}, { startedAt: 5000 });
    expect(first?.offset(MPEG_90K)).toBe(0);
  });

  it('keeps the offsets of sources as far apart as their clocks, through arbitrary clock changes', () => {
    const moves = fc.array(fc.record({ which: fc.nat(2), by: fc.integer({ min: -20_000, max: 20_000 }) }), { maxLength: 30 });
    fc.assert(
      fc.property(moves, (list) => {
        const { streams, offsets } = setUp(1_000_000, 1_000_500, 1_002_000);
        offsets();
        for (const { which, by } of list) {
          const stream = streams[which];
          if (stream !== undefined) stream.startedAt += by;
          const [first = 0, ...others] = offsets();
          for (const [index, other] of others.entries()) {
            const apart = (streams[index + 1]?.startedAt ?? 0) - (streams[0]?.startedAt ?? 0);
            expect(Math.abs(other - first - (apart * SECOND) / 1000)).toBeLessThanOrEqual(1);
          }
        }
      }),
    );
  });
});
