import { expect, it } from 'vitest';
import { constantFrames, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { TsContainer } from './ts-container.ts';

it('holds at most 0.4 s of media, and writes no more often than that', () => {
  const track = videoTrack();
  // One NAL unit of 6000 bytes each.
  const data = new Uint8Array(6004);
  data.set([0, 0, 6000 >> 8, 6000 & 0xff, 0x41]);
  const packets = videoPackets(track, constantFrames({ rate: 30, gop: 30, seconds: 10 })).map((packet) => ({ ...packet, data }));
  const [first] = packets;
  if (first === undefined) throw new Error('no packets');
  let writes = 0;
  const write = (): void => {
    writes += 1;
  };
  const container = new TsContainer({ tracks: [track], first, startAt: 0, write });
  let held = 0;
  let most = 0;
  for (const packet of packets) {
    container.push(packet);
    held = container.pending === 0 ? 0 : held + 1;
    most = Math.max(most, held);
  }
  // The frame that would complete 0.4 s is written with the frames before it.
  expect(most).toBe(11);
  expect(writes).toBe(25);
});
