/** Requests that wait in the addon for the answer to an equal one, which JavaScript holds. */
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { AnsweringThread, type PlainViewer } from '../../../test/fakes/answering-thread.ts';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon } from '../../native/addon.ts';
import { DEFAULT_DELIVERY_LIMITS } from '../pool/delivery-limits.ts';
import { sessionId } from '../session-token.ts';
import type { DeliveryLimits } from '../thread-protocol.ts';

const WAIT = { deadlineMs: 30_000, everyMs: 5 };

interface Viewer {
  readonly socket: PlainViewer;
  readonly token: string;
}

const opened: AnsweringThread[] = [];
afterEach(() => {
  for (const thread of opened.splice(0)) thread.close();
});

describe.skipIf(loadAddon().addon === null)('requests for an answer that JavaScript has yet to give', () => {
  /** A thread whose first viewer is held by JavaScript, and `count` others wait in the addon. */
  async function start(count: number, { limits = {}, lines = '' }: { limits?: Partial<DeliveryLimits>; lines?: string } = {}) {
    const all = await AnsweringThread.start(limits);
    opened.push(all);
    const viewers: Viewer[] = [];
    for (let n = 0; n <= count; n += 1) viewers.push(await viewer(all, lines));
    const [leader, ...others] = viewers as [Viewer, ...Viewer[]];
    leader.socket.ask('later', leader.token, lines);
    await held(all, 1);
    for (const other of others) {
      other.socket.ask('later', other.token, lines);
      await waiting(all, 2 + others.indexOf(other));
    }
    return { all, leader, others, lines };
  }

  /** A viewer with a session of its own, whose connection has rested once. */
  async function viewer(all: AnsweringThread, lines = ''): Promise<Viewer> {
    const token = await all.session();
    const socket = all.open();
    for (let n = 0; n < 2; n += 1) {
      socket.ask('text', token, lines);
      await socket.answer();
    }
    return { socket, token };
  }

  /** JavaScript was asked for `later` so many times. */
  async function held(all: AnsweringThread, count: number): Promise<void> {
    await until('the request', () => all.heldFor.length >= count, WAIT);
  }

  /** So many requests wait, in JavaScript and in the addon. */
  async function waiting(all: AnsweringThread, count: number): Promise<void> {
    await until(`${count} that wait`, () => all.told('report').at(-1)?.waiting === count, WAIT);
  }

  const text = (words: string, token: string): string => `200 ${words} ?session=${token}\n?session=${token}.`;

  test('get it, each with its own session, and JavaScript is asked once', async () => {
    const { all, leader, others } = await start(5);
    const before = { ...all.report.http };
    const received = () => [leader, ...others].reduce((sum, { socket }) => sum + socket.received, 0);
    const first = received();
    all.update('second');
    for (const { socket, token } of [leader, ...others]) expect(await socket.text()).toBe(text('second', token));
    expect(all.heldFor).toEqual([0]);
    await until('the sent bytes are counted', () => all.report.http.bytesSent === before.bytesSent + received() - first, WAIT);
    const { http, waiting: left, held: count, crowded } = all.report;
    expect([left, count, crowded]).toEqual([0, 5, 0]);
    // JavaScript counts a request when it arrives, the addon when it is answered.
    expect(http.requests).toBe(before.requests + 5);
    expect(http.statuses[2]).toBe((before.statuses[2] ?? 0) + 6);
    expect(http.aborts).toBe(before.aborts);
    const sum = (numbers: readonly number[]): number => numbers.reduce((one, number) => one + number, 0);
    const reports = all.told('report');
    const ofFeeds = sum(reports.flatMap(({ bytes }) => bytes.filter((_number, n) => n % 2 === 1)));
    expect(sum(reports.flatMap(({ sessionBytes }) => sessionBytes.bytes))).toBe(ofFeeds);
  });

  test('get the head and the body that JavaScript gives', async () => {
    const { all, leader, others } = await start(1, { lines: 'Accept-Encoding: gzip\r\nOrigin: http://a.example\r\n' });
    all.update('second');
    const ofLeader = await leader.socket.answer();
    const [other] = others as [Viewer];
    const { head, body } = await other.socket.answer();
    const undated = (lines: string): string => lines.replace(/Date: .*\r\n/, '');
    expect(undated(head)).toBe(undated(ofLeader.head));
    expect(String(gunzipSync(body))).toBe(text('second', other.token).slice(4));
    expect(all.heldFor).toEqual([0]);
  });

  test('keep waiting when it leaves: the longest waiting request is held instead', async () => {
    const { all, leader, others } = await start(4);
    leader.socket.socket.destroy();
    await held(all, 2);
    await waiting(all, 4);
    others[0]?.socket.socket.resetAndDestroy();
    await held(all, 3);
    await waiting(all, 3);
    all.update('second');
    for (const { socket, token } of others.slice(1)) expect(await socket.text()).toBe(text('second', token));
    expect(all.heldBy).toEqual([leader, others[0], others[1]].map((viewer) => viewer?.token));
    for (const ms of all.heldFor.slice(1)) expect(ms).toBeGreaterThan(0);
  });

  test('are forgotten when their clients leave', async () => {
    const { all, leader, others } = await start(4);
    const { aborts, requests } = all.report.http;
    others[0]?.socket.socket.destroy();
    others[1]?.socket.socket.resetAndDestroy();
    others[2]?.socket.socket.end();
    await until('the connections close', () => others[2]?.socket.ended, WAIT);
    await waiting(all, 2);
    all.update('second');
    for (const { socket, token } of [leader, others[3] as Viewer]) expect(await socket.text()).toBe(text('second', token));
    await until('four requests are counted', () => all.report.http.requests === requests + 4, WAIT);
    expect(all.report.http.aborts).toBe(aborts + 3);
    expect(all.heldFor).toEqual([0]);
  });

  test('are answered by JavaScript when there is no common answer', async () => {
    const { all, leader, others } = await start(3);
    all.update('');
    for (const { socket } of [leader, ...others]) expect(await socket.text()).toBe('404 ');
    expect(all.heldFor.length).toBe(4);
    for (const ms of all.heldFor.slice(1)) expect(ms).toBeGreaterThan(0);
    await waiting(all, 0);
  });

  test('are answered by the view before its feed closes', async () => {
    const { all, leader, others } = await start(3);
    all.thread.receive([{ type: 'feed-close', feed: 3 }]);
    for (const { socket, token } of [leader, ...others]) expect(await socket.text()).toBe(text('first', token));
    await waiting(all, 0);
    others[0]?.socket.ask('later', others[0].token);
    expect(await others[0]?.socket.text()).toMatch(/^404 /);
  });

  test('are refused for a session revoked meanwhile', async () => {
    const { all, leader, others } = await start(2);
    const [revoked, other] = others as [Viewer, Viewer];
    all.thread.receive([{ type: 'revoke', sessions: [sessionId(revoked.token)] }]);
    all.update('second');
    expect(await revoked.socket.text()).toBe('401 ');
    for (const { socket, token } of [leader, other]) expect(await socket.text()).toBe(text('second', token));
  });

  test('are checked again when rules change, and wait on', async () => {
    const { all, leader, others } = await start(2);
    const asked = all.asked.length;
    all.changeHosts();
    // One proves itself and is held; the other is unknown to the addon until it has done so, too.
    await held(all, 3);
    expect(all.asked.length).toBe(asked + 2);
    await waiting(all, 3);
    all.update('second');
    for (const { socket, token } of [leader, ...others]) expect(await socket.text()).toBe(text('second', token));
  });

  test('are answered 404 when their host is removed', async () => {
    const { all, others } = await start(2);
    all.thread.receive([{ type: 'hosts', hosts: [] }]);
    for (const { socket } of others) expect(await socket.text()).toMatch(/^404 /);
  });

  test('are limited in number: JavaScript refuses the others', async () => {
    const { all, leader, others } = await start(2, { limits: { waiting: 2 } });
    const late = await viewer(all);
    late.socket.ask('later', late.token);
    expect(await late.socket.text()).toMatch(/^503 /);
    await until('the refused request is counted', () => all.report.crowded === 1, WAIT);
    all.update('second');
    for (const { socket, token } of [leader, ...others]) expect(await socket.text()).toBe(text('second', token));
    expect(all.report.held).toBe(2);
  });

  test('keep their order when a client sends further requests', async () => {
    const { all, leader, others } = await start(2);
    const [eager, other] = others as [Viewer, Viewer];
    eager.socket.ask('text', eager.token);
    await held(all, 2);
    all.update('second');
    for (const { socket, token } of [leader, eager, eager, other]) expect(await socket.text()).toBe(text('second', token));
    expect(all.heldFor.length).toBe(2);
  });

  test('stay held when the first of them sends another request', async () => {
    const { all, leader, others } = await start(2);
    leader.socket.ask('text', leader.token);
    all.update('second');
    for (const { socket, token } of [leader, leader, ...others]) expect(await socket.text()).toBe(text('second', token));
  });

  test('may wait longer than a connection may be idle', async () => {
    const http = { ...DEFAULT_DELIVERY_LIMITS.http, idleTime: 1000 };
    const { all, leader, others } = await start(1, { limits: { http } });
    const idle = all.open();
    idle.ask('text', leader.token);
    await until('the end of an idle connection', () => idle.ended, WAIT);
    all.update('second');
    for (const { socket, token } of [leader, ...others]) expect(await socket.text()).toBe(text('second', token));
  });

  test('are answered when the thread stops, and their connections close', async () => {
    const { all, leader, others } = await start(3);
    all.thread.receive([{ type: 'stop' }]);
    for (const { socket, token } of [leader, ...others]) {
      const { head, body } = await socket.answer();
      expect(`${head.slice(9, 12)} ${body}`).toBe(text('first', token));
      expect(head).toContain('\r\nConnection: close\r\n');
      await until('the connection closes', () => socket.ended, WAIT);
    }
    await until('the thread has stopped', () => all.told('stopped').length === 1, WAIT);
  });

  test('survive all of it in any order', async () => {
    const { all, leader, others, lines } = await start(12);
    let state = 20_261_128;
    const pick = (below: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const viewers = [leader, ...others];
    for (let round = 0; round < 300; round += 1) {
      const n = pick(viewers.length);
      const one = viewers[n] as Viewer;
      const what = pick(24);
      if (what < 12) one.socket.ask(pick(4) === 0 ? 'text' : 'later', one.token, lines);
      else if (what < 15) {
        if (what === 12) one.socket.socket.destroy();
        else if (what === 13) one.socket.socket.resetAndDestroy();
        else one.socket.socket.end();
        viewers[n] = { socket: all.open(), token: one.token };
      } else if (what < 19) all.update(pick(3) === 0 ? '' : `text ${round}`);
      else if (what === 19) all.changeHosts();
      else await until('a report', reportAfter(all), WAIT);
    }
    all.update('last');
    const last = await viewer(all);
    expect(await all.warm(last.socket, 'text', last.token)).toBe(text('last', last.token));
    for (const { socket } of viewers) socket.socket.destroy();
    await waiting(all, 0);
  });

  function reportAfter(all: AnsweringThread): () => boolean {
    const from = all.told('report').length;
    return () => all.told('report').length > from;
  }
});
