import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { RefusalLog } from './refusal-log.ts';

describe('RefusalLog', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('tells of the first refusal at once, and of all that follow once a minute', () => {
    const logger = new RecordingLogger();
    const clock = new ManualClock();
    const pass = (ms: number): void => {
      clock.advance(ms);
      vi.advanceTimersByTime(ms);
    };
    const log = new RefusalLog(logger, clock);
    for (let n = 0; n < 1000; n += 1) log.note('too many', { peer: `192.0.2.${n % 256}` });
    expect(logger.lines.map(({ fields }) => fields['count'])).toEqual([1]);
    pass(60_000);
    expect(logger.lines.map(({ fields }) => fields)).toEqual([
      { peer: '192.0.2.0', count: 1 },
      { peer: '192.0.2.231', count: 999 },
    ]);
    pass(600_000);
    expect(logger.lines).toHaveLength(2);
    log.note('too many');
    expect(logger.lines).toHaveLength(3);
    log.close();
    expect(logger.lines).toHaveLength(3);
  });

  it('has one line a minute of somebody who comes again and again', () => {
    const logger = new RecordingLogger();
    const clock = new ManualClock();
    const log = new RefusalLog(logger, clock);
    for (let second = 0; second < 300; second += 1) {
      log.note('too many');
      clock.advance(1000);
      vi.advanceTimersByTime(1000);
    }
    log.close();
    const counts = logger.lines.map(({ fields }) => Number(fields['count']));
    expect(counts).toHaveLength(6);
    expect(counts.reduce((sum, count) => sum + count)).toBe(300);
  });

  it('keeps kinds apart, and tells the rest when it is closed', () => {
    const logger = new RecordingLogger();
    const log = new RefusalLog(logger);
    for (const kind of ['a', 'b', 'a', 'b', 'a']) log.note(kind);
    log.close();
    log.close();
    expect(logger.lines.map(({ message, fields }) => `${message} ${fields['count']}`)).toEqual(['a 1', 'b 1', 'a 2', 'b 1']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
