import { afterEach, expect, it, vi } from 'vitest';
import { until } from '../../../test/harness/poll.ts';
import type { Denied, Passed } from '../../access/access-check.ts';
import type { ChecksOf } from '../../access/access-controls.ts';
import { OPEN_ADMISSION } from '../admission.ts';
import type { DeliveryExchange, DeliveryView, ViewContext } from '../feed/view.ts';
import { DEFAULT_DELIVERY_LIMITS } from '../pool/delivery-limits.ts';
import type { FromThread, ThreadSettings, ToThread } from '../thread-protocol.ts';
import { RefusalText } from './delivery.ts';
import { DeliveryThread } from './delivery-thread.ts';

const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const SETTINGS: ThreadSettings = {
  incarnation: 1,
  secret: new Uint8Array(32),
  limits: { ...DEFAULT_DELIVERY_LIMITS, reportInterval: 50, stopGrace: 50 },
  admission: { ...OPEN_ADMISSION, threads: 1, slot: 1 },
  http2: false,
  foreign: null,
  pages: null,
  logConnections: false,
};
const HOSTS: ToThread = { type: 'hosts', hosts: [{ name: 'default', hostNames: ['*'], hasOrigins: true }] };
const clock = { now: () => 7_000_000, monotonic: () => 10 };

const opened: DeliveryThread[] = [];
afterEach(() => {
  for (const thread of opened.splice(0)) thread.receive([{ type: 'stop' }]);
  vi.useRealTimers();
});

function start(view: (feed: unknown, context: ViewContext) => Partial<DeliveryView>, checksOf?: ChecksOf) {
  const posted: FromThread[] = [];
  const whole = { update: () => undefined, handle: () => false, close: () => undefined };
  const views = { llhls: (settings: unknown, context: ViewContext) => ({ ...whole, ...view(settings, context) }) };
  const post = (message: FromThread): void => {
    posted.push(message);
    // It rests while a test prepares its requests.
    if (message.type === 'catch-up' && message.wanted) queueMicrotask(() => thread.receive([{ type: 'caught-up' }]));
  };
  const thread = new DeliveryThread({ settings: SETTINGS, views, clock, post, ...(checksOf !== undefined && { checksOf }) });
  opened.push(thread);
  thread.receive([HOSTS]);
  const told = <Type extends FromThread['type']>(type: Type) =>
    posted.filter((message): message is Extract<FromThread, { type: Type }> => message.type === type);
  return { thread, told };
}

function openFeed(feed: number): ToThread {
  const address = { vhost: 'default', app: 'app', stream: `stream${feed}` };
  return { type: 'feed-open', feed, kind: 'llhls', address, crossDomains: null, settings: feed };
}

function listen(listener: number, tls = false): ToThread {
  return { type: 'listen', listener, request: { host: '127.0.0.1', port: 0, tls }, first: true };
}

it('answers all requests waiting for a stream when its view fails on one of them', async () => {
  const { thread, told } = start(() => ({
    handle: (exchange) => {
      if (exchange.query === 'bad') throw new TypeError('made up');
      exchange.respond(200, [], []);
      return true;
    },
  }));
  thread.receive([listen(1)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const url = `http://127.0.0.1:${told('listening')[0]?.port}/app/stream1/list.m3u8`;
  const bad = fetch(`${url}?bad`);
  await until('the question', () => told('demand').length > 0, WAIT);
  const good = fetch(url);
  await until('two waiting requests', () => told('report').at(-1)?.waiting === 2, WAIT);
  thread.receive([openFeed(1), { type: 'demand-answer', question: 1, found: true }]);
  expect([(await bad).status, (await good).status]).toEqual([500, 200]);
});

it('answers 503 if it is unknown whether another server has the stream', async () => {
  const { thread, told } = start(() => ({ handle: () => false }));
  thread.receive([listen(1)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const asked = fetch(`http://127.0.0.1:${told('listening')[0]?.port}/app/stream1/list.m3u8`);
  await until('the question', () => told('demand').length > 0, WAIT);
  thread.receive([{ type: 'demand-answer', question: 1, found: 'unknown' }]);
  const response = await asked;
  expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([503, '1', RefusalText.NO_MAP]);
});

it('refuses new viewers while the server is drained, and serves existing ones', async () => {
  const { thread, told } = start(() => ({
    handle: (exchange) => {
      exchange.respond(200, [], []);
      return true;
    },
  }));
  thread.receive([listen(1), openFeed(1), { type: 'draining', on: true }]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const get = async (file: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${told('listening')[0]?.port}/app/stream1/${file}`)).status;
  expect([
    await get('llhls.m3u8'),
    await get('llhls.m3u8?session=1'),
    await get('chunklist_0_video_key_llhls.m3u8'),
    await get('seg.m4s'),
  ]).toEqual([503, 200, 200, 200]);
  thread.receive([{ type: 'draining', on: false }]);
  expect(await get('llhls.m3u8')).toBe(200);
});

it('closes all streams and stops when a view fails at its end', async () => {
  const closed: unknown[] = [];
  const { thread, told } = start((feed, context) => ({
    handle: (exchange) => {
      context.countViewer(exchange, 1000);
      exchange.respond(200, [], []);
      return true;
    },
    close: () => {
      closed.push(feed);
      throw new TypeError('made up');
    },
  }));
  thread.receive([listen(1), openFeed(1), openFeed(2)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  await fetch(`http://127.0.0.1:${told('listening')[0]?.port}/app/stream1/file`);
  thread.receive([{ type: 'stop' }]);
  await until('the end of the thread', () => told('stopped').length > 0, WAIT);
  expect(closed).toEqual([1, 2]);
  expect(told('log').map(({ message }) => message)).toEqual(Array(2).fill('the view of a stream failed'));
  expect(told('report').flatMap(({ sessionEvents }) => sessionEvents.map(({ ended }) => ended))).toEqual([null, 'the stream ended']);
});

it('reports the streams that are served, and the end of serving after a time without requests', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const reports = (count: number): unknown => vi.advanceTimersByTime(count * SETTINGS.limits.reportInterval);
  const { thread, told } = start(() => ({
    handle: (exchange) => {
      if (exchange.file !== 'list') return false;
      exchange.respond(200, [], []);
      return true;
    },
  }));
  thread.receive([listen(1), openFeed(1), openFeed(2)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const ask = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${told('listening')[0]?.port}/app/${path}`)).status;
  const news = (): string =>
    told('feed-watched')
      .map(({ feed, wanted }) => `${feed}${wanted ? '+' : '-'}`)
      .join(' ');
  expect([await ask('stream1/list'), await ask('stream2/none'), await ask('stream1/list')]).toEqual([200, 404, 200]);
  expect(news()).toBe('1+');
  reports(59);
  await ask('stream2/list');
  expect(news()).toBe('1+ 2+');
  reports(1);
  expect(news()).toBe('1+ 2+ 1-');
  await ask('stream1/list');
  reports(59);
  expect(news()).toBe('1+ 2+ 1- 1+ 2-');
});

it('reports the feeds read without a session since the last report', async () => {
  const { thread, told } = start((_feed, context) => ({
    handle: (exchange) => {
      if (exchange.file === 'read') context.noteReader();
      exchange.respond(200, [], []);
      return true;
    },
  }));
  thread.receive([listen(1), openFeed(1), openFeed(2)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const base = `http://127.0.0.1:${told('listening')[0]?.port}/app`;
  await fetch(`${base}/stream1/list`);
  await fetch(`${base}/stream2/read`);
  const read = (): readonly (readonly number[])[] => told('report').map(({ readFeeds }) => readFeeds);
  await until('a report with feeds', () => read().some((feeds) => feeds.length > 0), WAIT);
  const reports = read().length;
  await until('the next report with feeds', () => read().length > reports, WAIT);
  expect(read().filter((feeds) => feeds.length > 0)).toEqual([[2]]);
});

it('closes a port that is released while it opens', async () => {
  const { thread, told } = start(() => ({}));
  thread.receive([listen(1), { type: 'unlisten', listener: 1 }]);
  await until('the answer', () => told('listening').length + told('listen-failed').length > 0, WAIT);
  expect(told('listen-failed')).toMatchObject([{ listener: 1, message: 'the port was given up while it opened' }]);
});

it('reports that a port cannot be opened with unusable certificates', async () => {
  const { thread, told } = start(() => ({}));
  thread.receive([{ type: 'certificates', handover: 1, certificates: [{ hostNames: ['a'], cert: 'none', key: 'none' }] }, listen(1, true)]);
  await until('the answer', () => told('listen-failed').length > 0, WAIT);
});

it('gives views the monotonic clock', () => {
  const contexts: ViewContext[] = [];
  const { thread } = start((_feed, context) => {
    contexts.push(context);
    return {};
  });
  thread.receive([openFeed(1)]);
  expect(contexts.map((context) => context.now())).toEqual([clock.monotonic()]);
});

/** A virtual host whose viewers a control server decides about: here the test. */
function asked(): { hosts: ToThread; checksOf: ChecksOf; urls: string[]; answer: (said: Passed | Denied) => void } {
  const { promise, resolve } = Promise.withResolvers<Passed | Denied>();
  const urls: string[] = [];
  const check = {
    covers: () => true,
    judge: ({ url }: { url: string }) => {
      urls.push(url);
      return promise;
    },
  };
  const hosts: ToThread = { type: 'hosts', hosts: [{ name: 'default', hostNames: ['*'], hasOrigins: true, access: {} }] };
  return { hosts, checksOf: () => [check], urls, answer: resolve };
}

it('holds a new viewer until its verdict, and looks for no stream before', async () => {
  const { hosts, checksOf, urls, answer } = asked();
  const view = {
    handle: (exchange: DeliveryExchange) => {
      exchange.respond(200, [], [Buffer.from(`${exchange.admission?.protocol} until ${exchange.admission?.expiresAt}`)]);
      return true;
    },
  };
  const { thread, told } = start(() => view, checksOf);
  thread.receive([hosts, listen(1)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const base = `http://127.0.0.1:${told('listening')[0]?.port}`;
  const held = fetch(`${base}/app/stream1/llhls.m3u8?token=1`);
  const leaving = new AbortController();
  const left = fetch(`${base}/app/stream1/llhls.m3u8?token=2`, { signal: leaving.signal });
  await until('the questions', () => urls.length === 2, WAIT);
  expect([...urls].sort()).toEqual([1, 2].map((n) => `${base}/app/stream1/llhls.m3u8?token=${n}`));
  leaving.abort();
  await expect(left).rejects.toThrow();
  // Other requests do not wait for them.
  expect((await fetch(`${base}/`)).status).toBe(404);
  expect(told('demand')).toEqual([]);
  answer({ admitted: true, expiresAt: 8_000_000 });
  await until('the report of the wanted stream', () => told('demand').length === 1, WAIT);
  const reports = told('report').length;
  await until('another report', () => told('report').length > reports + 1, WAIT);
  // A client that has left waits for nothing.
  expect(told('report').at(-1)?.waiting).toBe(1);
  thread.receive([openFeed(1), { type: 'demand-answer', question: 1, found: true }]);
  expect(await (await held).text()).toBe('llhls until 8000000');
  expect(told('demand')).toHaveLength(1);
});

it('creates no session for a viewer that was admitted before the application had tokens', async () => {
  const { hosts, checksOf, urls, answer } = asked();
  const { thread, told } = start(
    (_settings, context) => ({
      handle: (exchange) => {
        exchange.respond(200, [], [Buffer.from(`${context.createSession(exchange)?.token}`)]);
        return true;
      },
    }),
    checksOf,
  );
  thread.receive([hosts, openFeed(1), listen(1)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const held = fetch(`http://127.0.0.1:${told('listening')[0]?.port}/app/stream1/llhls.m3u8`);
  await until('the question', () => urls.length === 1, WAIT);
  const keys = { applications: new Map([['app', { playTokens: [] }]]), template: {} };
  thread.receive([{ type: 'hosts', hosts: [{ name: 'default', hostNames: ['*'], access: {}, keys }] }]);
  answer({ admitted: true, expiresAt: 8_000_000 });
  expect(await (await held).text()).toBe('undefined');
});

it('answers a late refusal with its reason, and looks for no stream', async () => {
  const { hosts, checksOf, urls, answer } = asked();
  const { thread, told } = start(() => ({}), checksOf);
  thread.receive([hosts, listen(1)]);
  await until('the port', () => told('listening').length > 0, WAIT);
  const held = fetch(`http://127.0.0.1:${told('listening')[0]?.port}/app/stream1/thumb.jpg`);
  await until('the question', () => urls.length === 1, WAIT);
  answer({ admitted: false, code: 'no', reason: 'not today' });
  const response = await held;
  expect([response.status, await response.text(), told('demand').length]).toEqual([401, 'not today\n', 0]);
  expect(told('log')).toMatchObject([{ level: 'warn', message: 'viewer refused: not today', fields: { code: 'no', over: 'thumbnail' } }]);
});
