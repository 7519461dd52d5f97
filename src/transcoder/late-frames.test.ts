import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { constantFrames, videoPackets, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import { BoundedQueue } from '../util/bounded-queue.ts';
import { DECODER_THRESHOLD, LATE_MS, SourceFeed } from './source-feed.ts';

const FPS = 25;
const GOP = 50;
const packets = videoPackets(videoTrack(), constantFrames({ rate: FPS, gop: GOP, seconds: 20 }));

function feed(clock: ManualClock, keepsLate = false): SourceFeed {
  const queue = new BoundedQueue<Packet>({ id: 1, urn: '', type: 'Packet', threshold: DECODER_THRESHOLD.video, clock });
  return new SourceFeed({ id: 0, video: true, queue, onlyKeyframes: false, keepsLate });
}

describe('a source feed', () => {
  it('skips to the newest keyframe when frames have waited too long', () => {
    const clock = new ManualClock();
    const late = feed(clock);
    let longest = 0;
    for (const packet of packets) {
      late.push(packet);
      longest = Math.max(longest, late.queue.oldestWait);
      clock.advance(1000 / FPS);
    }
    expect(longest).toBeLessThanOrEqual(LATE_MS + (GOP / FPS) * 1000);
    expect(late.queue.shift()?.keyframe).toBe(true);
    expect(late.queue.dropped + late.queue.size + 1).toBe(packets.length);
  });

  it('keeps frames that were read ahead, regardless of their waiting time', () => {
    const clock = new ManualClock();
    const ahead = feed(clock, true);
    const few = packets.slice(0, 2 * GOP + 1);
    for (const packet of few) {
      ahead.push(packet);
      clock.advance(LATE_MS);
    }
    expect([ahead.queue.size, ahead.queue.dropped]).toEqual([few.length, 0]);
  });

  it('keeps a burst, however much media it is', () => {
    const burst = feed(new ManualClock());
    for (const packet of packets.slice(0, DECODER_THRESHOLD.video)) burst.push(packet);
    expect(burst.queue.dropped).toBe(0);
  });
});
