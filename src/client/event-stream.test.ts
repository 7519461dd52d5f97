import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { MillraceClient } from './client.ts';
import { MillraceError, UnreachableError } from './error.ts';
import type { EventOptions, LiveEvent } from './event-stream.ts';

let server: Server;
let client: MillraceClient;
let asked: IncomingMessage[];
let gone: number;
/** The server's treatment of each connection, in order. */
let answers: ((response: ServerResponse) => void)[];

beforeEach(async () => {
  [asked, answers, gone] = [[], [], 0];
  server = createServer((request, response) => {
    response.once('close', () => {
      gone += 1;
    });
    asked.push(request);
    const answer = answers[asked.length - 1] ?? answers.at(-1);
    answer?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = new MillraceClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 's3cret', timeout: 5000 });
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const HELLO = 'retry: 5\nid: r-0\nevent: hello\ndata: {"type":"hello"}\n\n';
const created = (n: number, stream = 'live') =>
  `id: r-${n}\nevent: stream.created\ndata: {"type":"stream.created","stream":"${stream}"}\n\n`;

function sends(text: string | Buffer, end = false) {
  return (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);
    if (end) response.end();
  };
}

/** The next `count` events. */
async function take(count: number, options: EventOptions = {}): Promise<LiveEvent[]> {
  const events: LiveEvent[] = [];
  for await (const event of client.events(options)) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

test('passes events on when they arrive, with the token and the filter in the request', async () => {
  answers = [sends(`${HELLO}: \n\n${created(1)}${created(2, 'größe')}`)];
  const events = await take(3, { types: 'streams', vhost: 'default' });
  expect(events).toEqual([{ type: 'hello' }, { type: 'stream.created', stream: 'live' }, { type: 'stream.created', stream: 'größe' }]);
  expect(asked[0]?.url).toBe('/v1/events?types=streams&vhost=default');
  expect(asked[0]?.headers).toMatchObject({ accept: 'text/event-stream', authorization: 'Bearer s3cret' });
  expect(asked[0]?.headers).not.toHaveProperty('last-event-id');
});

test('events may arrive in any pieces', async () => {
  const bytes = Buffer.from(`${HELLO}${created(1, 'größe')}`.replaceAll('\n', '\r\n'));
  answers = [
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const next = (at: number): void => {
        if (at < bytes.length) response.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1));
      };
      next(0);
    },
  ];
  expect((await take(2))[1]).toEqual({ type: 'stream.created', stream: 'größe' });
});

test('a broken connection is reopened after the last event, with the delay that the server asks for', async () => {
  const lost: string[] = [];
  answers = [
    sends(HELLO + created(1), true),
    (response) => void response.socket?.destroy(),
    (response) => void response.writeHead(503).end('{"message":"Too many","statusCode":503}'),
    sends(`${created(2)}event: gap\ndata: {"type":"gap","missed":7}\n\n`),
  ];
  const events = await take(4, { onLost: ({ message }) => lost.push(message) });
  expect(events.slice(2)).toEqual([
    { type: 'stream.created', stream: 'live' },
    { type: 'gap', missed: 7 },
  ]);
  expect(asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'r-1', 'r-1', 'r-1']);
  expect(lost).toEqual(['the server ended the connection', expect.stringMatching(/^no answer from http/), 'Too many']);
});

test('a refusal ends it, and so does a first connection that fails', async () => {
  answers = [(response) => void response.writeHead(503).end('{"message":"Too many","statusCode":503}')];
  await expect(take(1)).rejects.toMatchObject({ status: 503, message: 'Too many' });
  asked = [];
  answers = [sends(HELLO, true), (response) => void response.writeHead(401).end('{"message":"no","statusCode":401}')];
  await expect(take(2)).rejects.toBeInstanceOf(MillraceError);
  asked = [];
  answers = [(response) => void response.socket?.destroy()];
  await expect(take(1)).rejects.toBeInstanceOf(UnreachableError);
});

test('leaving the loop closes the connection', async () => {
  answers = [sends(HELLO)];
  await take(1);
  await expect.poll(() => gone).toBe(1);
  expect(asked).toHaveLength(1);
});

test('the signal of the caller ends it with its own reason, also between connections', async () => {
  const reason = new Error('the user went away');
  const during = new AbortController();
  answers = [sends(HELLO)];
  const following = (async () => {
    for await (const _ of client.events({ signal: during.signal })) during.abort(reason);
  })();
  await expect(following).rejects.toBe(reason);

  const between = new AbortController();
  asked = [];
  answers = [sends(HELLO.replace('retry: 5', 'retry: 60000'), true)];
  const waiting = take(2, { signal: between.signal, onLost: () => setImmediate(() => between.abort(reason)) });
  await expect(waiting).rejects.toBe(reason);
});

test.each([
  ['an event without an end', `data: ${'x'.repeat(1_100_000)}`, /more than 1048576 characters/],
  ['an event that is not JSON', 'data: {\n\n', /not JSON/],
])('%s is lost with an error, and its size is bounded', async (_what, text, message) => {
  const lost: string[] = [];
  answers = [sends(HELLO + text), sends(created(1))];
  expect(await take(2, { onLost: (error) => lost.push(error.message) })).toHaveLength(2);
  expect(lost).toEqual([expect.stringMatching(message)]);
});

test('a server that does not answer is awaited up to the timeout', async () => {
  answers = [() => undefined];
  const { url } = client;
  client = new MillraceClient({ url, timeout: 50 });
  await expect(take(1)).rejects.toThrow(`no answer from ${url} (not within 50 ms)`);
});

test('a silent server is disconnected and asked again', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const lost: string[] = [];
  answers = [sends(HELLO), sends(created(1))];
  const events: LiveEvent[] = [];
  const taken = (async () => {
    for await (const event of client.events({ onLost: ({ message }) => lost.push(message) })) {
      events.push(event);
      if (events.length === 2) return;
    }
  })();
  await expect.poll(() => events).toHaveLength(1);
  // The polls above have moved the clock on a little.
  vi.advanceTimersByTime(40_000);
  // Nothing is under way that would still come to its end.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(lost).toEqual([]);
  vi.advanceTimersByTime(5000);
  await expect.poll(() => lost).toEqual(['the server was silent for 45 s']);
  const later = (): LiveEvent[] => {
    vi.advanceTimersByTime(5);
    return events;
  };
  await expect.poll(later).toHaveLength(2);
  await taken;
});
