import { expect, test } from 'vitest';
import { type TransportCounters, TransportReport } from './transport-report.ts';

const NOTHING: TransportCounters = {
  viewers: 3,
  datagramsSent: 0,
  sendCalls: 0,
  sendErrors: 0,
  congested: 0,
  droppedFrames: 0,
  resent: 0,
  lostTooOld: 0,
  ignoredNacks: 0,
  datagramsReceived: 0,
  strangers: 0,
  nacks: 0,
  droppedEvents: 0,
  droppedStrangers: 0,
  droppedInjected: 0,
  malformed: 0,
  turnedAway: 0,
};

test('growth in a minute is reported once, and faults as a warning', () => {
  const report = new TransportReport();
  const counters = { ...NOTHING };
  let reads = 0;
  const next = (now: number): unknown =>
    report.next(now, () => {
      reads += 1;
      return { ...counters };
    });
  expect(next(0)).toBeNull();
  counters.datagramsSent = 10;
  for (let now = 250; now < 60_000; now += 250) expect(next(now)).toBeNull();
  expect(reads).toBe(1);
  expect(next(60_000)).toEqual({ level: 'debug', fields: { datagramsSent: 10 }, message: 'WebRTC media in the last minute' });
  counters.viewers = 9;
  expect(next(120_000)).toBeNull();
  counters.datagramsSent = 15;
  counters.droppedEvents = 2;
  counters.turnedAway = 7;
  expect(next(180_000)).toEqual({
    level: 'warn',
    fields: { datagramsSent: 5, droppedEvents: 2, turnedAway: 7 },
    message: 'WebRTC falls behind or is flooded: 2 droppedEvents, 7 turnedAway in the last minute',
  });
  expect(next(240_000)).toBeNull();
});
