/** Listing times of parts that are short because their segment ends. */
import { describe, expect, it } from 'vitest';
import { audioPackets, audioTrack, constantFrames, videoPackets, videoTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation, type WatchedTrack } from '../../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../../media/packet.ts';
import { toSeconds } from '../../../../media/timebase.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import { ShortRest } from './short-rest.ts';

/** Seconds. */
const CHANGE = 20;
const SECONDS = 40;

interface Listing {
  readonly track: number;
  readonly msn: number;
  readonly part: number;
  /** Media time of the packet that listed the part, seconds. */
  readonly at: number;
  readonly duration: number;
}

/** AAC of one rate that continues with another at `at` s, beside video that changes there, too. */
function channel(at: number, [before, after]: readonly [number, number]): { simulation: LlhlsSimulation; packets: Packet[] } {
  const tracks = {
    before: audioTrack({ sampleRate: before }),
    after: audioTrack({ sampleRate: after, config: Uint8Array.of(0x11, 0x88) }),
  };
  const pictures = { before: videoTrack(), after: videoTrack({ width: 640, height: 360, codecString: 'avc1.64001e' }) };
  const simulation = new LlhlsSimulation([pictures.before, tracks.before], { segmentDuration: 1 });
  const time = ({ pts, track }: Packet): number => toSeconds(pts, track.timebase);
  // As in channels: a frame belongs to the item that has most of it.
  const middle = (packet: Packet): number => time(packet) + toSeconds(packet.duration, packet.track.timebase) / 2;
  const end = audioPackets(tracks.before, SECONDS).filter((packet) => middle(packet) < at);
  const packets = [
    ...videoPackets(pictures.before, constantFrames({ rate: 30, gop: 30, seconds: at })),
    ...videoPackets(pictures.after, constantFrames({ rate: 30, gop: 30, seconds: SECONDS - at, from: at })),
    ...end,
    ...audioPackets(tracks.after, SECONDS).filter((packet) => middle(packet) >= at),
  ];
  return { simulation, packets: packets.sort((a, b) => time(a) - time(b)) };
}

/** Runs `packets` and returns the first listing of each part. */
function listings(simulation: LlhlsSimulation, packets: readonly Packet[]): Listing[] {
  const found: Listing[] = [];
  const known = new Set<string>();
  for (const packet of packets) {
    simulation.run([packet]);
    const at = toSeconds(packet.pts + packet.duration, packet.track.timebase);
    for (const { id, playlist } of simulation.watched) {
      for (const segment of playlist?.segments ?? []) {
        for (const [part, { duration, uri }] of segment.parts.entries()) {
          if (known.has(uri)) continue;
          known.add(uri);
          found.push({ track: id, msn: segment.msn, part, at, duration: duration ?? 0 });
        }
      }
    }
  }
  return found;
}

describe('a short part at the end of a segment', () => {
  // The last part before the change has from one frame to nearly all.
  it.each(
    [0, 0.02, 0.05, 0.1, 0.2, 0.26, 0.4].flatMap((rest) => [
      { rest, rates: [44_100, 48_000] as const },
      { rest, rates: [48_000, 44_100] as const },
    ]),
  )('is listed when players have the part before it: $rest s after a whole part, from $rates Hz', ({ rest, rates }) => {
    const { simulation, packets } = channel(CHANGE + 0.5 + rest, rates);
    const listed = listings(simulation, packets);
    expect(simulation.problems).toEqual([]);
    for (const track of [0, 1]) {
      // After the first reload, because the media present at the start is listed at once.
      const later = listed.filter((listing) => listing.track === track && listing.at > 4);
      const pauses = later.slice(1).map(({ at }, index) => at - (later[index]?.at ?? at));
      expect(later.length).toBeGreaterThan(60);
      // Frames come whole: of two tracks, to and fro.
      expect(Math.min(...pauses)).toBeGreaterThan(0.19);
      // No part comes later than a whole one would.
      for (const [index, { duration }] of later.slice(1).entries())
        expect(pauses[index]).toBeLessThan(Math.max(0.53, duration + 0.03) + 0.04);
    }
  });

  /** A simulation that has run until the rest before the change is held. */
  function held(): { simulation: LlhlsSimulation; audio: WatchedTrack } {
    const { simulation, packets } = channel(CHANGE + 0.53, [44_100, 48_000]);
    simulation.run(packets.filter(({ pts, track }) => toSeconds(pts, track.timebase) < CHANGE + 0.6));
    const audio = simulation.watched.find(({ id }) => id === 1);
    if (audio === undefined) throw new Error('no audio is listed');
    expect(audio.playlist?.segments.at(-1)?.parts).toHaveLength(1);
    return { simulation, audio };
  }

  it('is listed when the stream is concluded', () => {
    const { simulation, audio } = held();
    simulation.stream.concludeHlsLive();
    const { segments } = simulation.fetch(audio);
    expect(segments.slice(-2).map(({ parts }) => parts.length)).toEqual([2, 1]);
    expect(segments.slice(-2).reduce((sum, { duration }) => sum + (duration ?? 0), 0)).toBeCloseTo(0.6, 1);
  });

  it('frees its memory when its track is removed', () => {
    const { simulation } = held();
    expect(simulation.delivery.feed.storedBytes).toBeGreaterThan(0);
    simulation.stream.onTracks([]);
    expect(simulation.delivery.feed.storedBytes).toBe(0);
  });
});

describe('ShortRest', () => {
  const update = (msn: number): LlhlsUpdate => ({ type: 'retire', trackId: msn });

  it('lists an update at once that is no short rest', () => {
    const listed: LlhlsUpdate[] = [];
    const rest = new ShortRest((each) => listed.push(each));
    rest.hold(0.25, 1000, 0.5);
    rest.push(update(1));
    expect(listed).toEqual([update(1)]);
    expect(rest.heldUntil).toBe(Number.POSITIVE_INFINITY);
  });

  it('keeps the order, and holds short parts for half a second at most', () => {
    const listed: LlhlsUpdate[] = [];
    const rest = new ShortRest((each) => listed.push(each));
    rest.hold(0.02, 1000, 0.2);
    expect(rest.heldUntil).toBeCloseTo(1080, 6);
    rest.push(update(1));
    rest.push(update(2));
    expect(listed).toEqual([]);
    rest.release();
    rest.push(update(3));
    expect(listed).toEqual([update(1), update(2), update(3)]);
  });
});
