import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { metricsText } from '../../../test/fakes/metrics-text.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import type { Notice } from '../../core/notices/notice.ts';
import { NoticeBoard } from '../../core/notices/notice-board.ts';
import { type LiveAnswer, LiveFeed } from './live-feed.ts';
import { liveMetrics } from './live-metrics.ts';

/** Accepts a write when the test says so. */
class Answer implements LiveAnswer {
  text = '';
  writes = 0;
  ended = false;
  destroyed = false;
  holds = false;
  #done: (() => void) | null = null;
  #onClose: () => void = () => undefined;

  write(text: string, done: () => void): void {
    this.writes += 1;
    this.text += text;
    if (this.holds) this.#done = done;
    else queueMicrotask(done);
  }

  /** The client reads again. */
  take(): void {
    this.holds = false;
    this.#done?.();
  }

  end(text: string): void {
    this.text += text;
    this.ended = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.close();
  }

  once(_event: 'close', listener: () => void): void {
    this.#onClose = listener;
  }

  on(): void {}

  close(): void {
    this.#onClose();
  }

  get types(): string[] {
    return [...this.text.matchAll(/^event: (.*)$/gm)].map(([, type = '']) => type);
  }
}

let clock: ManualClock;
let board: NoticeBoard;
let logger: RecordingLogger;
let feed: LiveFeed<Notice, NoticeBoard>;
const wants = () => true;

beforeEach(() => {
  vi.useFakeTimers();
  clock = new ManualClock();
  board = new NoticeBoard({ clock, kept: 100 });
  logger = new RecordingLogger();
  feed = new LiveFeed({ board, logger });
});
afterEach(() => {
  feed.close();
  board.close();
  vi.useRealTimers();
});

function follow(holds = false): Answer {
  const answer = new Answer();
  answer.holds = holds;
  feed.follow(answer, { wants, after: undefined });
  return answer;
}

const post = (vhost: string) => board.post({ type: 'vhost.created', vhost });

test('events within 50 ms leave in one write', async () => {
  const answer = follow();
  await vi.advanceTimersByTimeAsync(0);
  for (let n = 0; n < 30; n += 1) post(`h${n}`);
  expect(answer.writes).toBe(1);
  await vi.advanceTimersByTimeAsync(50);
  expect([answer.writes, answer.types.length]).toEqual([2, 31]);
});

test('texts are made once for all followers, and not at all without followers', async () => {
  const texts = vi.spyOn(board, 'textOf');
  for (let n = 0; n < 50; n += 1) post(`h${n}`);
  expect(texts).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
  const [first, second] = [follow(), follow()];
  texts.mockClear();
  for (let n = 0; n < 50; n += 1) post(`h${n}`);
  await vi.advanceTimersByTimeAsync(50);
  expect([first.types.length, second.types.length, texts.mock.calls.length]).toEqual([51, 51, 50]);
  for (const answer of [first, second]) answer.close();
  expect([feed.size, vi.getTimerCount()]).toEqual([0, 0]);
});

test('a follower that does not read holds one write, gets a gap when it reads again, and delays no other follower', async () => {
  const [slow, other] = [follow(true), follow()];
  await vi.advanceTimersByTimeAsync(0);
  for (let n = 0; n < 250; n += 1) {
    post(`h${n}`);
    await vi.advanceTimersByTimeAsync(50);
  }
  expect([slow.writes, other.types.length]).toEqual([1, 251]);
  slow.take();
  await vi.advanceTimersByTimeAsync(0);
  expect(slow.types).toEqual(['hello', 'gap', ...new Array(100).fill('vhost.created')]);
  expect(slow.text).toContain('data: {"type":"gap","missed":150}');
  expect([feed.missed, feed.cut]).toEqual([150, 0]);
});

test('a client that reads nothing for half a minute is disconnected', async () => {
  const [slow, other] = [follow(true), follow()];
  await vi.advanceTimersByTimeAsync(29_000);
  expect(slow.destroyed).toBe(false);
  await vi.advanceTimersByTimeAsync(5000);
  expect([slow.destroyed, other.destroyed, feed.cut, feed.size]).toEqual([true, false, 1, 1]);
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'a client of the live events read nothing for 30000 ms: it was disconnected',
  ]);
});

test('silence is filled with comments', async () => {
  const answer = follow();
  await vi.advanceTimersByTimeAsync(46_000);
  expect(answer.text.match(/^: $/gm)).toHaveLength(3);
  expect(answer.types).toEqual(['hello']);
});

test('no write exceeds its limit, however many events wait', async () => {
  board = new NoticeBoard({ clock, kept: 2000 });
  feed = new LiveFeed({ board, logger });
  const answer = follow(true);
  const lengths: number[] = [];
  const write = answer.write.bind(answer);
  answer.write = (text, done) => {
    lengths.push(text.length);
    write(text, done);
  };
  for (let n = 0; n < 2000; n += 1) post(`${n}`.padStart(200, 'x'));
  answer.take();
  await vi.advanceTimersByTimeAsync(50);
  expect(answer.types).toHaveLength(2001);
  expect(lengths.length).toBeGreaterThan(5);
  expect(Math.max(...lengths)).toBeLessThan(65_536 + 1000);
});

test('its figures', async () => {
  follow();
  post('a');
  expect(metricsText(liveMetrics(feed))).toContain('millrace_events_total{group="config"} 1\n');
  expect(metricsText(liveMetrics(feed))).toContain('\nmillrace_event_followers 1\n');
});

test('the end is sent after a pending write', () => {
  const answer = follow(true);
  void feed.close();
  expect([answer.ended, answer.types.at(-1)]).toEqual([true, 'end']);
});

test('the end waits until answers have left, for half a second', async () => {
  const [first, second] = [follow(), follow()];
  let isOver = false;
  void feed.close().then(() => {
    isOver = true;
  });
  first.close();
  await vi.advanceTimersByTimeAsync(0);
  expect(isOver).toBe(false);
  second.close();
  await vi.advanceTimersByTimeAsync(0);
  expect([isOver, feed.size]).toEqual([true, 0]);
});

test('the end does not wait for followers that read nothing', async () => {
  follow(true);
  const closed = feed.close();
  await vi.advanceTimersByTimeAsync(500);
  await closed;
  expect(feed.size).toBe(0);
});

test('a client that connects after the end is disconnected at once', () => {
  void feed.close();
  const answer = follow();
  expect([answer.ended, answer.types, feed.size]).toEqual([true, ['end'], 0]);
});
