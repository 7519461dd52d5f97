import { expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { WrongTokenLog } from './wrong-token-log.ts';

test('logs each address once, and its further attempts as a count every minute', () => {
  const logger = new RecordingLogger();
  const clock = new ManualClock();
  const log = new WrongTokenLog(logger, clock);
  for (let n = 0; n < 50; n += 1) log.note('192.0.2.1', { peer: '192.0.2.1' });
  log.note('192.0.2.2', { peer: '192.0.2.2' });
  const told = (): unknown[] => logger.lines.map(({ level, fields }) => [level, fields['peer'], fields['count']]);
  expect(told()).toEqual([
    ['warn', '192.0.2.1', 1],
    ['warn', '192.0.2.2', 1],
  ]);
  clock.advance(60_000);
  log.note('192.0.2.1', { peer: '192.0.2.1' });
  expect(told().slice(2)).toEqual([['warn', '192.0.2.1', 49]]);
  log.close();
  log.close();
  expect(told().slice(3)).toEqual([['warn', '192.0.2.1', 1]]);
});

test('ten thousand addresses are not ten thousand lines', () => {
  const logger = new RecordingLogger();
  const log = new WrongTokenLog(logger, new ManualClock());
  for (let n = 0; n < 10_000; n += 1) log.note(`10.0.${n >> 8}.${n & 255}`, {});
  log.close();
  expect(logger.lines.length).toBeLessThan(300);
  expect(logger.lines.reduce((sum, { fields }) => sum + Number(fields['count']), 0)).toBe(10_000);
});
