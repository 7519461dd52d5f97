import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import type { ApplicationConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { Application } from './application.ts';
import type { CloseReason, IngestRequest, IngestStream, SourceTrack } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import type { Publisher } from './publishing.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

const LEFT: CloseReason = { code: 'peer-left', detail: 'bye' };
const KEPT = { keepStreamMs: 5000, takeOverSilenceMs: 2000 };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** An application that passes everything through to one publisher. */
function setUp(overrides: object = {}) {
  const clock = new ManualClock();
  const packets: Packet[] = [];
  const announced: (readonly Track[])[] = [];
  const ended: CloseReason[] = [];
  const publisher: Publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: () => ({
      onTracks: (tracks) => announced.push(tracks),
      onPacket: (packet) => packets.push(packet),
      close: (reason) => ended.push(reason),
    }),
  };
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
  const profile = { name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes };
  const config = {
    name: 'app',
    providers: { rtmp: {}, srt: {}, rtspPull: {} },
    publishers: { llhls: {} },
    outputProfiles: { outputProfile: [profile] },
    sourceLoss: KEPT,
    ...overrides,
  };
  const meter = new TrafficMeter(clock, null);
  let lastId = 0;
  const application = new Application('v', { name: 'app', config: config as unknown as ApplicationConfig, echo: {} }, meter, {
    clock,
    logger: new RecordingLogger(),
    queues: new QueueRegistry(clock),
    publishers: new Map([[publisher.kind, publisher]]),
    transcoder: null,
    nextStreamId: () => (lastId += 1),
  });
  const closes: CloseReason[] = [];
  const request = (more: Partial<IngestRequest> = {}): IngestRequest => ({
    ...{ streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1' },
    onClose: (reason) => closes.push(reason),
    ...more,
  });
  return { application, clock, packets, announced, ended, closes, request, meter };
}

/** One second of video and audio. */
function send(ingest: IngestStream, startMs: number): void {
  for (let index = 0; index < 30; index += 1) ingest.push(videoPacket(index, { startMs }));
  for (let index = 0; index < 47; index += 1) ingest.push(audioPacket(index, { startMs }));
}

function expectContinuous(packets: readonly Packet[]): void {
  const last = new Map<number, Packet>();
  for (const packet of packets) {
    const before = last.get(packet.track.id);
    if (before !== undefined) {
      const step = toSeconds(packet.dts - before.dts, packet.track.timebase);
      expect(step).toBeGreaterThan(0);
      expect(step).toBeLessThan(0.08);
    }
    last.set(packet.track.id, packet);
  }
}

describe('a stream that outlives its source', () => {
  it('continues with the next source, with the same tracks and without a jump in time', () => {
    const { application, packets, announced, ended, request, closes } = setUp();
    const first = application.openIngest(request());
    first.setTracks([videoTrack(), audioTrack()]);
    send(first, 700_000);
    first.close(LEFT);
    expect(first.closed).toBe(true);
    vi.advanceTimersByTime(4000);
    const stream = application.stream('s');
    expect([application.streams.length, stream?.source.present, ended]).toEqual([1, false, []]);
    const second = application.openIngest(request({ sourceUrl: 'TCP://127.0.0.1:2' }));
    second.setTracks([videoTrack(), audioTrack()]);
    send(second, 40);
    first.push(videoPacket(0));
    first.close(LEFT);
    vi.advanceTimersByTime(60_000);
    expect(application.stream('s')).toBe(stream);
    expect([stream?.sourceUrl, stream?.source.present, second.closed]).toEqual(['TCP://127.0.0.1:2', true, false]);
    second.close(LEFT);
    expect([announced.length, packets.length, ended, closes]).toEqual([1, 154, [], []]);
    expectContinuous(packets);
    vi.advanceTimersByTime(5000);
    expect(ended).toMatchObject([{ code: 'peer-left', detail: expect.stringContaining('5000 ms') }]);
    expect(application.hasStream('s')).toBe(false);
  });

  it('may continue over another protocol, with other ids, timebases and parameters', () => {
    const { application, packets, announced, request } = setUp();
    const first = application.openIngest(request());
    first.setTracks([videoTrack(), audioTrack()]);
    send(first, 0);
    first.close(LEFT);
    const second = application.openIngest(request({ provider: 'srt', sourceType: 'SRT' }));
    const den = 90_000;
    second.setTracks([
      audioTrack({ id: 257, timebase: { num: 1, den } }),
      videoTrack({ id: 256, timebase: { num: 1, den }, config: AVCC.baseline360 }),
    ]);
    const again = (packet: ReturnType<typeof videoPacket>) =>
      second.push({ ...packet, trackId: packet.trackId + 256, dts: packet.dts * 90 + den * 3600, pts: packet.pts * 90 + den * 3600 });
    for (let index = 0; index < 30; index += 1) again(videoPacket(index));
    for (let index = 0; index < 47; index += 1) again(audioPacket(index));
    second.close(LEFT);
    expectContinuous(packets);
    const ids = (tracks: readonly Track[] | undefined) => tracks?.map(({ id, type }) => [id, type]);
    expect(ids(announced.at(-1))).toEqual(ids(announced[0]));
    expect(packets.at(0)?.track).toMatchObject({ height: 180 });
    expect(packets.findLast(({ track }) => track.type === 'video')?.track).toMatchObject({ id: 0, height: 360 });
    expect(application.stream('s')?.sourceType).toBe('SRT');
  });

  it('passes nothing on before the first keyframe of the new source', () => {
    const { application, packets, request } = setUp();
    const first = application.openIngest(request());
    first.setTracks([videoTrack()]);
    for (let index = 0; index < 30; index += 1) first.push(videoPacket(index));
    first.close(LEFT);
    const second = application.openIngest(request());
    second.setTracks([videoTrack()]);
    for (let index = 20; index < 40; index += 1) second.push(videoPacket(index));
    second.close(LEFT);
    expect(packets.length).toBe(40);
    expect(packets[30]?.keyframe).toBe(true);
    expectContinuous(packets);
  });

  it.each(['deleted', 'application-restart', 'shutdown', 'denied'] as const)('ends at once when it is %s', (code) => {
    const { application, ended, closes, request } = setUp();
    application.openIngest(request()).setTracks([videoTrack()]);
    application.stream('s')?.terminate({ code, detail: 'x' });
    expect([ended.length, closes.length, application.hasStream('s')]).toEqual([1, 1, false]);
  });

  it('is deleted while it waits, without leaving timers', () => {
    const { application, ended, closes, request, meter } = setUp();
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack()]);
    ingest.close(LEFT);
    application.stream('s')?.terminate({ code: 'deleted', detail: 'x' });
    expect([ended.length, closes, vi.getTimerCount()]).toEqual([1, [], 0]);
    expect(meter.ingests.rtmp).toBe(0);
  });

  it('ends at once when it never had tracks', () => {
    const { application, request } = setUp();
    application.openIngest(request()).close(LEFT);
    expect(application.hasStream('s')).toBe(false);
  });

  it('disconnects a silent source and waits for another one', () => {
    const { application, clock, closes, ended, request } = setUp({ providers: { rtmp: { packetSilenceTimeoutMs: 1000 } } });
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack()]);
    const pass = (ms: number): void => {
      clock.advance(ms);
      vi.advanceTimersByTime(ms);
    };
    pass(900);
    expect(ingest.closed).toBe(false);
    pass(100);
    expect([closes.map(({ code }) => code), ended, ingest.closed]).toEqual([['timeout'], [], true]);
    expect(application.stream('s')?.source.present).toBe(false);
  });

  it('supports a limit longer than the maximum of a timer', () => {
    const { application, clock, request } = setUp({ providers: { rtmp: { packetSilenceTimeoutMs: 2 ** 31 + 1000 } } });
    const waits: number[] = [];
    const fake = globalThis.setTimeout;
    // Not a spy: vitest restores spies again after the file, which would leave this fake to the next file in the process.
    globalThis.setTimeout = Object.assign((...[callback, ms = 0]: [() => void, number?]) => {
      waits.push(ms);
      return fake(callback, ms);
    }, fake);
    try {
      application.openIngest(request()).setTracks([videoTrack()]);
      const before = waits.length;
      for (let hour = 0; hour < 3; hour += 1) {
        clock.advance(3_600_000);
        vi.advanceTimersByTime(3_600_000);
      }
      expect([before, waits.length > before, Math.max(...waits) < 2 ** 31]).toEqual([1, true, true]);
    } finally {
      globalThis.setTimeout = fake;
    }
  });

  it('treats packets of a data track as silence', () => {
    const { application, clock, request } = setUp({ providers: { rtmp: { packetSilenceTimeoutMs: 1000 } } });
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack(), { id: 9, type: 'data', timebase: { num: 1, den: 1000 } } as SourceTrack]);
    const silentAfter = (push: (n: number) => void): number => {
      for (let n = 0; n < 50; n += 1) {
        if (ingest.closed) return n * 100;
        push(n);
        clock.advance(100);
        vi.advanceTimersByTime(100);
      }
      return Number.POSITIVE_INFINITY;
    };
    expect(silentAfter((n) => ingest.push(videoPacket(n)))).toBe(Number.POSITIVE_INFINITY);
    expect(silentAfter((n) => ingest.push({ ...videoPacket(n), trackId: 9 }))).toBeLessThanOrEqual(1100);
  });

  it.each([
    ['far from the limit', 0],
    ['just before the limit', 950],
  ])('does not report a silent source after the server was blocked %s', (_, before) => {
    const { application, clock, request } = setUp({ providers: { rtmp: { packetSilenceTimeoutMs: 1000 } } });
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack()]);
    clock.advance(before);
    vi.advanceTimersByTime(before);
    // An overdue timer fires once.
    clock.advance(30_000);
    vi.advanceTimersToNextTimer();
    expect(ingest.closed).toBe(false);
    // Data sent meanwhile is read now.
    ingest.push(videoPacket(0));
    for (const [ms, closed] of [
      [900, false],
      [100, true],
    ] as const) {
      clock.advance(ms);
      vi.advanceTimersByTime(ms);
      expect(ingest.closed).toBe(closed);
    }
  });

  it('cannot be taken over by a pulled stream', () => {
    const { application, request } = setUp();
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack()]);
    ingest.close(LEFT);
    expect(() => application.openPulled(request({ provider: 'rtsppull' }))).toThrow(/already being published/);
    expect(application.stream('s')?.source.present).toBe(false);
  });

  it('ends for a source with passthrough, which has other outputs', () => {
    const { application, ended, request } = setUp();
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack()]);
    ingest.close(LEFT);
    application.openIngest(request({ passthrough: true }));
    expect(ended).toMatchObject([{ code: 'replaced' }]);
  });

  it('is off by default', () => {
    const { application, ended, request } = setUp({ sourceLoss: undefined });
    const ingest = application.openIngest(request());
    ingest.setTracks([videoTrack()]);
    ingest.close(LEFT);
    expect([ended.length, application.hasStream('s')]).toEqual([1, false]);
  });
});

describe('a second source for a name in use', () => {
  const policy = (takeOver: string, more: object = {}) => ({ sourceLoss: { ...KEPT, takeOver }, ...more });

  it('is refused by `block`, even where the provider would replace', () => {
    const { application, request } = setUp(policy('block', { providers: { rtmp: { blockDuplicateStreamName: false } } }));
    application.openIngest(request()).setTracks([videoTrack()]);
    expect(() => application.openIngest(request())).toThrow(expect.objectContaining({ code: 'duplicate-name' }));
  });

  it('continues the stream with `replace`, and the first encoder is notified', () => {
    const { application, packets, ended, closes, request, meter } = setUp(policy('replace'));
    const first = application.openIngest(request());
    first.setTracks([videoTrack(), audioTrack()]);
    send(first, 5000);
    const second = application.openIngest(request());
    second.setTracks([videoTrack(), audioTrack()]);
    send(second, 0);
    second.close(LEFT);
    expect([closes.map(({ code }) => code), ended, first.closed]).toEqual([['replaced'], [], true]);
    expect(packets.length).toBe(154);
    expectContinuous(packets);
    expect(meter.ingests.rtmp).toBe(0);
  });

  it('waits for silence by `afterSilence`', () => {
    const { application, clock, request } = setUp(policy('afterSilence'));
    const first = application.openIngest(request());
    first.setTracks([videoTrack()]);
    first.push(videoPacket(0));
    clock.advance(1999);
    expect(() => application.openIngest(request())).toThrow(expect.objectContaining({ code: 'duplicate-name' }));
    clock.advance(1);
    expect(application.openIngest(request()).closed).toBe(false);
    expect(first.closed).toBe(true);
  });

  it('never takes over a pulled stream', () => {
    const { application, request } = setUp(policy('replace'));
    application.openPulled(request({ provider: 'rtsppull' }));
    expect(() => application.openIngest(request())).toThrow(expect.objectContaining({ code: 'duplicate-name' }));
  });
});
