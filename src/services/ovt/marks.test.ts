import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack, constantFrames, interleave, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { ASC, AVCC } from '../../../test/fixtures/bitstreams.ts';
import { until } from '../../../test/harness/poll.ts';
import type { Packet } from '../../media/packet.ts';
import type { SegmentFacts, SegmentMark } from '../../media/segment-mark.ts';
import { MarkBacklog } from './mark-backlog.ts';
import { OvtPublisher } from './ovt-publisher.ts';
import { OvtPullSource } from './ovt-pull-source.ts';
import type { OvtStream } from './ovt-stream.ts';

const VIDEO = videoTrack({ config: AVCC.high720 });
const AUDIO = audioTrack({ config: ASC.plainStereo48 });
const GOP = 30;
const ADDRESS = { vhost: 'default', app: 'app', stream: 'live' };

function facts(targetDuration: number): SegmentFacts {
  return { segmentDuration: 1, chunkDuration: 0.5, targetDuration, partHoldBack: 1.5, offset: 0, tracks: [] };
}

/** The mark of the segment that begins with the keyframe at `time` ms; the target duration is known from the third on. */
function mark(msn: number, time: number): SegmentMark {
  const common = { discontinuity: false, discontinuities: 0, tags: '', expected: time + 1000, earliest: time + 900 };
  return { run: 'r', msn, time, startTime: 1_000_000 + time, ...common, facts: facts(msn < 2 ? 0 : 1) };
}

/** A NAL unit behind its length, so that it can be laid out. */
const readable = (packet: Packet): Packet => ({
  ...packet,
  data: packet.track.type === 'video' ? Buffer.from([0, 0, 0, 2, 0x65, 1]) : packet.data,
});
const media = (seconds: number): Packet[] =>
  interleave(videoPackets(VIDEO, constantFrames({ rate: 30, gop: GOP, seconds })), audioPackets(AUDIO, seconds)).map(readable);

/** Calls `begin` before each packet that begins a segment of a second. */
function play(packets: readonly Packet[], begin: (mark: SegmentMark, packet: Packet) => void, push: (packet: Packet) => void): void {
  for (const packet of packets) {
    const second = packet.dts / 90_000;
    if (packet.track === VIDEO && packet.keyframe) begin(mark(Math.round(second), packet.pts / 90), packet);
    push(packet);
  }
}

class Live extends FakeStream {
  override tracks = [VIDEO, AUDIO];
  override readonly name = 'live';
}

let publisher: OvtPublisher;
let stream: Live;
let served: OvtStream;
const closing: (() => void)[] = [];
beforeEach(async () => {
  publisher = new OvtPublisher({ logger: new RecordingLogger(), clock: new ManualClock(), passesMarks: true });
  await publisher.listen({ host: '127.0.0.1', port: 0, virtualHostFor: () => 'default', hasApplication: () => true });
  stream = new Live();
  served = publisher.attach(stream);
  served.onTracks(stream.tracks);
});
afterEach(async () => {
  for (const close of closing.splice(0)) close();
  served.close({ code: 'peer-left', detail: 'the test ends' });
  await publisher.stop();
});

async function pull(relay = true): Promise<RecordingSink> {
  const sink = new RecordingSink();
  const url = `ovt://127.0.0.1:${publisher.ports[0]}/app/live`;
  const target = {
    url,
    settings: {},
    ignoreSenderReports: false,
    sink,
    signal: AbortSignal.timeout(10_000),
    logger: new RecordingLogger(),
  };
  const session = await new OvtPullSource(new ManualClock()).open({ ...target, stream: ADDRESS, relay });
  closing.push(() => session.close());
  return sink;
}

/** Connects an edge before `packets`, because no packets are held before the first edge. */
async function another(packets: readonly Packet[]): Promise<void> {
  playOn(packets);
  await pull();
  await until('the edge is there', () => served.sessions === 1);
}

function playOn(packets: readonly Packet[]): void {
  play(
    packets,
    (told, packet) => stream.marks.tell(told, packet),
    (packet) => served.onPacket(packet),
  );
}

describe('an edge that numbers as its origin does', () => {
  test('makes the origin hold packets, starting with the first such edge', async () => {
    const packets = media(6);
    const half = packets.findIndex(({ track, dts }) => track === VIDEO && dts >= 2.5 * 90_000);
    playOn(packets.slice(0, half));
    expect(served.held).toBe(0);
    const sink = await pull();
    expect(served.held).toBe(0);
    playOn(packets.slice(half));
    await until('the packets', () => sink.packets.some(({ mark: told }) => told?.msn === 5));
    expect(sink.packets[0]).toMatchObject({ trackId: VIDEO.id, keyframe: true, mark: { msn: 3 } });
    expect(served.held).toBeGreaterThan(30);
  });

  test('gets the previous segment at once, then continues without a gap', async () => {
    const packets = media(6);
    await another(packets.slice(0, 10));
    const half = packets.findIndex(({ track, dts }) => track === VIDEO && dts >= 3.5 * 90_000);
    playOn(packets.slice(10, half));
    const sink = await pull();
    await until('the packets', () => sink.packets.some(({ mark: told }) => told?.msn === 3));
    const before = sink.packets.length;
    expect(sink.packets[0]).toMatchObject({ trackId: VIDEO.id, keyframe: true, duration: 3000, mark: { msn: 2, run: 'r' } });
    expect(sink.packets[0]?.mark?.facts.targetDuration).toBe(1);
    playOn(packets.slice(half));
    await until('the packets', () => sink.packets.some(({ mark: told }) => told?.msn === 5) && sink.packets.length > before);
    const frames = sink.packets.filter(({ trackId }) => trackId === VIDEO.id).map(({ dts }) => dts);
    expect(frames).toEqual(frames.map((_, index) => (frames[0] ?? 0) + index * 3000));
    expect(frames[0]).toBe(2 * 90_000);
    const sound = sink.packets.filter(({ trackId }) => trackId === AUDIO.id).map(({ pts }) => pts);
    expect(sound).toEqual(sound.map((_, index) => (sound[0] ?? 0) + index * 1024));
    // The first audio frame whose middle lies in the segment.
    expect(Math.abs((sound[0] ?? 0) - 2 * 48_000)).toBeLessThanOrEqual(512);
  });

  test('starts at the next segment when the held segment is too large', async () => {
    const packets = media(4);
    await another(packets.slice(0, 1));
    const half = packets.findIndex(({ track, dts }) => track === VIDEO && dts >= 1.5 * 90_000);
    const large = (packet: Packet): Packet =>
      packet.track === VIDEO ? { ...packet, data: Buffer.concat([packet.data, Buffer.alloc(1_000_000)]) } : packet;
    play(
      packets.slice(1, half),
      (told, packet) => stream.marks.tell(told, packet),
      (packet) => served.onPacket(large(packet)),
    );
    const sink = await pull();
    playOn(packets.slice(half));
    await until('the packets', () => sink.packets.some(({ mark: told }) => told?.msn === 3));
    expect(sink.packets[0]).toMatchObject({ trackId: VIDEO.id, mark: { msn: 2 } });
    expect(sink.signs).toBeGreaterThan(0);
  });

  test('an edge that does not package LL-HLS gets no marks', async () => {
    const packets = media(4);
    playOn(packets.slice(0, 100));
    const sink = await pull(false);
    playOn(packets.slice(100));
    await until('the packets', () => sink.packets.length > 40);
    expect(sink.packets.every((packet) => packet.mark === undefined)).toBe(true);
  });
});

describe('packets held for edges', () => {
  test('span two segments of a stream of any length', () => {
    const backlog = new MarkBacklog();
    play(
      media(20),
      (told, packet) => backlog.begin(told, packet),
      (packet) => backlog.push(packet),
    );
    const { packets } = backlog;
    expect(packets.flatMap(({ mark: told }) => told?.msn ?? [])).toEqual([18, 19]);
    expect(packets[0]?.mark?.msn).toBe(18);
    expect(packets.length).toBeLessThan(2 * (30 + 48));
  });

  test('include audio of a segment that arrived before its first frame, after that frame', () => {
    const backlog = new MarkBacklog();
    const [picture] = media(1);
    const at = (seconds: number): Packet => ({ ...picture!, pts: seconds * 90_000, dts: seconds * 90_000 });
    const sound = (pts: number): Packet => ({ ...audioPackets(AUDIO, 1)[0]!, pts, dts: pts });
    for (const second of [0, 1, 2]) {
      backlog.begin(mark(second, second * 1000), at(second));
      backlog.push(at(second));
      for (const early of [700, 400]) backlog.push(sound((second + 1) * 48_000 - early));
    }
    expect(backlog.packets.map(({ packet }) => packet.pts)).toEqual([90_000, 47_600, 95_300, 95_600, 180_000, 143_300, 143_600]);
  });

  test('are empty before the first mark, and after their limit was exceeded', () => {
    const backlog = new MarkBacklog();
    for (const packet of media(1)) backlog.push(packet);
    expect(backlog.packets).toEqual([]);
    const [first] = media(1);
    backlog.begin(mark(0, 0), first!);
    backlog.push(first!);
    expect(backlog.packets).toHaveLength(1);
    backlog.push({ ...first!, data: Buffer.alloc(13 * 1024 * 1024) });
    expect(backlog.packets).toEqual([]);
  });
});
