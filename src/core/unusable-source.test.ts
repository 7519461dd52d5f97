import { afterEach, expect, test, vi } from 'vitest';
import { HeldTurns } from '../../test/fakes/held-turns.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { accessUnit, audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import type { ApplicationConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { NO_TURNS, type Turns } from '../util/newcomer-turns.ts';
import { Application } from './application.ts';
import type { CloseReason, IngestRequest, SourcePacket } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import { QueueRegistry } from './queue-registry.ts';
import { MAX_BYTES_PER_SECOND } from './source-watch.ts';
import { TrafficMeter } from './traffic-meter.ts';

const MIB = 1024 * 1024;

afterEach(() => {
  vi.useRealTimers();
});

function setUp({ keepStreamMs = 0, turns = NO_TURNS }: { keepStreamMs?: number; turns?: Turns } = {}) {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const packets: Packet[] = [];
  let announced = 0;
  const publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: () => ({
      onTracks: () => {
        announced += 1;
      },
      onPacket: (packet: Packet) => packets.push(packet),
      close: () => undefined,
    }),
  };
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
  const config = {
    name: 'app',
    providers: { rtmp: {} },
    publishers: { llhls: {} },
    outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes }] },
    sourceLoss: { keepStreamMs, takeOverSilenceMs: 2000 },
  };
  const application = new Application(
    'v',
    { name: 'app', config: config as unknown as ApplicationConfig, echo: {} },
    new TrafficMeter(clock, null),
    {
      ...{ clock, logger, turns, queues: new QueueRegistry(clock), transcoder: null, nextStreamId: () => 1 },
      publishers: new Map([[publisher.kind, publisher]]),
    },
  );
  const closes: CloseReason[] = [];
  const request: IngestRequest = {
    ...{ streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1' },
    onClose: (reason) => closes.push(reason),
  };
  return { application, clock, closes, logger, packets, request, announced: () => announced };
}

test('a publisher without room to start is disconnected with the reason, even with KeepStreamMs', async () => {
  const turns = new HeldTurns();
  const { application, request, closes, logger } = setUp({ turns, keepStreamMs: 10_000 });
  const ingest = application.openIngest({ ...request, client: '192.0.2.1' });
  ingest.setTracks([videoTrack(), audioTrack()]);
  expect(turns.waiting.map(({ client }) => client)).toEqual(['192.0.2.1']);
  turns.waiting[0]?.refused('there is no room');
  expect(closes).toEqual([]);
  await turn();
  expect(closes).toEqual([{ code: 'no-room', detail: 'there is no room' }]);
  expect(ingest.closed).toBe(true);
  expect(application.hasStream('s')).toBe(false);
  expect(logger.matching('stream closed: there is no room')).toHaveLength(1);
});

test('a stream that fails in its turn ends, and the others continue', () => {
  const turns = new HeldTurns();
  const { application, request, closes } = setUp({ turns });
  const ingest = application.openIngest(request);
  ingest.setTracks([videoTrack(), audioTrack()]);
  turns.waiting[0]?.failed(new Error('a fault of ours'));
  expect(closes).toEqual([{ code: 'peer-error', detail: 'internal error' }]);
  expect(ingest.closed).toBe(true);
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test('a publisher whose clock stands still is disconnected with a reason, and its further packets are dropped', async () => {
  const { application, request, closes, packets, logger } = setUp();
  const ingest = application.openIngest(request);
  ingest.setTracks([videoTrack(), audioTrack()]);
  const data = accessUnit(true, MIB);
  const frame = (): SourcePacket => ({ trackId: 0, pts: 0, dts: 0, keyframe: true, data });
  let sent = 0;
  for (; closes.length === 0 && sent < 500; sent += 1) {
    ingest.push(frame());
    ingest.push(audioPacket(sent));
    await turn();
  }
  expect(sent).toBeLessThanOrEqual(MAX_BYTES_PER_SECOND / MIB + 2);
  const detail = 'more than 64 MiB of track 0 came within a second of its time: its clock stands still';
  expect(closes).toEqual([{ code: 'peer-error', detail }]);
  expect(application.streams).toEqual([]);
  expect(logger.matching(`stream closed: ${detail}`)).toHaveLength(1);
  const seen = packets.length;
  ingest.push(frame());
  await turn();
  expect(packets).toHaveLength(seen);
});

test('no packet is accepted between the verdict and the publisher’s notification', async () => {
  const { application, request, closes, packets } = setUp();
  const ingest = application.openIngest(request);
  ingest.setTracks([videoTrack(), audioTrack()]);
  const data = accessUnit(true, MIB);
  for (let index = 0; index < 500; index += 1) ingest.push({ trackId: 0, pts: 0, dts: 0, keyframe: true, data });
  await turn();
  await turn();
  expect(closes).toHaveLength(1);
  expect(packets.length).toBeLessThanOrEqual(MAX_BYTES_PER_SECOND / MIB);
});

test('a stream with KeepStreamMs waits for a better source', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  const { application, request, closes, packets } = setUp({ keepStreamMs: 5000 });
  const ingest = application.openIngest(request);
  ingest.setTracks([videoTrack(), audioTrack()]);
  const data = accessUnit(true, MIB);
  for (let index = 0; index < 100; index += 1) ingest.push({ trackId: 0, pts: 0, dts: 0, keyframe: true, data });
  await turn();
  await turn();
  expect(closes).toHaveLength(1);
  expect(application.stream('s')?.source.present).toBe(false);
  const before = packets.length;
  const next = application.openIngest({ ...request, sourceUrl: 'TCP://127.0.0.1:2' });
  next.setTracks([videoTrack(), audioTrack()]);
  for (let index = 0; index < 30; index += 1) next.push(videoPacket(index));
  await turn();
  expect(packets).toHaveLength(before + 30);
  next.close({ code: 'deleted', detail: 'the test ends' });
});

test('a publisher that changes its parameters continuously is disconnected, and the log stays short', async () => {
  const { application, request, closes, logger, announced } = setUp();
  const ingest = application.openIngest(request);
  for (let index = 0; index < 3000; index += 1) {
    ingest.setTracks([videoTrack({ config: index % 2 === 0 ? AVCC.baseline180 : AVCC.high720 }), audioTrack()]);
    ingest.push(videoPacket(0, { startMs: index * 40 }));
    if (index % 10 === 0) await turn();
  }
  await turn();
  expect(closes).toEqual([{ code: 'peer-error', detail: 'its parameters change more than 1 time a second, 60 times at once' }]);
  expect(announced()).toBeLessThanOrEqual(60);
  expect(logger.lines.filter(({ message }) => message.startsWith('stream has tracks'))).toHaveLength(10);
});

test('a source that switches every other second continues, and the log counts the changes at intervals', async () => {
  const { application, request, closes, clock, logger } = setUp();
  const ingest = application.openIngest(request);
  for (let index = 0; index < 200; index += 1) {
    ingest.setTracks([videoTrack({ config: index % 2 === 0 ? AVCC.baseline180 : AVCC.high720 }), audioTrack()]);
    ingest.push(videoPacket(0, { startMs: index * 2000 }));
    await turn();
    clock.advance(2000);
  }
  expect(closes).toEqual([]);
  const lines = logger.lines.filter(({ message }) => message.startsWith('stream has tracks'));
  expect(lines.length).toBeLessThan(60);
  expect(lines.at(-1)?.fields).toMatchObject({ changesBefore: 4 });
  ingest.close({ code: 'peer-left', detail: 'the test ends' });
});

test('an unreadable publisher is disconnected with its first fault', async () => {
  const { application, request, closes } = setUp();
  const ingest = application.openIngest(request);
  ingest.setTracks([videoTrack(), audioTrack()]);
  ingest.push(videoPacket(0));
  const broken = Buffer.from('000000ff65', 'hex');
  for (let index = 1; index < 3000; index += 1) {
    ingest.push({ trackId: 0, pts: index, dts: index, keyframe: null, data: broken });
    if (index % 100 === 0) await turn();
  }
  await turn();
  expect(closes).toEqual([
    { code: 'peer-error', detail: expect.stringMatching(/^more than 100 packets a second cannot be read, the first one: /) as string },
  ]);
});
