import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { MAX_LATE_LINES } from './line-budget.ts';
import { RefusalLog } from './refusal-log.ts';

describe('RefusalLog', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('logs the first refusal at once, and the number of further ones once a minute', () => {
    const logger = new RecordingLogger();
    const clock = new ManualClock();
    const pass = (ms: number): void => {
      clock.advance(ms);
      vi.advanceTimersByTime(ms);
    };
    const log = new RefusalLog(logger, clock);
    for (let n = 0; n < 1000; n += 1) log.note('too many', { peer: `192.0.2.${n % 256}` });
    const first = [...Array(1 + MAX_LATE_LINES).keys()].map((n) => ({ peer: `192.0.2.${n}`, count: 1 }));
    expect(logger.lines.map(({ fields }) => fields)).toEqual(first);
    pass(60_000);
    expect(logger.lines.map(({ fields }) => fields)).toEqual([...first, { peer: '192.0.2.231', count: 1000 - first.length }]);
    pass(600_000);
    expect(logger.lines).toHaveLength(first.length + 1);
    log.note('too many');
    expect(logger.lines).toHaveLength(first.length + 2);
    log.close();
    expect(logger.lines).toHaveLength(first.length + 2);
  });

  it('gives other addresses a line each during a flood of one address, which has one line a minute', () => {
    const logger = new RecordingLogger();
    const clock = new ManualClock();
    const log = new RefusalLog(logger, clock);
    for (let minute = 0; minute < 3; minute += 1) {
      for (let n = 0; n < 500; n += 1) log.note('too many', { peer: `198.51.100.7:${1024 + n}` });
      for (const peer of ['192.0.2.1:5000', '[2001:db8::1]:5000', '[2001:db8::2]:5000']) log.note('too many', { peer });
      for (let n = 0; n < 500; n += 1) log.note('too many', { peer: `198.51.100.7:${1024 + n}` });
      clock.advance(60_000);
      vi.advanceTimersByTime(60_000);
    }
    const peers = logger.lines.map(({ fields }) => String(fields['peer']).replace(/^198.*/, 'flood'));
    const told = ['192.0.2.1:5000', '[2001:db8::1]:5000'];
    expect(peers).toEqual(['flood', ...told, 'flood', ...told, 'flood', ...told, 'flood']);
    expect(logger.lines.reduce((sum, { fields }) => sum + Number(fields['count']), 0)).toBe(3 * 1003);
    log.close();
  });

  it('logs one line a minute for steady refusals', () => {
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

  it('counts kinds separately, and logs the rest when it is closed', () => {
    const logger = new RecordingLogger();
    const log = new RefusalLog(logger);
    for (const kind of ['a', 'b', 'a', 'b', 'a']) log.note(kind);
    log.close();
    log.close();
    expect(logger.lines.map(({ message, fields }) => `${message} ${fields['count']}`)).toEqual(['a 1', 'b 1', 'a 2', 'b 1']);
    expect(vi.getTimerCount()).toBe(0);
  });
});
