import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { SourceEvent } from '../../core/ingest.ts';
import { EventGenerator } from './event-generator.ts';
import type { EventRule } from './event-rules.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const rule = (streamName: string, interval: number, urgent = false): EventRule => ({
  ...{ streamName, interval, urgent, format: 'sei', target: 'video', keyframeOnly: true },
  make: () => Buffer.from(streamName),
});

it('sends at its intervals to each running stream that matches, until the application ends', () => {
  const sent: [string, string, boolean][] = [];
  const stream = (name: string) => ({
    name,
    inject: ({ data }: SourceEvent, urgent: boolean) => sent.push([name, Buffer.from(data).toString(), urgent]) > 0,
  });
  const application = { closed: false, streams: [stream('a1'), stream('b1')] };
  const generator = new EventGenerator([rule('a*', 100), rule('?1', 250, true)], application, {
    clock: new ManualClock(),
    logger: new RecordingLogger(),
  });
  vi.advanceTimersByTime(99);
  expect(sent).toEqual([]);
  vi.advanceTimersByTime(151);
  expect(sent).toEqual([
    ['a1', 'a*', false],
    ['a1', 'a*', false],
    ['a1', '?1', true],
    ['b1', '?1', true],
  ]);
  application.closed = true;
  vi.advanceTimersByTime(1000);
  expect([sent.length, generator.ended, vi.getTimerCount()]).toEqual([4, true, 0]);
});

it('ends with its application even when its next turn is days away', () => {
  const application = { closed: false, streams: [] };
  const generator = new EventGenerator([rule('*', 2 ** 31 - 1)], application, { clock: new ManualClock(), logger: new RecordingLogger() });
  expect([generator.sweep(), vi.getTimerCount()]).toEqual([false, 1]);
  application.closed = true;
  expect([generator.ended, generator.sweep(), generator.ended, vi.getTimerCount()]).toEqual([false, true, true, 0]);
});
