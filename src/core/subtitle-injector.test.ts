/** Cues on their way through an inbound stream: their times, with a delay and without, and their tracks. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import type { ApplicationConfig } from '../config/index.ts';
import { readCuePayload } from '../containers/webvtt/cue-payload.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import { Application } from './application.ts';
import type { InboundStream } from './inbound-stream.ts';
import { PublisherKind } from './kinds.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const SUBTITLES = {
  enable: true,
  defaultLabel: 'Korean',
  rendition: [
    { label: 'English', language: 'en', autoSelect: true, forced: false },
    { label: 'Korean', language: 'ko', autoSelect: true, forced: true },
  ],
};

function setUp({ delayMs = 0, subtitles = SUBTITLES, keepStreamMs = 0 } = {}) {
  const clock = new ManualClock();
  const packets: Packet[] = [];
  const tracks: (readonly Track[])[] = [];
  let drains = 0;
  const publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: () => ({
      onTracks: (now: readonly Track[]) => tracks.push(now),
      onPacket: (packet: Packet) => packets.push(packet),
      onDrained: () => {
        drains += 1;
      },
      close: () => undefined,
    }),
  };
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
  const config = {
    ...{ name: 'app', providers: { rtmp: {} }, publishers: { llhls: {}, delayBufferTimeMs: delayMs } },
    ...{ sourceLoss: { keepStreamMs, takeOver: 'always' } },
    outputProfiles: {
      mediaOptions: { subtitles },
      outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes }],
    },
  };
  const application = new Application(
    'v',
    { name: 'app', config: config as unknown as ApplicationConfig, echo: {} },
    new TrafficMeter(clock, null),
    {
      ...{ clock, logger: new RecordingLogger(), queues: new QueueRegistry(clock), transcoder: null, nextStreamId: () => 1 },
      publishers: new Map([[publisher.kind, publisher]]),
    },
  );
  const open = () =>
    application.openIngest({
      ...{ streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1' },
      onClose: () => undefined,
    });
  const ingest = open();
  ingest.setTracks([videoTrack(), audioTrack()]);
  const stream = application.stream('s') as InboundStream;
  const cues = () =>
    packets
      .filter(({ track }) => track.type === 'subtitle')
      .map(({ track, pts, duration, data }) => [track.publicName, pts, duration, readCuePayload(data).text]);
  return { clock, tracks, ingest, open, stream, cues, drained: () => drains };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const cue = (text: string, startOffset = 0, duration = 1000) => ({ text, startOffset, duration, settings: '' });

it('queues cues one after another from the current media time, separately for each label', async () => {
  const { ingest, stream, cues } = setUp();
  for (let index = 0; index < 60; index += 1) ingest.push(videoPacket(index));
  await settled();
  expect(stream.subtitles.send([{ label: 'English', cues: [cue('a'), cue('b', 500, 2000), cue('c', -3500)] }])).toBe(true);
  expect(stream.subtitles.send([{ label: 'Korean', cues: [cue('d', -5000)] }])).toBe(true);
  expect(cues()).toEqual([
    ['English', 2000, 1000, 'a'],
    ['English', 3500, 2000, 'b'],
    ['English', 2000, 1000, 'c'],
    ['Korean', 0, 1000, 'd'],
  ]);
});

it('adds the configured tracks, with ids that the source does not use', async () => {
  const { ingest, tracks, stream } = setUp();
  for (let index = 0; index < 5; index += 1) ingest.push(videoPacket(index));
  await settled();
  const told = tracks.at(-1)?.filter((track) => track.type === 'subtitle');
  expect(told).toMatchObject([
    { publicName: 'English', variantName: 'subtitle', language: 'en', isDefault: false, autoSelect: true, forced: false },
    { publicName: 'Korean', variantName: 'subtitle', language: 'ko', isDefault: true, autoSelect: true, forced: true },
  ]);
  expect(stream.tracks.map(({ id, type }) => [id, type])).toEqual([
    [0, 'video'],
    [1, 'audio'],
    [2, 'data'],
    [3, 'subtitle'],
    [4, 'subtitle'],
  ]);
  ingest.setTracks([videoTrack(), audioTrack(), { ...audioTrack(), id: 3 }]);
  const ids = stream.tracks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(stream.tracks.filter(({ type }) => type === 'subtitle')).toHaveLength(2);
});

it('keeps its tracks when another source takes over', async () => {
  const { ingest, open, stream, cues } = setUp({ keepStreamMs: 60_000 });
  for (let index = 0; index < 30; index += 1) ingest.push(videoPacket(index));
  await settled();
  const before = stream.tracks.filter(({ type }) => type === 'subtitle');
  ingest.close({ code: 'peer-left', detail: '' });
  const next = open();
  next.setTracks([videoTrack(), audioTrack()]);
  for (let index = 0; index < 30; index += 1) next.push(videoPacket(index));
  await settled();
  expect(stream.tracks.filter(({ type }) => type === 'subtitle')).toEqual(before);
  stream.subtitles.send([{ label: 'English', cues: [cue('on')] }]);
  expect(cues()).toHaveLength(1);
});

it('delays cues with the media', async () => {
  const { clock, ingest, stream, cues } = setUp({ delayMs: 2000 });
  for (let index = 0; index < 30; index += 1) ingest.push(videoPacket(index));
  await settled();
  stream.subtitles.send([{ label: 'English', cues: [cue('later')] }]);
  expect(cues()).toEqual([]);
  clock.advance(2100);
  vi.advanceTimersByTime(2100);
  await settled();
  expect(cues()).toEqual([['English', 1000, 1000, 'later']]);
});

it('matches cues of the source by their language, at their own time', async () => {
  const { ingest, stream, cues } = setUp();
  const of = (at: number, text: string) => ({ at, duration: 500, settings: '', text });
  expect(ingest.pushCue('en', of(0, 'too early'))).toBe(false);
  for (let index = 0; index < 60; index += 1) ingest.push(videoPacket(index));
  await settled();
  const first = videoPacket(0).pts / videoTrack().timebase.den;
  expect(ingest.pushCue('en-GB', of(first + 1.5, 'a'))).toBe(true);
  expect(ingest.pushCue('KO', of(first + 1.75, 'b'))).toBe(true);
  expect(ingest.pushCue('fr', of(first + 1.5, 'c'))).toBe(false);
  expect(cues()).toEqual([
    ['English', 1500, 500, 'a'],
    ['Korean', 1750, 500, 'b'],
  ]);
  expect(stream.subtitles.counters).toEqual({ carried: 2, refused: 2 });
});

it('has no tracks when it is disabled', () => {
  const { stream } = setUp({ subtitles: { ...SUBTITLES, enable: false } });
  expect(stream.tracks.some(({ type }) => type === 'subtitle')).toBe(false);
  expect(stream.subtitles.send([{ label: 'English', cues: [cue('x')] }])).toBe(false);
});

it('keeps the quota of a refused request', async () => {
  const { ingest, stream } = setUp();
  for (let index = 0; index < 60; index += 1) ingest.push(videoPacket(index));
  await settled();
  const many = (count: number) => Array.from({ length: count }, () => cue('x'));
  for (let round = 0; round < 5; round += 1) expect(stream.subtitles.send([{ label: 'English', cues: many(1001) }])).toBe(false);
  expect(stream.subtitles.send([{ label: 'English', cues: many(1000) }])).toBe(true);
  expect(stream.subtitles.send([{ label: 'English', cues: many(1) }])).toBe(false);
});

it('shows no cue of a request with an unknown label, or on an ended stream', async () => {
  const { ingest, stream, cues } = setUp();
  for (let index = 0; index < 5; index += 1) ingest.push(videoPacket(index));
  await settled();
  const english = { label: 'English', cues: [cue('x'), cue('y')] };
  expect(stream.subtitles.send([english, { label: 'Klingon', cues: [cue('z')] }])).toBe(false);
  expect(cues()).toEqual([]);
  expect(stream.subtitles.counters).toEqual({ carried: 0, refused: 3 });
  stream.close({ code: 'deleted', detail: 'the test ends it' });
  expect(stream.subtitles.send([english])).toBe(false);
  expect(stream.subtitles.carry('en', { ...cue('x'), at: 0 })).toBe(false);
  expect(cues()).toEqual([]);
});

it('signals the end of a turn at once after a request', async () => {
  const { ingest, stream, drained } = setUp();
  for (let index = 0; index < 5; index += 1) ingest.push(videoPacket(index));
  await settled();
  const before = drained();
  stream.subtitles.send([{ label: 'English', cues: [cue('x')] }]);
  expect(drained()).toBe(before + 1);
});
