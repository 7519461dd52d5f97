import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { textWithout } from '../../util/private-logger.ts';
import type { Notice } from './notice.ts';
import { NoticeBoard } from './notice-board.ts';

let clock: ManualClock;
let board: NoticeBoard;
let posted: Notice[];

beforeEach(() => {
  vi.useFakeTimers();
  clock = new ManualClock();
  board = new NoticeBoard({ clock });
  posted = [];
  board.watch(({ notice }) => posted.push(notice));
});
afterEach(() => {
  board.close();
  vi.useRealTimers();
});

const place = { vhost: 'v', app: 'a', stream: 's' };
const start = (stream: string, n: number): Notice => ({ type: 'session.started', ...place, stream, session: `${n}`, publisher: 'llhls' });

test('of a flood of sessions 200 per second are listed one by one, the rest as a sum per stream, without delaying other notices', () => {
  for (let n = 0; n < 10_000; n += 1) board.post(start(`s${n % 2}`, n));
  board.post({ type: 'stream.ready', ...place, output: 'o' });
  expect([posted.length, posted.at(-1)?.type, board.folded]).toEqual([201, 'stream.ready', 9800]);
  vi.advanceTimersByTime(1000);
  expect(posted.slice(201)).toEqual([
    { type: 'session.summary', ...place, stream: 's0', started: 4900, ended: 0 },
    { type: 'session.summary', ...place, stream: 's1', started: 4900, ended: 0 },
  ]);
  clock.advance(1000);
  board.post(start('s0', 1));
  expect(posted.at(-1)).toEqual(start('s0', 1));
});

test('sums of more than 50 streams are merged into one', () => {
  for (let n = 0; n < 500; n += 1) board.post(start(`s${n}`, n));
  vi.advanceTimersByTime(1000);
  const sums = posted.slice(200);
  expect(sums).toHaveLength(51);
  expect(sums.at(-1)).toEqual({ type: 'session.summary', started: 250, ended: 0 });
});

test('refusals in a flood are reported by kind, regardless of invented names', () => {
  const refusal = (n: number): Notice => ({
    ...{ type: 'refusal.counted', vhost: 'v', app: `${n}`, stream: `${n}` },
    ...{ direction: 'incoming', protocol: 'rtmp', reason: 'no-application', count: 1 },
  });
  for (let n = 0; n < 1000; n += 1) board.post(refusal(n));
  vi.advanceTimersByTime(1000);
  expect(posted).toHaveLength(51);
  expect(posted.at(-1)).toEqual({ type: 'refusal.counted', direction: 'incoming', protocol: 'rtmp', reason: 'no-application', count: 950 });
});

test('a stop posts the pending sums', () => {
  for (let n = 0; n < 201; n += 1) board.post(start('s', n));
  board.close();
  expect(posted.at(-1)).toEqual({ type: 'session.summary', ...place, started: 1, ended: 0 });
  expect(vi.getTimerCount()).toBe(0);
});

test('texts contain neither secrets nor unbounded input of clients', () => {
  board.post({
    ...{ type: 'stream.created', ...place, sourceType: 'RtspPull' },
    sourceUrl: 'rtsp://user:PASSWORD@cam.test/x?token=PASSWORD',
  });
  board.post({ type: 'stream.ended', ...place, reason: 'peer-error', detail: `app/s?key=PASSWORD ${'x'.repeat(5000)}` });
  const [source, ended] = [board.at(1)?.json ?? '', board.at(2)?.json ?? ''];
  expect(source + ended).not.toContain('PASSWORD');
  expect(JSON.parse(source).sourceUrl).toBe('rtsp://***@cam.test/x?***');
  expect(ended.length).toBeLessThan(1300);
});

test('addresses of clients are left out with PrivacyProtection', () => {
  const hiding = new NoticeBoard({ clock, hide: textWithout });
  hiding.post({ type: 'stream.created', ...place, sourceType: 'Rtmp', sourceUrl: 'TCP://198.51.100.7:50412' });
  expect(JSON.parse(hiding.at(1)?.json ?? '').sourceUrl).toBe('TCP://xxx.xxx.xxx.xxx:xxx');
});

test('ids of other runs, and ids that were never sent, are rejected', () => {
  board.post({ type: 'vhost.created', vhost: 'a' });
  expect(board.numberOf(board.idOf(1))).toBe(1);
  clock.advance(1);
  for (const id of [new NoticeBoard({ clock }).idOf(1), board.idOf(2), '', '1', 'x-1', `${board.idOf(1)}x`, `${board.idOf(1)}-1`]) {
    expect(board.numberOf(id), id).toBe(id === `${board.idOf(1)}-1` ? 1 : null);
  }
});
