import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { SessionRegistry } from './session-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

let clock: ManualClock;
let meter: TrafficMeter;
let registry: SessionRegistry;
let ended: string[];

beforeEach(() => {
  clock = new ManualClock();
  meter = new TrafficMeter(clock, null);
  registry = new SessionRegistry(clock, meter);
  ended = [];
});

const open = (id: string, kind: 'webrtc' | 'llhls' = 'webrtc') =>
  registry.open({ kind, id, onTerminate: (reason) => ended.push(`${id}: ${reason}`) });

test('sessions are listed in order and counted with the stream', () => {
  const first = open('a');
  open('b', 'llhls');
  expect(registry.all.map(({ id }) => id)).toEqual(['a', 'b']);
  expect([meter.totalSessions, meter.sessions.webrtc, meter.sessions.llhls]).toEqual([2, 1, 1]);
  first.close();
  first.close();
  expect([registry.all.map(({ id }) => id), meter.totalSessions, meter.maxTotalSessions]).toEqual([['b'], 1, 2]);
  expect(registry.find('a')).toBeUndefined();
});

test('a terminated session is removed before its viewer is notified', () => {
  const session = registry.open({
    kind: 'webrtc',
    id: 'a',
    onTerminate: (reason) => {
      ended.push(`${reason} ${registry.size} ${meter.totalSessions}`);
      session.close();
    },
  });
  expect(registry.terminate('b', 'enough')).toBe(false);
  expect(registry.terminate('a', 'enough')).toBe(true);
  expect(registry.terminate('a', 'enough')).toBe(false);
  expect(ended).toEqual(['enough 0 0']);
  expect(meter.totalSessions).toBe(0);
});

test('a session with a used id replaces the first one, and the count stays right', () => {
  const first = open('a');
  const second = open('a');
  first.close();
  expect([registry.find('a'), meter.totalSessions]).toEqual([second, 1]);
  second.close();
  expect([registry.size, meter.totalSessions]).toEqual([0, 0]);
});

test('each session has its own counters and its start time', () => {
  const session = open('a');
  const began = clock.now();
  clock.advance(500);
  session.countBytes(1000);
  clock.advance(500);
  session.countBytes(1000);
  expect(session.createdAt).toBe(began);
  expect(session.out).toMatchObject({ total: 2000, last: 2000, avg: 16_000, max: 16_000, lastAt: began + 1000 });
  clock.advance(5000);
  expect(session.out).toMatchObject({ total: 2000, last: 0, avg: 0, max: 16_000 });
  expect(meter.out.total).toBe(0);
});

test('notifies its owner of each new session', () => {
  let opened = 0;
  const watched = new SessionRegistry(clock, meter, () => {
    opened += 1;
  });
  for (const id of ['a', 'b', 'a']) watched.open({ kind: 'webrtc', id, onTerminate: () => undefined });
  watched.terminate('b', 'enough');
  expect(opened).toBe(3);
});
