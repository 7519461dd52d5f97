import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { audioTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { NO_NOTICES } from '../../core/notices/notice.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { KnownSecrets } from '../../util/known-secrets.ts';
import type { Destination, DestinationOptions } from './destination.ts';
import { PushFailure } from './push-failure.ts';
import { type PushRequest, secretsOfPush } from './push-request.ts';
import { PushTask, retryDelay } from './push-task.ts';
import { MAX_SEND_QUEUE_PACKETS } from './send-queue.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const TIMEOUTS = { connection: 5000, send: 2000 };

/** A receiver in the hand of the test. */
class Receiver implements Destination {
  sentBytes = 0;
  dropped = 0;
  room = true;
  readonly packets: Packet[] = [];
  closed = false;
  broken = false;
  readonly options: DestinationOptions;

  constructor(options: DestinationOptions) {
    this.options = options;
  }

  write(packet: Packet): boolean {
    if (this.broken) throw new TypeError('a bug');
    this.packets.push(packet);
    this.sentBytes += packet.data.length;
    return this.room;
  }

  flush(): void {}

  async close(): Promise<void> {
    this.closed = true;
  }
}

let clock: ManualClock;
let queues: QueueRegistry;
let stream: FakeStream;
let logger: RecordingLogger;
let receivers: Receiver[];
let refusal: Error | null;
let over: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  clock = new ManualClock();
  queues = new QueueRegistry(clock);
  stream = new FakeStream();
  logger = new RecordingLogger();
  receivers = [];
  refusal = null;
  over = 0;
});
afterEach(() => {
  vi.useRealTimers();
});

function task(request: Partial<PushRequest> = {}): PushTask {
  const all = {
    id: 'p',
    streamName: 'stream',
    trackIds: [],
    variantNames: [],
    protocol: 'rtmp',
    url: 'rtmp://h/app',
    streamKey: 'k',
    isConfig: false,
  } as const;
  const open = (options: DestinationOptions): Destination => {
    if (refusal !== null) throw refusal;
    const receiver = new Receiver(options);
    receivers.push(receiver);
    return receiver;
  };
  const secrets = new KnownSecrets();
  secrets.learn(secretsOfPush({ ...all, ...request }));
  const onConnectionOver = (): void => {
    over += 1;
  };
  return new PushTask(
    { key: 'key', vhost: 'default', app: 'app', request: { ...all, ...request }, createdAt: 0 },
    { clock, logger, queues, notices: NO_NOTICES, secrets, open, random: () => 0.5, onConnectionOver },
  );
}

function running(tracks: readonly Track[] = [VIDEO, AUDIO]): { push: PushTask; receiver: Receiver } {
  const push = task();
  push.begin(stream, TIMEOUTS);
  push.setTracks(tracks);
  const receiver = receivers[0]!;
  receiver.options.events.onOpen();
  return { push, receiver };
}

function frame(index: number, keyframe = false, track: Track = VIDEO): Packet {
  return { track, pts: index * 3000, dts: index * 3000, duration: 3000, keyframe, data: new Uint8Array(100) };
}

describe('a push task', () => {
  test('goes from ready over connecting to pushing, and back to ready with its stream', () => {
    const push = task();
    expect(push.state).toBe('ready');
    push.begin(stream, TIMEOUTS);
    expect(push.state).toBe('ready');
    push.setTracks([VIDEO, AUDIO]);
    expect(push.state).toBe('connecting');
    expect(stream.keyframeRequests).toEqual([VIDEO.id]);
    receivers[0]?.options.events.onOpen();
    expect(push.state).toBe('pushing');
    expect(stream.viewers).toBe(1);
    expect(push.startTime).toBe(clock.now());
    clock.advance(4000);
    push.streamEnded();
    expect(push).toMatchObject({
      state: 'ready',
      reason: null,
      sentTime: 4000,
      finishTime: clock.now(),
      totals: { sequence: 1, time: 4000 },
    });
    expect(receivers[0]?.closed).toBe(true);
    expect(stream.viewers).toBe(0);
    expect(queues.statuses()).toEqual([]);
    expect(over).toBe(1);
  });

  test('sends and counts packets that arrived while it connected, from the first keyframe on', () => {
    const push = task();
    push.begin(stream, TIMEOUTS);
    push.setTracks([VIDEO, AUDIO]);
    for (const packet of [frame(0), frame(1, true), frame(2)]) push.push(packet);
    push.flush();
    const [receiver] = receivers;
    expect(receiver?.packets).toEqual([]);
    receiver?.options.events.onOpen();
    push.push(frame(3));
    push.push({ ...frame(3), track: videoTrack({ id: 7 }) });
    push.flush();
    expect(receiver?.packets.map(({ dts }) => dts)).toEqual([3000, 6000, 9000]);
    expect(push.sentBytes).toBe(300);
    expect(stream.bytes).toBe(300);
    expect(push.totals.bytes).toBe(300);
  });

  test('waits for a slow receiver, then drops up to the next keyframe, and counts the drops', () => {
    const { push, receiver } = running();
    push.push(frame(0, true));
    receiver.room = false;
    push.flush();
    for (let index = 1; index <= MAX_SEND_QUEUE_PACKETS + 1; index += 1) push.push(frame(index));
    push.push(frame(2000, true));
    push.flush();
    expect(receiver.packets).toHaveLength(1);
    expect(queues.statuses()).toMatchObject([
      { urn: 'mngq:v=default#app:s=/stream:p=pub:r=streamworker_[push]_p', size: 1, drop: MAX_SEND_QUEUE_PACKETS + 1 },
    ]);
    receiver.room = true;
    receiver.options.events.onWritable();
    expect(receiver.packets.map(({ dts }) => dts)).toEqual([0, 6_000_000]);
    push.streamEnded();
    expect(logger.lines.at(-1)?.fields).toMatchObject({ dropped: MAX_SEND_QUEUE_PACKETS + 1 });
  });

  test('sends its queued packets when the stream ends', () => {
    const { push, receiver } = running();
    receiver.room = false;
    push.push(frame(0, true));
    push.flush();
    push.push(frame(1));
    push.streamEnded();
    expect(receiver.packets).toHaveLength(2);
    expect(push.totals.bytes).toBe(200);
    expect(stream.bytes).toBe(200);
  });

  test('hides a stream key that the receiver echoes', () => {
    const requests: Partial<PushRequest>[] = [
      { url: 'rtmp://h/app', streamKey: 'abcd-efgh' },
      { url: 'rtmp://h/app/abcd-efgh-ijkl', streamKey: '' },
      { protocol: 'srt', url: 'srt://h:1?passphrase=abcd-efgh-ijkl', streamKey: '' },
    ];
    for (const request of requests) {
      const push = task(request);
      push.begin(stream, TIMEOUTS);
      push.setTracks([VIDEO, AUDIO]);
      receivers.at(-1)?.options.events.onFailed(new PushFailure('refused', 'no such key: abcd-efgh-ijkl'));
      expect(push.reason).toMatch(/^no such key: \*\*\*(-ijkl)?$/);
      expect(JSON.stringify(logger.lines)).not.toContain('abcd-efgh');
      push.streamEnded();
    }
  });

  test('hides a short stream key in the messages of its own receiver', () => {
    const push = task({ streamKey: 'abcd' });
    push.begin(stream, TIMEOUTS);
    push.setTracks([VIDEO, AUDIO]);
    receivers.at(-1)?.options.events.onFailed(new PushFailure('refused', "no such key: 'abcd' of abcdef"));
    expect(push.reason).toBe("no such key: '***' of abcdef");
    expect(JSON.stringify(logger.lines)).not.toContain("'abcd'");
  });

  test('reconnects after a loss with growing delays, and restarts the delays after a stable connection', () => {
    const { push, receiver } = running();
    receiver.options.events.onFailed(new PushFailure('lost', 'connection lost'));
    expect(push).toMatchObject({ state: 'error', reason: 'connection lost', totals: { sequence: 1 } });
    for (const delay of [1000, 2000, 4000, 8000, 15_000, 15_000]) {
      const before = receivers.length;
      vi.advanceTimersByTime(delay - 1);
      expect(receivers).toHaveLength(before);
      vi.advanceTimersByTime(1);
      expect(receivers).toHaveLength(before + 1);
      expect(push).toMatchObject({ state: 'connecting', reason: null });
      receivers.at(-1)?.options.events.onFailed(new PushFailure('unreachable', 'cannot connect'));
    }
    // Attempts that sent nothing are no connections.
    expect(push.totals.sequence).toBe(1);
    vi.advanceTimersByTime(15_000);
    receivers.at(-1)?.options.events.onOpen();
    clock.advance(10_000);
    receivers.at(-1)?.options.events.onFailed(new PushFailure('lost', 'again'));
    const before = receivers.length;
    vi.advanceTimersByTime(1000);
    expect(receivers).toHaveLength(before + 1);
  });

  test('does not reconnect after its stream ended or after it was stopped', async () => {
    const { push, receiver } = running();
    receiver.options.events.onFailed(new PushFailure('lost', 'connection lost'));
    push.streamEnded();
    vi.advanceTimersByTime(60_000);
    expect(receivers).toHaveLength(1);
    push.begin(stream, TIMEOUTS);
    push.setTracks([VIDEO]);
    receivers[1]?.options.events.onFailed(new PushFailure('lost', 'connection lost'));
    const stopped = push.stop();
    expect(push.state).toBe('stopping');
    await Promise.all([stopped, push.stop()]);
    expect(push.state).toBe('stopped');
    vi.advanceTimersByTime(60_000);
    push.begin(stream, TIMEOUTS);
    push.setTracks([VIDEO]);
    expect(receivers).toHaveLength(2);
  });

  test('gives the reason when no track fits, and connects when one does', () => {
    const push = task({ variantNames: ['low'] });
    push.begin(stream, TIMEOUTS);
    push.setTracks([VIDEO]);
    expect(push).toMatchObject({ state: 'error', reason: expect.stringMatching(/no track low/) });
    vi.advanceTimersByTime(60_000);
    expect(receivers).toEqual([]);
    push.setTracks([VIDEO, videoTrack({ id: 5, variantName: 'low' })]);
    expect(push.state).toBe('connecting');
    expect(receivers[0]?.options.tracks.map(({ id }) => id)).toEqual([5]);
  });

  test('does not retry an unsuitable URL', () => {
    refusal = new PushFailure('unsuitable', 'the URL is no good');
    const push = task();
    push.begin(stream, TIMEOUTS);
    push.setTracks([VIDEO]);
    expect(push).toMatchObject({ state: 'error', reason: 'the URL is no good' });
    expect(queues.statuses()).toEqual([]);
    refusal = null;
    vi.advanceTimersByTime(60_000);
    expect(receivers).toEqual([]);
  });

  test('reconnects when the selected tracks change, and stays connected when only parameters change', () => {
    const { push } = running();
    push.setTracks([videoTrack({ width: 640 }), AUDIO]);
    expect(receivers).toHaveLength(1);
    push.setTracks([videoTrack({ codec: 'H265' }), AUDIO]);
    expect(receivers).toHaveLength(2);
    expect(receivers[0]?.closed).toBe(true);
    expect(push.state).toBe('connecting');
    expect(stream.viewers).toBe(0);
  });

  test('an internal fault in one connection is logged, and ends only that connection', () => {
    const { push, receiver } = running();
    receiver.broken = true;
    push.push(frame(0, true));
    push.flush();
    expect(push).toMatchObject({ state: 'error', reason: 'internal error' });
    expect(logger.lines.find(({ level }) => level === 'error')?.fields['err']).toBeInstanceOf(TypeError);
    expect(receiver.closed).toBe(true);
  });

  test('a failure while the last packets are sent does not reconnect', () => {
    const { push, receiver } = running();
    push.push(frame(0, true));
    receiver.broken = true;
    push.setTracks([VIDEO]);
    expect(receivers).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
    vi.runOnlyPendingTimers();
    expect(receivers).toHaveLength(2);
    expect(push.state).toBe('connecting');
    push.streamEnded();
    expect([push.state, vi.getTimerCount()]).toEqual(['ready', 0]);
  });

  test('an internal fault while connecting is logged, and the receiver is tried again', () => {
    const { push, receiver } = running();
    refusal = new TypeError('a bug');
    receiver.options.events.onFailed(new PushFailure('lost', 'gone'));
    vi.runOnlyPendingTimers();
    expect(push).toMatchObject({ state: 'error', reason: 'internal error' });
    refusal = null;
    vi.runOnlyPendingTimers();
    expect(receivers).toHaveLength(2);
    expect(push.state).toBe('connecting');
  });

  test('a source that throws on a keyframe request ends only the connection', () => {
    const { push, receiver } = running();
    const asked = vi.spyOn(stream, 'requestKeyframe').mockImplementation(() => {
      throw new TypeError('a bug');
    });
    receiver.options.events.onFailed(new PushFailure('lost', 'gone'));
    vi.runOnlyPendingTimers();
    expect(push).toMatchObject({ state: 'error', reason: 'internal error' });
    expect(receivers[1]?.closed).toBe(true);
    asked.mockRestore();
    vi.runOnlyPendingTimers();
    expect(receivers).toHaveLength(3);
    expect(push.state).toBe('connecting');
  });
});

test('attempts become rarer up to fifteen seconds, never at the same moment', () => {
  expect([1, 2, 3, 4, 5, 6, 1000].map((failures) => retryDelay(failures, 0.5))).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
  expect([0, 1].map((random) => retryDelay(1, random))).toEqual([800, 1200]);
});
