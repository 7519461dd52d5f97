/** When a delivery thread answers without JavaScript, and when it no longer does. */
import { afterEach, describe, expect, test } from 'vitest';
import { AnsweringThread, LARGE, type PlainViewer } from '../../../test/fakes/answering-thread.ts';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon } from '../../native/addon.ts';
import { DEFAULT_DELIVERY_LIMITS } from '../pool/delivery-limits.ts';
import { sessionId } from '../session-token.ts';

const WAIT = { deadlineMs: 30_000, everyMs: 5 };

const opened: AnsweringThread[] = [];
afterEach(() => {
  for (const thread of opened.splice(0)) thread.close();
});

describe.skipIf(loadAddon().addon === null)('answers that are kept', () => {
  /** A thread with a viewer on one connection. */
  async function start(sendTime = DEFAULT_DELIVERY_LIMITS.http.sendTime) {
    const started = await AnsweringThread.start({ http: { ...DEFAULT_DELIVERY_LIMITS.http, sendTime } });
    opened.push(started);
    const token = await started.session();
    return {
      ...{ thread: started.thread, token, sent: started.sent, all: started },
      told: started.told.bind(started),
      open: () => started.open(),
      asked: () => started.asked,
    };
  }

  /** Status and body. */
  async function get(client: PlainViewer, file: string, token: string): Promise<string> {
    client.ask(file, token);
    return await client.text();
  }

  /** Requests until JavaScript is no longer called. */
  async function warm(started: Awaited<ReturnType<typeof start>>, client: PlainViewer, file: string): Promise<string> {
    return await started.all.warm(client, file, started.token);
  }

  test('are given until their feed changes, and counted', async () => {
    const started = await start();
    const { thread, told, token } = started;
    const client = started.open();
    expect(await warm(started, client, 'text')).toBe(`200 first ?session=${token}\n?session=${token}.`);
    const small = await warm(started, client, 'small');
    expect(small).toBe(`200 ${Buffer.from(Array.from({ length: 10_000 }, (_, n) => (n + 5) % 251)).toString('latin1')}`);
    thread.receive([{ type: 'feed-update', feed: 3, payload: 'second' }]);
    client.ask('text', token);
    const last = await client.answer();
    expect(String(last.body)).toBe(`second ?session=${token}\n?session=${token}.`);
    const counted = () => started.told('report').at(-1)?.http;
    // One for the session, then at least three of each file before it is answered without JavaScript.
    await until('the sent bytes are counted', () => counted()?.bytesSent === started.sent + client.received, WAIT);
    expect(counted()?.requests).toBeGreaterThanOrEqual(6);
    expect(counted()?.statuses[2]).toBe(counted()?.requests);
    expect(started.asked().length).toBeLessThan((counted()?.requests ?? 0) - 1);
    const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0);
    const feeds = told('report').flatMap((report) => report.bytes.filter((_number, n) => n % 2 === 1));
    expect(sum(told('report').flatMap((report) => report.sessionBytes.bytes))).toBe(sum(feeds));
    expect(sum(feeds)).toBeGreaterThan(client.received * 0.9);
    expect(sum(feeds)).toBeLessThan(started.sent + client.received);
  });

  test('do not include a playlist that creates a session', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    const answers = new Set<string>();
    for (let n = 0; n < 5; n += 1) answers.add(await get(client, 'list.m3u8', started.token));
    expect(answers.size).toBe(5);
  });

  test('are refused to a revoked session', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([{ type: 'revoke', sessions: [sessionId(started.token)] }]);
    expect(await get(client, 'text', started.token)).toBe('401 ');
  });

  test('are forgotten with the rules they were made by', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([{ type: 'hosts', hosts: [] }]);
    expect(await get(client, 'text', started.token)).toMatch(/^404 /);
  });

  test('are given to a session only after it was verified by the changed rules', async () => {
    const started = await start();
    const { all, token } = started;
    const client = started.open();
    await warm(started, client, 'text');
    all.changeHosts();
    const other = await all.session();
    await all.warm(client, 'text', other);
    const asked = started.asked().length;
    expect(await get(client, 'text', token)).toMatch(/^200 /);
    expect(started.asked().length).toBe(asked + 1);
  });

  test('end with their feed', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'text');
    started.thread.receive([{ type: 'feed-close', feed: 3 }]);
    expect(await get(client, 'text', started.token)).toMatch(/^404 /);
  });

  test('keep the order when a client asks on before it has read', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'large');
    await warm(started, client, 'small');
    const asked = started.asked().length;
    client.socket.pause();
    client.ask('large', started.token);
    const { received } = client;
    client.ask('small', started.token);
    client.socket.resume();
    const large = await client.answer();
    const small = await client.answer();
    expect([large.body.length, small.body.length]).toEqual([LARGE, 10_000]);
    expect(large.body.every((byte, n) => byte === n % 251)).toBe(true);
    expect(client.received - received).toBe(LARGE + 10_000 + large.head.length + small.head.length);
    // The second came while the first was sent, or with it.
    expect(started.asked().length - asked).toBeLessThanOrEqual(2);
  });

  test('are cut off for a client that does not read', async () => {
    // Longer than a reader of this process may get no processor.
    const started = await start(2000);
    const client = started.open();
    await warm(started, client, 'large');
    const { timeouts } = started.told('report').at(-1)!.http;
    // A socket that has read much has a receive buffer into which all of it may fit.
    const slow = started.open();
    await get(slow, 'small', started.token);
    slow.socket.pause();
    slow.ask('large', started.token);
    await until('a timeout is counted', () => started.told('report').at(-1)!.http.timeouts > timeouts, WAIT);
    await until('one connection is left', () => started.told('report').at(-1)?.connections === 1, WAIT);
    expect(started.told('report').at(-1)!.http.timeouts).toBe(timeouts + 1);
  });

  test('may be cut off by a client that leaves, without harm to others', async () => {
    const started = await start();
    const client = started.open();
    await warm(started, client, 'large');
    for (let n = 0; n < 10; n += 1) {
      const other = started.open();
      await get(other, 'small', started.token);
      other.socket.pause();
      other.ask('large', started.token);
      if (n % 2 === 0) other.socket.resetAndDestroy();
      else other.socket.destroy();
    }
    expect((await get(client, 'large', started.token)).length).toBe(LARGE + 4);
    await until('one connection is left', () => started.told('report').at(-1)?.connections === 1, WAIT);
  });
});
