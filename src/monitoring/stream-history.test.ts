import { describe, expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { PublisherKind } from '../core/kinds.ts';
import { TrafficMeter } from '../core/traffic-meter.ts';
import type { Track } from '../media/track.ts';
import { SAMPLE_MS } from './figure-history.ts';
import { MAX_PASTS, type SampledStream, StreamHistory } from './stream-history.ts';

interface Live extends SampledStream {
  readonly meter: TrafficMeter;
}

function setUp() {
  const clock = new ManualClock();
  const streams: SampledStream[] = [];
  const server = { virtualHosts: [{ name: 'default', applications: new Map([['app', { name: 'app', streams }]]) }] };
  const history = new StreamHistory(clock, server);
  const publish = (name: string, tracks: readonly { readonly id: number; readonly type: string }[] = []): Live => {
    const figures = () => ({ framerateLatest: 29.97, keyFrameIntervalLatest: 60 });
    const stream: Live = { name, meter: new TrafficMeter(clock, null), tracks: tracks as readonly Track[], figures };
    streams.push(stream);
    return stream;
  };
  const take = (): void => {
    clock.advance(SAMPLE_MS);
    history.take();
  };
  return { clock, streams, history, publish, take, samples: (name: string) => history.samples('default', 'app', name) };
}

describe('the past of streams', () => {
  test('samples are means since the previous sample, with viewers and the statistics of the first video track', () => {
    const { clock, publish, take, samples, history } = setUp();
    const { meter } = publish('live', [
      { id: 3, type: 'audio' },
      { id: 4, type: 'video' },
    ]);
    const sound = publish('sound', [{ id: 1, type: 'audio' }]);
    expect(samples('live')).toEqual([]);
    meter.countBytesIn(1_000_000);
    take();
    meter.countBytesIn(20_000);
    meter.countBytes(100_000);
    for (const kind of [PublisherKind.WEBRTC, PublisherKind.LLHLS, PublisherKind.SRT, PublisherKind.PUSH]) meter.connect(kind, 2);
    sound.meter.countBytesIn(10_000);
    take();
    const video = { framerate: 29.97, keyFrameInterval: 60 };
    const at = clock.now();
    expect(samples('live')).toEqual([
      { at: at - SAMPLE_MS, throughputIn: 100_000, throughputOut: 0, viewers: 0, ...video },
      { at, throughputIn: 2000, throughputOut: 10_000, viewers: 6, ...video },
    ]);
    expect(samples('sound').at(-1)).toEqual({ at, throughputIn: 1000, throughputOut: 0, viewers: 0 });
    history.take();
    expect(samples('live')).toHaveLength(2);
  });

  test('half an hour is kept', () => {
    const { clock, publish, take, samples } = setUp();
    publish('live');
    for (let n = 0; n < 400; n += 1) take();
    const past = samples('live');
    expect([past.length, past[0]?.at, past.at(-1)?.at]).toEqual([180, clock.now() - 179 * SAMPLE_MS, clock.now()]);
  });

  test('a stream that returns has a gap and restarted counters, and old samples are dropped', () => {
    const { publish, take, samples, streams, history } = setUp();
    const { meter } = publish('live');
    meter.countBytesIn(50_000);
    take();
    streams.length = 0;
    for (let n = 0; n < 3; n += 1) take();
    publish('live').meter.countBytesIn(20_000);
    take();
    expect(samples('live').map(({ throughputIn }) => throughputIn)).toEqual([5000, 2000]);
    const [before, after] = samples('live').map(({ at }) => at);
    expect((after ?? 0) - (before ?? 0)).toBe(4 * SAMPLE_MS);
    streams.length = 0;
    for (let n = 0; n < 179; n += 1) take();
    expect(samples('live')).toHaveLength(1);
    take();
    expect([samples('live'), history.size]).toEqual([[], 0]);
  });

  test('at most a thousand streams have a history', () => {
    const { publish, take, samples, streams, history } = setUp();
    for (let n = 0; n < MAX_PASTS + 5; n += 1) publish(`s${n}`);
    take();
    expect([history.size, samples('s0').length, samples(`s${MAX_PASTS}`).length]).toEqual([MAX_PASTS, 1, 0]);
    streams.length = 0;
    for (let n = 0; n < 180; n += 1) take();
    expect(history.size).toBe(0);
  });

  test('it samples periodically until it is stopped', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { clock, publish, samples, history } = setUp();
      publish('live');
      history.start();
      history.start();
      const turn = (): number => {
        clock.advance(SAMPLE_MS);
        vi.advanceTimersByTime(SAMPLE_MS);
        return samples('live').length;
      };
      expect([turn(), turn()]).toEqual([1, 2]);
      history.stop();
      history.stop();
      expect(turn()).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });
});
