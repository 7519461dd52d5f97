import { expect, test } from 'vitest';
import { TsbpdClock } from './tsbpd-clock.ts';

const LATENCY = 120_000;
const RTT = 40_000;
/** Time on our clock at which the sender's clock showed 0, plus the time of one way. */
const BASE = 5_000_000;

/** Answers to acknowledgements of ten seconds, from a sender whose clock is `slow` µs behind where it was; each took `rtt`. */
function measure(clock: TsbpdClock, slow: number, rtt = RTT): void {
  for (let at = 0; at < 10_000_000; at += 10_000) clock.measureDrift(BASE + at + slow + (rtt - RTT) / 2, at, rtt);
}

const dueAt = (clock: TsbpdClock, timestamp: number): number => clock.dueTime(timestamp, BASE + timestamp);

test('a packet is due one latency after it was sent', () => {
  expect(dueAt(new TsbpdClock(BASE + 7000, 7000, LATENCY), 1_000_000)).toBe(BASE + 1_000_000 + LATENCY);
});

test.each([8000, -8000])('the time of a sender that runs away by %i µs is followed', (slow) => {
  const clock = new TsbpdClock(BASE, 0, LATENCY);
  measure(clock, 0);
  measure(clock, slow);
  expect(dueAt(clock, 1_000_000)).toBe(BASE + 1_000_000 + LATENCY + slow);
});

test('delays within the latency, and a longer path, do not move the clock', () => {
  const clock = new TsbpdClock(BASE, 0, LATENCY);
  measure(clock, 0);
  measure(clock, 4000);
  measure(clock, 0, RTT + 60_000);
  expect(dueAt(clock, 1_000_000)).toBe(BASE + 1_000_000 + LATENCY);
});
