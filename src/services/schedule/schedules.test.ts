import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { Application } from '../../core/application.ts';
import type { ApplicationSchedules } from './application-schedules.ts';
import { Schedules } from './schedules.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('ticks ten times a second while a channel is defined, and once a second otherwise', async () => {
  const application = { vhost: 'default', name: 'app' } as Application;
  const tick = vi.fn();
  const channels = { application, hasDefinitions: false, tick, close: () => Promise.resolve(), pastTroubles: 0 };
  let define = (): void => {};
  const schedules = new Schedules({
    open: (_, onDefined) => {
      define = onDefined;
      return channels as unknown as ApplicationSchedules;
    },
    application: () => application,
    logger: new RecordingLogger(),
  });
  schedules.follow(application);
  const ticksOf = (ms: number): number => {
    tick.mockClear();
    vi.advanceTimersByTime(ms);
    return tick.mock.calls.length;
  };
  expect(ticksOf(3000)).toBe(3);
  channels.hasDefinitions = true;
  define();
  expect([ticksOf(100), ticksOf(3000)]).toEqual([1, 30]);
  channels.hasDefinitions = false;
  ticksOf(100);
  expect(ticksOf(3000)).toBe(3);
  await schedules.close();
  expect([ticksOf(3000), vi.getTimerCount()]).toEqual([0, 0]);
});

test('closes a removed application within a second, at either interval', async () => {
  for (const hasDefinitions of [true, false]) {
    const application = { vhost: 'default', name: 'app' } as Application;
    const close = vi.fn(() => Promise.resolve());
    const channels = { application, hasDefinitions, tick: () => {}, close, pastTroubles: 0 } as unknown as ApplicationSchedules;
    let current: Application | undefined = application;
    const schedules = new Schedules({ open: () => channels, application: () => current, logger: new RecordingLogger() });
    schedules.follow(application);
    vi.advanceTimersByTime(2000);
    expect(close).not.toHaveBeenCalled();
    current = undefined;
    vi.advanceTimersByTime(1000);
    expect(close).toHaveBeenCalledTimes(1);
    await schedules.close();
  }
});
