/** Events on their way through an inbound stream: their place among the packets, with a delay and without, in encodes and in frames. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeTranscoder } from '../../test/fakes/fake-transcoder.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { LengthPrefixedCursor } from '../codecs/nal/nal-cursor.ts';
import type { ApplicationConfig } from '../config/index.ts';
import { buildCue } from '../containers/markers/cue.ts';
import { buildSpliceInsert, parseSplice } from '../containers/markers/splice-info.ts';
import type { Packet } from '../media/packet.ts';
import { Application } from './application.ts';
import type { InboundStream } from './inbound-stream.ts';
import type { IngestStream, SourceEvent } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

const ID3: SourceEvent = { format: 'id3v2', target: 'video', data: Buffer.from('ID3'), at: null };
const CUE: SourceEvent = { format: 'cue', target: 'all', data: buildCue({ type: 'in', duration: 0, elapsed: 0 }), at: null };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function setUp(options: { delayMs?: number; encodes?: object } = {}) {
  const clock = new ManualClock();
  const packets: Packet[] = [];
  const turns: string[] = [];
  const transcoder = new FakeTranscoder();
  const publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: () => ({
      ...{ onTracks: () => undefined, onPacket: (packet: Packet) => packets.push(packet), close: () => undefined },
      onDrained: () => turns.push('end of turn'),
    }),
  };
  const encodes = options.encodes ?? { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
  const config = {
    ...{ name: 'app', providers: { rtmp: {} }, publishers: { llhls: {}, delayBufferTimeMs: options.delayMs ?? 0 } },
    outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes }] },
  };
  const application = new Application(
    'v',
    { name: 'app', config: config as unknown as ApplicationConfig, echo: {} },
    new TrafficMeter(clock, null),
    {
      ...{ clock, logger: new RecordingLogger(), queues: new QueueRegistry(clock), transcoder, nextStreamId: () => 1 },
      publishers: new Map([[publisher.kind, publisher]]),
    },
  );
  const request = {
    streamName: 's',
    provider: 'rtmp',
    sourceType: 'Rtmp',
    sourceUrl: 'TCP://127.0.0.1:1',
    onClose: () => undefined,
  } as const;
  const ingest = application.openIngest(request);
  ingest.setTracks([videoTrack(), audioTrack()]);
  const stream = application.stream('s') as InboundStream;
  return { clock, packets, turns, transcoder, ingest, stream };
}

/** Frames of the source from `first` up to `end`, 30 a second with a keyframe each second. */
function feed(ingest: IngestStream, first: number, end: number): void {
  for (let index = first; index < end; index += 1) ingest.push(videoPacket(index));
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const order = (packets: readonly Packet[]): string => packets.map(({ event }) => (event === undefined ? '.' : event.format[0])).join('');

it('places an event after the waiting packets, and an urgent event before them', async () => {
  const { ingest, stream, packets } = setUp();
  feed(ingest, 0, 31);
  await settled();
  packets.length = 0;
  feed(ingest, 31, 33);
  expect(stream.inject(ID3, false)).toBe(true);
  feed(ingest, 33, 34);
  expect(stream.inject(CUE, true)).toBe(true);
  await settled();
  expect(order(packets)).toBe('c..i.');
  expect(packets.find(({ event }) => event?.format === 'id3v2')).toMatchObject({ pts: 1100, event: { format: 'id3v2', target: 'video' } });
});

it('passes an urgent event on at once, without waiting for a packet', async () => {
  const { ingest, stream, turns } = setUp();
  feed(ingest, 0, 31);
  await settled();
  const before = turns.length;
  stream.inject(CUE, true);
  expect(turns.slice(before)).toEqual(['end of turn']);
});

it('delays events with the packets, except for urgent events, which get the time of the viewers', async () => {
  const { clock, ingest, stream, packets } = setUp({ delayMs: 1000 });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await vi.advanceTimersByTimeAsync(ms);
  };
  feed(ingest, 0, 15);
  await settled();
  await pass(600);
  feed(ingest, 15, 31);
  stream.inject(ID3, false);
  await settled();
  await pass(500);
  packets.length = 0;
  stream.inject(ID3, true);
  await pass(1000);
  expect(order(packets)).toBe(`i${'.'.repeat(16)}i`);
  expect(packets[0]).toMatchObject({ dts: 467, pts: 467 });
  expect(packets.at(-1)?.pts).toBe(1033);
});

it('forces a keyframe of every video encode at a cut', async () => {
  const video = {
    name: 'e',
    codec: 'h264',
    width: 640,
    height: 360,
    bitrate: 1_000_000,
    keyFrameInterval: 2,
    keyFrameIntervalType: 'time',
  };
  const { ingest, stream, transcoder } = setUp({ encodes: { videos: [video], audios: [], images: [] } });
  feed(ingest, 0, 45);
  await settled();
  stream.inject(CUE, false);
  await settled();
  // One keyframe interval ahead of the end of the media.
  expect(transcoder.sessions[0]?.forcedKeyframes).toEqual([{ encodeId: 0, pts: 225_000 }]);
});

it('puts SEI into the next frame, or keyframe, before its slices, and sends no separate event', async () => {
  const { ingest, stream, packets } = setUp();
  feed(ingest, 0, 31);
  await settled();
  packets.length = 0;
  const data = Buffer.concat([Buffer.alloc(16, 7), Buffer.of(0, 0, 1)]);
  stream.inject({ format: 'sei', target: 'video', keyframeOnly: true, data, at: null }, false);
  stream.inject({ format: 'sei', target: 'video', data, at: null }, false);
  feed(ingest, 31, 62);
  await settled();
  expect(packets.every(({ event }) => event === undefined)).toBe(true);
  const withSei = packets.filter((packet) => unitsOf(packet)[0]?.[0] === 6);
  expect(withSei.map(({ keyframe, dts }) => [keyframe, Math.round(dts / 3000)])).toEqual([
    [false, 31],
    [true, 60],
  ]);
  // Type, size, UUID, then two zeros that must not begin a start code, and the stop bit.
  expect(Buffer.from(unitsOf(withSei[0])[0] ?? []).toString('hex')).toBe(`060513${'07'.repeat(16)}0000030180`);
  expect(unitsOf(withSei[0]).map((unit) => (unit[0] ?? 0) & 0x1f)).toEqual([6, 1]);
});

it('ends breaks of the API, and no break of the previous source, when another source continues', async () => {
  const { ingest, stream, packets } = setUp();
  const out = (id: number) => buildSpliceInsert({ id, type: 'out', time: 0, duration: 90_000, autoReturn: true });
  feed(ingest, 0, 31);
  await settled();
  ingest.pushEvent({ format: 'scte35', target: 'all', data: out(1), at: null });
  stream.inject({ format: 'scte35', target: 'all', data: out(2), at: null }, false);
  await settled();
  stream.changeSource();
  ingest.setTracks([videoTrack(), audioTrack()]);
  feed(ingest, 0, 150);
  await settled();
  const told = packets.filter(({ event }) => event !== undefined).map(({ data }) => parseSplice(data));
  expect(told.map((splice) => `${splice?.id} ${splice?.type}`)).toEqual(['1 out', '2 out', '2 in']);
});

it('refuses events before a source has sent media, and limits events that circle in a ring of pulls', async () => {
  const { ingest, stream } = setUp();
  feed(ingest, 0, 31);
  await settled();
  let passes = 0;
  // Servers that pull the stream from each other bring it its own events, and no media.
  stream.tap({
    onTracks: () => undefined,
    onPacket: ({ event, data }) => {
      if (event === undefined) return;
      passes += 1;
      ingest.pushEvent({ ...event, data, at: null });
    },
    onEnd: () => undefined,
  });
  stream.changeSource();
  ingest.setTracks([videoTrack(), audioTrack()]);
  expect([stream.inject(ID3, false), ingest.pushEvent(ID3)]).toEqual([false, false]);
  await settled();
  expect(passes).toBe(0);
  feed(ingest, 0, 1);
  await settled();
  // Media sets the clock, which stands still here: a loop of taps gets only as many events as one stream may carry.
  expect(stream.inject(ID3, false)).toBe(true);
  for (let turn = 0; turn < 300; turn += 1) await settled();
  expect(passes).toBeGreaterThan(50);
  expect(passes).toBeLessThanOrEqual(100);
});

it('refuses events before the first media and after the end', async () => {
  const { ingest, stream } = setUp();
  expect(stream.inject(ID3, false)).toBe(false);
  feed(ingest, 0, 1);
  await settled();
  expect(stream.inject(ID3, true)).toBe(true);
  ingest.close({ code: 'peer-left', detail: 'end' });
  expect(stream.inject(ID3, true)).toBe(false);
});

function unitsOf(packet: Packet | undefined): Uint8Array[] {
  const units: Uint8Array[] = [];
  if (packet === undefined) return units;
  const nals = new LengthPrefixedCursor(packet.data);
  while (nals.next()) units.push(packet.data.subarray(nals.start, nals.end));
  return units;
}

it('an event during a pause does not change the clock of the source', async () => {
  const { clock, ingest, stream } = setUp();
  feed(ingest, 0, 31);
  await settled();
  const [output] = stream.outputs;
  const before = output!.startedAt;
  for (let second = 0; second < 15; second += 1) {
    clock.advance(1000);
    expect(stream.inject(ID3, false)).toBe(true);
    await settled();
  }
  expect(output!.startedAt).toBe(before);
});
