import { expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { DEFAULT_SETTINGS, LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SegmentMark } from '../../../../media/segment-mark.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const TRACKS = [VIDEO, AUDIO];
const SETTINGS = { ...DEFAULT_SETTINGS, segmentDuration: 2 };
/** Settings of an edge, which must not count. */
const OTHER_SETTINGS = { ...DEFAULT_SETTINGS, segmentDuration: 4, chunkDuration: 1, partHoldBack: 3 };

function media(seconds: number, gop = 25): Packet[] {
  return interleave(videoPackets(VIDEO, constantFrames({ rate: 30, gop, seconds })), audioPackets(AUDIO, seconds));
}

/** The packets as an edge gets them: with marks where the origin begins segments. */
function marked(packets: readonly Packet[], settings = SETTINGS): { origin: LlhlsSimulation; marked: Packet[] } {
  const origin = new LlhlsSimulation(TRACKS, settings);
  const marks = new Map<Packet, SegmentMark>();
  origin.source.marks.listen((mark, packet) => marks.set(packet, JSON.parse(JSON.stringify(mark)) as SegmentMark));
  origin.run(packets);
  return {
    origin,
    marked: packets.map((packet) => {
      const mark = marks.get(packet);
      return mark === undefined ? packet : { ...packet, mark };
    }),
  };
}

/** An edge that plays the media after the mark of segment `msn`. */
function edge(packets: readonly Packet[], msn: number): LlhlsSimulation {
  const simulation = new LlhlsSimulation(TRACKS, OTHER_SETTINGS);
  const first = packets.findIndex(({ mark }) => mark?.msn === msn);
  const start = packets[first]?.mark?.time ?? 0;
  // Audio of the segment may come before its first frame.
  const isEarly = ({ track, pts, duration }: Packet): boolean =>
    track.type === 'audio' && ((pts + duration / 2) * 1000 * track.timebase.num) / track.timebase.den >= start;
  simulation.run([...packets.slice(first, first + 1), ...packets.slice(0, first).filter(isEarly), ...packets.slice(first + 1)]);
  return simulation;
}

/** Segments of both tracks from `msn` on: numbers, times, parts and bytes. */
function listed(simulation: LlhlsSimulation, msn: number): object[] {
  return simulation.watched.flatMap((track) => [
    { id: track.id, target: track.playlist?.targetDuration, part: track.playlist?.partTarget, control: track.playlist?.serverControl },
    ...(track.playlist?.segments ?? [])
      .filter((segment) => segment.msn >= msn)
      .map(({ msn: number, duration, programDateTime, discontinuity, gap, parts }) => ({
        ...{ number, duration, programDateTime, discontinuity, gap },
        parts: parts.map((part) => [part.duration, part.independent]),
      })),
  ]);
}

function bytesOf(simulation: LlhlsSimulation, msn: number): string[] {
  return simulation.watched.flatMap(({ id, parts }) =>
    [...parts]
      .filter(([uri]) => Number(/^part_\d+_(\d+)_/.exec(uri)?.[1]) >= msn)
      .map(([uri, bytes]) => `${id} ${uri.replace(/_[A-Za-z0-9]+_llhls.*/, '')} ${Buffer.from(bytes).toString('base64')}`),
  );
}

it('edges that start at different segments list the same segments as the origin, byte for byte', () => {
  const { origin, marked: packets } = marked(media(60));
  const edges = [0, 3, 11].map((msn) => edge(packets, msn));
  for (const simulation of edges) {
    expect(simulation.problems).toEqual([]);
    expect(listed(simulation, 24)).toEqual(listed(origin, 24));
    expect(bytesOf(simulation, 24)).toEqual(bytesOf(origin, 24));
  }
  expect(listed(origin, 24).length).toBeGreaterThan(20);
  expect(bytesOf(origin, 24).length).toBeGreaterThan(60);
});

it("an edge that lost its origin for a while lists the missed segments as gaps, and keeps the origin's numbers after them", () => {
  const { origin, marked: packets } = marked(media(40));
  const lost = packets.filter(({ mark }) => mark !== undefined)[13]?.mark?.time ?? 0;
  const back = packets.findIndex(({ mark }) => mark?.msn === 17);
  const isBefore = ({ track, dts }: Packet): boolean => (dts * 1000 * track.timebase.num) / track.timebase.den < lost + 700;
  const simulation = edge([...packets.slice(0, back).filter(isBefore), ...packets.slice(back)], 2);
  const video = simulation.watched.find(({ id }) => id === VIDEO.id)?.playlist?.segments ?? [];
  expect(video.filter(({ gap }) => gap).map(({ msn }) => msn)).toEqual([14, 15, 16]);
  const numbers = video.map(({ msn }) => msn);
  expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
  const isSegment = (entry: object): boolean => 'number' in entry;
  expect(listed(simulation, 19).filter(isSegment)).toEqual(listed(origin, 19).filter(isSegment));
});

it('an edge numbers segments itself while the origin sends no marks, and continues its count when another origin numbers differently', () => {
  const { marked: packets } = marked(media(40));
  const silent = packets.map((packet): Packet => {
    const { mark, ...rest } = packet;
    return mark !== undefined && mark.msn > 6 && mark.msn < 14 ? rest : packet;
  });
  const renamed = silent.map((packet) =>
    packet.mark !== undefined && packet.mark.msn >= 14
      ? { ...packet, mark: { ...packet.mark, run: 'another', msn: packet.mark.msn + 500 } }
      : packet,
  );
  const simulation = edge(renamed, 2);
  const numbers = simulation.watched.find(({ id }) => id === VIDEO.id)?.playlist?.segments.map(({ msn }) => msn) ?? [];
  expect(numbers.length).toBeGreaterThan(8);
  expect(numbers.at(-1)).toBeLessThan(30);
  expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
});
