import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { metricsText } from '../../test/fakes/metrics-text.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { NoticeBoard } from '../core/notices/notice-board.ts';
import { Conditions } from '../util/conditions.ts';
import { EventLog, type EventLogOptions, eventLogMetrics } from './event-log.ts';

const OFTEN = { everyMs: 2 };

let root: string;
let folder: string;
let clock: ManualClock;
let board: NoticeBoard;
let conditions: Conditions;
let logger: RecordingLogger;
let log: EventLog;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-event-log-'));
  folder = join(root, 'logs');
  // Today, because the files have the times of the disk.
  clock = new ManualClock(Date.now());
  board = new NoticeBoard({ clock });
  conditions = new Conditions();
  logger = new RecordingLogger();
});
afterEach(async () => {
  await log.stop(0);
  board.close();
  rmSync(root, { recursive: true, force: true });
});

function start(options: Partial<EventLogOptions> = {}): EventLog {
  log = new EventLog({ board, folder, maxFileBytes: 1_000_000, maxFiles: 3, clock, conditions, logger, pauseMs: 1, ...options });
  return log;
}

const post = (vhost: string): void => board.post({ type: 'vhost.created', vhost });
const namesIn = (file: string): string[] =>
  readFileSync(join(folder, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).vhost);
const written = async (count: number): Promise<void> => {
  await until(`${count} are written`, () => log.figures.written >= count, OFTEN);
};
const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');

test('each event is a line, appended to those of the last run', async () => {
  start();
  for (const vhost of ['a', 'b']) post(vhost);
  await log.stop();
  post('nobody');
  start();
  post('c');
  await log.stop();
  expect(namesIn('events.log')).toEqual(['a', 'b', 'c']);
  expect(log.figures).toEqual({ written: 1, lost: 0 });
  expect(metricsText(eventLogMetrics(() => log.figures))).toContain('\nmillrace_event_log_lines_total 1\n');
});

test('a full file is rotated, and only the newest files are kept', async () => {
  start({ maxFileBytes: 250, maxFiles: 3 });
  for (let n = 1; n <= 12; n += 1) {
    post(`h${n}`);
    await written(n);
  }
  const today = day(clock.now());
  const files = readdirSync(folder).sort();
  expect(files).toEqual(['events.log', `events.log.${today}-3`, `events.log.${today}-4`, `events.log.${today}-5`]);
  expect(files.slice(1).flatMap(namesIn).concat(namesIn('events.log'))).toEqual(['h5', 'h6', 'h7', 'h8', 'h9', 'h10', 'h11', 'h12']);
  for (const file of files) expect(readFileSync(join(folder, file)).length).toBeLessThan(250);
});

test('each day has a file, and other files in the folder stay', async () => {
  start({ maxFiles: 1 });
  const first = day(clock.now());
  post('a');
  await written(1);
  writeFileSync(join(folder, 'events.log.other'), 'mine');
  writeFileSync(join(folder, 'events.log.20010101'), '');
  clock.advance(24 * 3600 * 1000);
  post('b');
  await written(2);
  expect(readdirSync(folder).sort()).toEqual(['events.log', `events.log.${first}`, 'events.log.other'].sort());
  expect([namesIn(`events.log.${first}`), namesIn('events.log')]).toEqual([['a'], ['b']]);
});

test('lines refused by the disk are counted and reported once, and the log continues when the disk accepts writes again', async () => {
  writeFileSync(folder, 'a file where the folder should be');
  start();
  for (let n = 0; n < 3; n += 1) {
    post('lost');
    await until('the line counts as lost', () => log.figures.lost > n, OFTEN);
  }
  expect(conditions.reasons).toEqual(['events are lost: the file system refused (EEXIST)']);
  expect(logger.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  rmSync(folder);
  post('kept');
  await written(1);
  expect(namesIn('events.log')).toEqual(['kept']);
  expect([conditions.reasons, log.figures]).toEqual([[], { written: 1, lost: 3 }]);
});

test('the queue for the disk is bounded, and does not block', async () => {
  start({ maxFileBytes: 16_000_000 });
  const long = 'x'.repeat(900);
  for (let n = 0; n < 3000; n += 1) post(long);
  const { lost } = log.figures;
  expect(lost).toBeGreaterThan(1500);
  await log.stop(10_000);
  expect(log.figures).toEqual({ written: 3000 - lost, lost });
  expect(namesIn('events.log')).toHaveLength(3000 - lost);
});
