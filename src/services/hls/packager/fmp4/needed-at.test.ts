import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  type FrameTime,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../../media/packet.ts';
import { MILLISECONDS, MPEG_90K, toMilliseconds } from '../../../../media/timebase.ts';
import type { SegmentObserver } from '../segment-observer.ts';

/** Clocks in whole milliseconds, and sums of such times. */
const ROUNDING_MS = 1.5;

interface Outcome {
  /** Maximum time by which a packet that changed a playlist came before its announced time, ms. */
  readonly early: number;
  /** Packets that changed a playlist. */
  readonly changes: number;
  /** Packets that were announced as needed and changed nothing. */
  readonly idle: number;
  readonly packets: number;
}

/** Sends each packet at its decoding time, and compares the announcement with its result; from `from` s on. */
function run(simulation: LlhlsSimulation, packets: readonly Packet[], from: number): Outcome {
  const outcome = { early: 0, changes: 0, idle: 0, packets: 0 };
  for (const packet of packets) {
    const { stream, source } = simulation;
    const neededAt = stream.neededAt - source.startedAt;
    const { version } = stream.model;
    const now = toMilliseconds(packet.dts, packet.track.timebase);
    stream.onPacket(packet);
    if (now < from * 1000) continue;
    outcome.packets += 1;
    if (stream.model.version !== version) {
      outcome.changes += 1;
      outcome.early = Math.max(outcome.early, neededAt - now);
    } else if (neededAt <= now) outcome.idle += 1;
  }
  return outcome;
}

function evenFrames(rate: number, gop: number, bFrames = false): FrameTime[] {
  return constantFrames({ rate, gop, seconds: 90, bFrames });
}

describe('when an LL-HLS stream needs packets', () => {
  it.each([
    { rate: 30, gop: 60, segment: 2 },
    { rate: 30, gop: 60, segment: 6 },
    { rate: 25, gop: 25, segment: 2 },
    { rate: 25, gop: 100, segment: 2 },
    { rate: 29.97, gop: 60, segment: 4 },
    { rate: 59.94, gop: 90, segment: 6 },
    { rate: 24, gop: 48, segment: 6, bFrames: true },
  ])('is exact to the frame: %o', ({ rate, gop, segment, bFrames }) => {
    for (const timebase of [MPEG_90K, MILLISECONDS]) {
      const [video, audio] = [videoTrack({ timebase }), audioTrack()];
      const packets = interleave(videoPackets(video, evenFrames(rate, gop, bFrames)), audioPackets(audio, 90));
      const { early, changes, idle, packets: count } = run(new LlhlsSimulation([video, audio], { segmentDuration: segment }), packets, 40);
      // Where the rest of a segment is shared out, a sum of rounded times may be worth a frame.
      expect(early).toBeLessThan(1000 / rate + ROUNDING_MS);
      expect(changes).toBeGreaterThan(150);
      // Packets of the other track come meanwhile.
      expect(idle).toBeLessThan(count / 12);
    }
  });

  it('is exact for audio alone', () => {
    const audio = audioTrack();
    const { early, changes, idle, packets } = run(new LlhlsSimulation([audio]), audioPackets(audio, 60), 20);
    expect(early).toBeLessThan(ROUNDING_MS);
    expect(changes).toBeGreaterThan(70);
    expect(idle).toBeLessThan(packets / 10);
  });

  it('does not wait for regular keyframes when they are irregular', () => {
    const video = videoTrack();
    let next = 0;
    const frames = constantFrames({ rate: 30, gop: 1, seconds: 90 }).map((frame, index) => {
      const keyframe = index === next;
      if (keyframe) next += 31 + ((index * 7) % 23);
      return { ...frame, keyframe };
    });
    const { early, changes } = run(new LlhlsSimulation([video], { segmentDuration: 2 }), videoPackets(video, frames), 10);
    expect(early).toBeLessThan(ROUNDING_MS);
    expect(changes).toBeGreaterThan(150);
  });

  it('is late once for an early keyframe, and expects no regular keyframes then', () => {
    const video = videoTrack();
    const frames = constantFrames({ rate: 30, gop: 60, seconds: 40 }).map((frame, index) => ({
      ...frame,
      keyframe: frame.keyframe || index === 640 || index === 730,
    }));
    const packets = videoPackets(video, frames);
    const simulation = new LlhlsSimulation([video], { segmentDuration: 1 });
    const surprised = run(simulation, packets.slice(0, 650), 20);
    expect(surprised.early).toBeGreaterThan(100);
    expect(surprised.early).toBeLessThan(500);
    expect(run(simulation, packets.slice(650), 0).early).toBeLessThan(ROUNDING_MS);
  });

  it('needs every packet while a track sends nothing', () => {
    const [video, audio] = [videoTrack(), audioTrack()];
    const packets = interleave(videoPackets(video, evenFrames(30, 60)), audioPackets(audio, 10));
    const { idle, packets: count } = run(new LlhlsSimulation([video, audio], { segmentDuration: 2 }), packets, 11);
    expect(idle / count).toBeGreaterThan(0.8);
  });

  it('needs every packet until it can be played, and for a dump', () => {
    const video = videoTrack();
    const simulation = new LlhlsSimulation([video], { segmentDuration: 2 });
    const packets = videoPackets(video, evenFrames(30, 60));
    expect(simulation.stream.neededAt).toBe(Number.NEGATIVE_INFINITY);
    simulation.stream.onPacket(packets[0] as Packet);
    expect(simulation.stream.neededAt).toBe(Number.NEGATIVE_INFINITY);
    for (const packet of packets.slice(1, 600)) simulation.stream.onPacket(packet);
    expect(simulation.stream.neededAt).toBeGreaterThan(simulation.source.startedAt);
    const dump: SegmentObserver = { segmentFinished: () => undefined, streamEnded: () => undefined };
    simulation.stream.observe(dump);
    expect(simulation.stream.neededAt).toBe(Number.NEGATIVE_INFINITY);
    simulation.stream.unobserve(dump);
    expect(simulation.stream.neededAt).toBeGreaterThan(simulation.source.startedAt);
  });
});
