import { expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { PublisherKind } from '../core/kinds.ts';
import { TrafficMeter } from '../core/traffic-meter.ts';
import { FigureHistory, SAMPLE_MS } from './figure-history.ts';

test('samples are means since the previous sample, kept for an hour', () => {
  const clock = new ManualClock();
  const meter = new TrafficMeter(clock, null);
  let cpu = 5_000_000;
  let active = 100;
  const history = new FigureHistory(clock, meter, () => ({ cpu, active, memory: 7 }));
  // No time has passed yet.
  history.take();
  expect(history.samples).toEqual([]);
  meter.countBytesIn(20_000);
  meter.countBytes(100_000);
  meter.connect(PublisherKind.WEBRTC, 3);
  cpu += 2_500_000;
  active += 4000;
  clock.advance(SAMPLE_MS);
  history.take();
  clock.advance(SAMPLE_MS);
  history.take();
  const at = clock.now();
  expect(history.samples).toEqual([
    { at: at - SAMPLE_MS, throughputIn: 2000, throughputOut: 10_000, connections: { webrtc: 3 }, cpu: 0.25, eventLoop: 0.4, memory: 7 },
    { at, throughputIn: 0, throughputOut: 0, connections: { webrtc: 3 }, cpu: 0, eventLoop: 0, memory: 7 },
  ]);
  for (let n = 0; n < 500; n += 1) {
    clock.advance(SAMPLE_MS);
    history.take();
  }
  expect([history.samples.length, history.samples[0]?.at]).toEqual([360, clock.now() - 359 * SAMPLE_MS]);
});

test('it samples the process periodically until it is stopped', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const clock = new ManualClock();
    const history = new FigureHistory(clock, new TrafficMeter(clock, null));
    history.start();
    history.start();
    const turn = (): number => {
      clock.advance(SAMPLE_MS);
      vi.advanceTimersByTime(SAMPLE_MS);
      return history.samples.length;
    };
    expect([turn(), turn()]).toEqual([1, 2]);
    expect(history.samples[1]?.memory).toBeGreaterThan(10e6);
    expect(history.samples[1]?.eventLoop).toBeGreaterThanOrEqual(0);
    expect(history.samples[1]?.eventLoop).toBeLessThanOrEqual(1);
    history.stop();
    history.stop();
    expect(turn()).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});
