import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { audioTrack as audio, audioPackets, constantFrames, videoTrack as video, videoPackets } from '../../test/fakes/synthetic-media.ts';
import { type ApplicationConfig, readApplication } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { Application } from './application.ts';
import { DelayBuffer } from './delay-buffer.ts';
import { DelayedOutputs } from './delayed-outputs.ts';
import type { CloseReason } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import type { PublishableStream, Publisher } from './publishing.ts';
import { QueueRegistry } from './queue-registry.ts';
import type { Outputs } from './stream-outputs.ts';
import { TrafficMeter } from './traffic-meter.ts';

const VIDEO = video({ id: 0 });
const AUDIO = audio({ id: 1 });

/** At 30 fps, with a keyframe each second. */
function frames(count: number): Packet[] {
  return videoPackets(VIDEO, constantFrames({ rate: 30, gop: 30, seconds: count / 30 }));
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

/** Advances clock and timers by `ms`, in steps as short as the interval of the buffer's checks. */
function pass(clock: ManualClock, ms: number): void {
  for (let at = 0; at < ms; at += 5) {
    clock.advance(5);
    vi.advanceTimersByTime(5);
  }
}

function bufferOf(options: { delayMs?: number; maxBytes?: number; onPacket?: (packet: Packet) => void } = {}) {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const seen: (Packet | string)[] = [];
  const arrivals: number[] = [];
  const faults: unknown[] = [];
  const buffer = new DelayBuffer({
    ...{ delayMs: 1000, clock, logger, ...options },
    onPacket: (packet, arrivedAt) => {
      options.onPacket?.(packet);
      seen.push(packet);
      arrivals.push(arrivedAt);
    },
    onReleased: () => void seen.push('released'),
    onFault: (error) => faults.push(error),
  });
  return { buffer, clock, logger, seen, arrivals, faults };
}

describe('a delay buffer', () => {
  test('releases each packet after the delay with its arrival time, and signals the end of each turn', () => {
    const { buffer, clock, seen, arrivals } = bufferOf();
    const [first, second] = frames(2) as [Packet, Packet];
    const from = clock.now();
    buffer.push(first);
    pass(clock, 500);
    buffer.push(second);
    pass(clock, 495);
    expect(seen).toEqual([]);
    pass(clock, 10);
    expect(seen).toEqual([first, 'released']);
    pass(clock, 490);
    expect(seen).toEqual([first, 'released']);
    pass(clock, 10);
    expect(seen).toEqual([first, 'released', second, 'released']);
    expect(arrivals).toEqual([from, from + 500]);
    expect(buffer.bytes).toBe(0);
  });

  test('keeps changes in order among packets', () => {
    const { buffer, clock, seen } = bufferOf();
    const [first, second] = frames(2) as [Packet, Packet];
    buffer.push(first);
    buffer.defer(() => seen.push('change'));
    buffer.push(second);
    pass(clock, 1005);
    expect(seen).toEqual([first, 'change', second, 'released']);
  });

  test('stays in order over thousands of packets', () => {
    const { buffer, clock, seen } = bufferOf({ delayMs: 100 });
    const packets = frames(5000);
    for (const packet of packets) {
      buffer.push(packet);
      pass(clock, 5);
    }
    pass(clock, 110);
    expect(seen.filter((entry) => entry !== 'released')).toEqual(packets);
  });

  test('when full drops new packets, and video up to a keyframe that has room', () => {
    const packets = frames(90);
    const audio = audioPackets(AUDIO, 0.03)[0] as Packet;
    const size = packets.slice(0, 40).reduce((sum, { data }) => sum + data.length, 0);
    const { buffer, clock, logger, seen } = bufferOf({ maxBytes: size });
    for (const packet of packets.slice(0, 45)) buffer.push(packet);
    expect([buffer.dropped, buffer.bytes]).toEqual([5, size]);
    pass(clock, 1005);
    // The buffer has room again, but these packets cannot be decoded without the dropped frame.
    for (const packet of packets.slice(45, 60)) buffer.push(packet);
    buffer.push(audio);
    for (const packet of packets.slice(60, 62)) buffer.push(packet);
    pass(clock, 1005);
    expect(buffer.dropped).toBe(20);
    expect(seen.filter((entry) => entry !== 'released')).toEqual([...packets.slice(0, 40), audio, ...packets.slice(60, 62)]);
    expect(logger.matching('the delay buffer of the stream is full: packets are dropped (DelayBufferTimeMs)')).toHaveLength(1);
  });

  test('closes when a callback throws', () => {
    const fault = new Error('no');
    const { buffer, clock, seen, faults } = bufferOf({
      onPacket: () => {
        throw fault;
      },
    });
    for (const packet of frames(2)) buffer.push(packet);
    pass(clock, 2000);
    expect([seen, faults, buffer.bytes]).toEqual([[], [fault], 0]);
  });

  test('leaves no timer running, even when it is closed twice or never used', () => {
    const { buffer, seen } = bufferOf();
    for (const packet of frames(2)) buffer.push(packet);
    buffer.close();
    buffer.close();
    for (const packet of frames(2)) buffer.push(packet);
    expect([vi.getTimerCount(), seen, buffer.bytes]).toEqual([0, [], 0]);
  });
});

describe('the rest of a delay buffer', () => {
  /** Number of packets in each turn so far. */
  const turnsIn = (seen: readonly (Packet | string)[]): number[] => {
    const turns = [0];
    for (const each of seen) {
      if (each === 'released') turns.push(0);
      else turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1;
    }
    return turns.slice(0, -1);
  };
  const filled = (count: number, options: Parameters<typeof bufferOf>[0] = {}) => {
    const made = bufferOf({ delayMs: 60_000, ...options });
    const packets = frames(count);
    for (const packet of packets) made.buffer.push(packet);
    return { ...made, packets };
  };

  test('is released in turns and in order, then reported as done', () => {
    const { buffer, seen, packets } = filled(700);
    let isOut = false;
    const settles = buffer.settle(() => {
      isOut = true;
    });
    expect([settles, seen]).toEqual([true, []]);
    vi.advanceTimersByTime(1);
    expect([turnsIn(seen), isOut]).toEqual([[256], false]);
    vi.advanceTimersByTime(10);
    expect([turnsIn(seen), isOut, buffer.bytes]).toEqual([[256, 256, 188], true, 0]);
    expect(seen.filter((each) => each !== 'released')).toEqual(packets);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('has turns by its bytes, too', () => {
    const { buffer, seen } = bufferOf({ delayMs: 60_000 });
    const large = frames(1).map((packet) => ({ ...packet, data: new Uint8Array(200 * 1024) }));
    for (let n = 0; n < 5; n += 1) for (const packet of large) buffer.push(packet);
    expect(buffer.settle(() => undefined)).toBe(true);
    vi.advanceTimersByTime(100);
    expect(turnsIn(seen)).toEqual([2, 2, 1]);
  });

  test('is released in a single turn when it is small', () => {
    const { buffer } = filled(256);
    expect(buffer.settle(() => expect.unreachable())).toBe(false);
    buffer.close();
    expect(buffer.settle(() => expect.unreachable())).toBe(false);
  });

  test('is released at once by a flush, and dropped by a close', () => {
    for (const end of ['flush', 'close'] as const) {
      const { buffer, seen } = filled(700);
      const done = vi.fn();
      buffer.settle(done);
      vi.advanceTimersByTime(1);
      buffer[end]();
      buffer.close();
      vi.advanceTimersByTime(1000);
      expect([turnsIn(seen), done.mock.calls.length]).toEqual([end === 'flush' ? [256, 444] : [256], 0]);
    }
  });

  test('closes when a callback throws', () => {
    let count = 0;
    const { buffer, seen, faults } = filled(700, {
      onPacket: () => {
        count += 1;
        if (count === 300) throw new Error('broken');
      },
    });
    const done = vi.fn();
    buffer.settle(done);
    vi.advanceTimersByTime(1000);
    expect([turnsIn(seen), faults, done.mock.calls.length]).toEqual([[256], [new Error('broken')], 0]);
  });
});

describe('an application with DelayBufferTimeMs', () => {
  function start(delayBufferTimeMs: number) {
    const clock = new ManualClock();
    const seen: string[] = [];
    let served: PublishableStream | null = null;
    const publisher: Publisher = {
      kind: PublisherKind.LLHLS,
      defaultPlaylist: () => null,
      attach: (stream) => {
        served = stream;
        return {
          onTracks: (tracks) => seen.push(`tracks ${tracks.length}`),
          onPacket: ({ track }) => seen.push(track.type),
          close: ({ code }) => seen.push(code),
        };
      },
    };
    const { typed } = readApplication({
      name: 'app',
      type: 'live',
      providers: { rtmp: {} },
      publishers: { delayBufferTimeMs, llhls: {} },
      outputProfiles: {
        outputProfile: [
          {
            name: 'p',
            outputStreamName: '${OriginStreamName}',
            encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] },
          },
        ],
      },
    });
    let lastId = 0;
    const application = new Application('v', { name: 'app', config: typed as ApplicationConfig, echo: {} }, new TrafficMeter(clock, null), {
      ...{ clock, logger: new RecordingLogger(), queues: new QueueRegistry(clock), transcoder: null },
      publishers: new Map([[publisher.kind, publisher]]),
      nextStreamId: () => (lastId += 1),
    });
    const ingest = application.openIngest({
      ...{ streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1' },
      onClose: () => undefined,
    });
    return { application, clock, ingest, seen, served: () => served as PublishableStream | null };
  }

  type Started = ReturnType<typeof start>;
  const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  test('needs packets at any time, because delayed packets complete parts', () => {
    const outputs = { neededAt: 5 } as unknown as Outputs;
    const delayed = new DelayedOutputs(outputs, {
      delayMs: 1000,
      clock: new ManualClock(),
      logger: new RecordingLogger(),
      onFault: () => undefined,
    });
    expect(delayed.neededAt).toBe(Number.NEGATIVE_INFINITY);
  });

  /** A keyframe and a frame of audio. */
  async function send({ ingest }: Started): Promise<void> {
    ingest.setTracks([videoTrack(), audioTrack()]);
    ingest.push(videoPacket(0));
    ingest.push(audioPacket(0));
    await immediate();
  }

  test('delays packets and events by that time, and keeps the wall clock of their arrival', async () => {
    const [delayed, prompt] = [start(2000), start(0)];
    for (const each of [delayed, prompt]) await send(each);
    expect(prompt.seen).toEqual(['tracks 3', 'video', 'audio']);
    pass(delayed.clock, 1990);
    expect(delayed.seen).toEqual([]);
    pass(delayed.clock, 20);
    await immediate();
    expect(delayed.seen).toEqual(['tracks 3', 'video', 'audio']);
    expect(delayed.served()?.startedAt).toBe(prompt.served()?.startedAt);
  });

  test.each<[CloseReason['code'], string[]]>([
    ['peer-left', ['tracks 3', 'video', 'audio', 'peer-left']],
    ['shutdown', ['tracks 3', 'video', 'audio', 'shutdown']],
  ])('shows the rest at the end: %s', async (code, expected) => {
    const started = start(2000);
    await send(started);
    started.application.stream('s')?.terminate({ code, detail: '' });
    expect(started.seen).toEqual(expected);
    expect(vi.getTimerCount()).toBe(0);
  });

  /** Frames of audio for a minute. */
  async function sendMore(started: Started): Promise<void> {
    await send(started);
    for (let n = 1; n <= 3000; n += 1) started.ingest.push(audioPacket(n));
    await immediate();
  }

  test('releases many held packets over some turns after its source has left, and exists until then', async () => {
    const started = start(60_000);
    await sendMore(started);
    started.ingest.close({ code: 'peer-left', detail: '' });
    expect([started.application.stream('s')?.source.present, started.seen]).toEqual([false, []]);
    vi.advanceTimersByTime(1);
    expect(started.seen.length).toBeGreaterThan(200);
    expect(started.seen.length).toBeLessThan(300);
    pass(started.clock, 1000);
    expect([started.seen.at(-1), started.seen.filter((each) => each === 'audio').length]).toEqual(['peer-left', 3001]);
    expect([started.application.stream('s'), vi.getTimerCount()]).toEqual([undefined, 0]);
  });

  test('releases all of it at once before the next source, which starts another stream', async () => {
    const started = start(60_000);
    await sendMore(started);
    started.ingest.close({ code: 'peer-left', detail: '' });
    pass(started.clock, 5);
    const first = started.application.stream('s');
    const again = started.application.openIngest({
      ...{ streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:2' },
      onClose: () => undefined,
    });
    expect([started.seen.at(-1), started.seen.filter((each) => each === 'audio').length]).toEqual(['replaced', 3001]);
    expect(started.application.stream('s')).not.toBe(first);
    again.close({ code: 'peer-left', detail: '' });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('drops all held packets of a source that was denied', async () => {
    const started = start(60_000);
    await sendMore(started);
    started.ingest.close({ code: 'denied', detail: '' });
    expect([started.application.stream('s'), started.seen]).toEqual([undefined, []]);
  });

  test.each<CloseReason['code']>(['deleted', 'denied', 'no-room'])('drops the held packets of a stream that was %s', async (code) => {
    const started = start(2000);
    await send(started);
    pass(started.clock, 2005);
    await immediate();
    started.ingest.push(videoPacket(1));
    await immediate();
    started.application.stream('s')?.terminate({ code, detail: '' });
    expect(started.seen).toEqual(['tracks 3', 'video', 'audio', code]);
  });
});
