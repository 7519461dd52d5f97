import { expect, it } from 'vitest';
import { audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import type { Packet } from '../media/packet.ts';
import type { SegmentMark } from '../media/segment-mark.ts';
import type { SourcePacket } from './ingest.ts';
import { MediaRouter } from './media-router.ts';

const FACTS = { segmentDuration: 2, chunkDuration: 0.5, targetDuration: 2, partHoldBack: 1.5, offset: 0, tracks: [] };
const MARK: SegmentMark = {
  ...{ run: 'one', msn: 3, time: 5000, startTime: 1, discontinuity: false, discontinuities: 0, tags: '' },
  ...{ expected: null, earliest: 6000, facts: FACTS },
};

function setUp() {
  const packets: Packet[] = [];
  const router = new MediaRouter({ onTracks: () => undefined, onPacket: (packet) => packets.push(packet) });
  router.setTracks([videoTrack(), audioTrack()]);
  /** A keyframe at `ms`, and the frames after it. */
  const play = (ms: number, mark?: SegmentMark): void => {
    for (let index = 0; index < 30; index += 1) {
      const packet: SourcePacket = { ...videoPacket(index, { startMs: ms }), duration: 33 };
      router.push(index === 0 && mark !== undefined ? { ...packet, mark } : packet);
    }
  };
  return { router, packets, play };
}

it('keeps the timestamps and marks of a source that marks segments, including gaps', () => {
  const { packets, play } = setUp();
  play(5000, MARK);
  play(30_000, { ...MARK, msn: 15 });
  expect(packets.filter(({ mark }) => mark !== undefined).map(({ dts, mark }) => [dts, mark?.msn])).toEqual([
    [450_000, 3],
    [2_700_000, 15],
  ]);
  expect(packets[0]?.duration).toBe(2970);
});

it('skips media from before a lost connection, and continues with the next segment', () => {
  const { router, packets, play } = setUp();
  play(5000, MARK);
  const last = packets.at(-1)?.dts ?? 0;
  router.changeSource();
  router.setTracks([videoTrack(), audioTrack()]);
  play(5000, MARK);
  expect(packets).toHaveLength(30);
  play(7000, { ...MARK, msn: 4 });
  expect(packets[30]).toMatchObject({ dts: 630_000, mark: { msn: 4 } });
  expect(packets[30]?.dts).toBeGreaterThan(last);
});

it('continues with another numbering server, at any timestamps', () => {
  const { router, packets, play } = setUp();
  play(5000, MARK);
  router.changeSource();
  router.setTracks([videoTrack(), audioTrack()]);
  play(1000, { ...MARK, run: 'another', time: 1000 });
  expect(packets).toHaveLength(60);
  expect(packets[30]?.dts).toBeGreaterThan(packets[29]?.dts ?? 0);
});
