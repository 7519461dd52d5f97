import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { BudgetedLogger, kindOf, limitedLines, MAX_LINES_PER_MINUTE } from './budgeted-logger.ts';
import { type LineBudget, MAX_LATE_LINES } from './line-budget.ts';
import type { Logger } from './logger.ts';

let clock: ManualClock;
let lines: RecordingLogger;
let budget: LineBudget;
let logger: Logger;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  clock = new ManualClock();
  lines = new RecordingLogger();
  budget = limitedLines(clock, lines);
  logger = new BudgetedLogger(() => lines, budget);
});
afterEach(() => {
  budget.close();
  vi.useRealTimers();
});

/** Minutes pass. */
function pass(ms: number): void {
  clock.advance(ms);
  vi.advanceTimersByTime(ms);
}

const said = (message: string): number => lines.lines.filter((line) => line.message.startsWith(message)).length;

test('a hundred lines per kind and minute are logged across writers, and the others are counted', () => {
  const sessions = [1, 2].map((session) => logger.limited.child({ session }));
  for (let round = 0; round < MAX_LINES_PER_MINUTE; round += 1) {
    for (const session of sessions) session.info({}, `viewer session closed: reason ${round}`);
  }
  logger.limited.warn({}, 'another kind');
  expect(said('viewer session closed')).toBe(MAX_LINES_PER_MINUTE);
  expect(said('another kind')).toBe(1);
  expect(said(`${MAX_LINES_PER_MINUTE} more`)).toBe(0);
  pass(60_000);
  expect(lines.lines.at(-1)).toMatchObject({
    level: 'warn',
    message: `${MAX_LINES_PER_MINUTE} more lines 'viewer session closed' within a minute were left out`,
    fields: { lines: MAX_LINES_PER_MINUTE },
  });
  logger.limited.info({}, 'viewer session closed: next minute');
  expect(lines.lines.at(-1)?.message).toBe('viewer session closed: next minute');
});

test('lines of the server itself and of debug are not limited', () => {
  for (let round = 0; round < 3 * MAX_LINES_PER_MINUTE; round += 1) {
    logger.info({}, 'recorded');
    logger.limited.debug({}, 'looked at');
  }
  expect(said('recorded')).toBe(3 * MAX_LINES_PER_MINUTE);
  expect(said('looked at')).toBe(3 * MAX_LINES_PER_MINUTE);
});

test('a minute within the budget adds no line at its end', () => {
  for (let minute = 0; minute < 3; minute += 1) {
    for (let round = 0; round < MAX_LINES_PER_MINUTE; round += 1) logger.limited.info({}, 'connection opened');
    pass(60_000);
  }
  expect(lines.lines).toHaveLength(3 * MAX_LINES_PER_MINUTE);
});

test('a close logs the number of omitted lines', () => {
  for (let round = 0; round < MAX_LINES_PER_MINUTE + 7; round += 1) logger.limited.error({}, 'failed');
  budget.close();
  budget.close();
  expect(said('7 more lines')).toBe(1);
});

test('two reasons have separate budgets', () => {
  for (let round = 0; round < 2 * MAX_LINES_PER_MINUTE; round += 1) {
    logger.limited.warn({ code: 'no-application' }, `publisher refused: there is no application 'a${round}'`);
  }
  logger.limited.warn({ code: 'duplicate-name' }, "publisher refused: stream 'live' is published already");
  expect(said('publisher refused: stream')).toBe(1);
  budget.close();
  expect(said(`${MAX_LINES_PER_MINUTE} more lines 'publisher refused (no-application)'`)).toBe(1);
});

test('a flood of one address leaves lines for other addresses, even through child loggers', () => {
  const refused = (peer: string): void =>
    logger.child({ peer }).child({ session: 1 }).limited.warn({ code: 'no-application' }, "publisher refused: there is no application 'a'");
  for (let port = 0; port < 2 * MAX_LINES_PER_MINUTE; port += 1) refused(`198.51.100.7:${port}`);
  refused('192.0.2.1:5000');
  refused('192.0.2.1:5001');
  expect(lines.lines).toHaveLength(MAX_LINES_PER_MINUTE + 1);
  expect(lines.lines.at(-1)?.fields).toMatchObject({ peer: '192.0.2.1:5000' });
  for (let n = 0; n < 200; n += 1) refused(`203.0.113.${n}:1`);
  expect(lines.lines).toHaveLength(MAX_LINES_PER_MINUTE + MAX_LATE_LINES);
});

test('a steady writer has the same budget each minute', () => {
  for (let second = 0; second < 180; second += 1) {
    for (let n = 0; n < 10; n += 1) logger.limited.info({}, 'viewer session closed');
    pass(1000);
  }
  expect(lines.lines.length).toBeLessThanOrEqual(3 * MAX_LINES_PER_MINUTE + 1);
});

test('an unbounded number of kinds shares a budget', () => {
  for (let kind = 0; kind < 1000; kind += 1) {
    logger.limited.info({}, `kind ${String.fromCharCode(0x4e00 + kind)}`);
  }
  expect(lines.lines.length).toBeLessThan(400);
});

test.each([
  ['viewer session closed: idle', 'viewer session closed'],
  ["'default/app/it''s' is in the origin map as ovt://192.0.2.1", 'is in the origin map as ovt'],
  ["output stream 'live' begins: 2 tracks", 'output stream'],
  ['5 packets lost', ''],
])('the kind of "%s"', (message, kind) => {
  expect(kindOf({}, message.replace("it''s", 'its'))).toBe(kind);
});

test('a child logger is made with its first line, so that silent children cost nothing', () => {
  const made: object[] = [];
  const child = lines.child.bind(lines);
  lines.child = (fields) => {
    made.push(fields);
    return child(fields);
  };
  const session = logger.limited.child({ session: 1 }).child({ stream: 's' });
  expect(made).toEqual([]);
  session.info({}, 'in use');
  session.limited.warn({}, 'ends');
  expect(made).toEqual([{ session: 1 }]);
  expect(lines.lines.map(({ message }) => message)).toEqual(['in use', 'ends']);
  expect(lines.lines[1]?.fields).toMatchObject({ session: 1, stream: 's' });
});
