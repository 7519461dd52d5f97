import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DENIED, FakeLease } from '../../../../test/fakes/fake-gatekeeper.ts';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RawClient } from '../../../../test/fakes/raw-client.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { until } from '../../../../test/harness/poll.ts';
import type { Verdict } from '../../../access/access-check.ts';
import { DescriptionExchange, type ExchangeOptions, ExchangeRefused } from './description-exchange.ts';

async function exchange(options: Partial<ExchangeOptions> = {}): Promise<{ port: number; logger: RecordingLogger; opened: string[] }> {
  const logger = new RecordingLogger();
  const opened: string[] = [];
  const session = { accept: (offer: string) => offer, announced: () => undefined, close: () => undefined };
  const whip = new DescriptionExchange({
    name: 'WHIP',
    peer: 'publisher',
    open: ({ target }) => {
      opened.push(target.stream);
      return session;
    },
    crossOrigin: () => [],
    iceServersFor: () => null,
    logger,
    ...options,
  });
  const target = { vhost: 'default', app: 'app', stream: 'live', file: '' };
  const server = createServer((request, response) => {
    const [, app, stream, file = ''] = request.url?.split('?', 1)[0]?.split('/') ?? [];
    const place = { target, app, stream, file, direction: 'whip', transport: null };
    whip.handle(request, response, place as unknown as Parameters<DescriptionExchange['handle']>[2], '192.0.2.1');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, logger, opened };
}

test('an incomplete body is answered 408 in time, and its late rest opens nothing', async () => {
  const { port, opened, logger } = await exchange({ timeoutScale: 0.005 });
  const client = await RawClient.open(port);
  onTestFinished(() => void client.socket.destroy());
  client.send('POST /app/live?direction=whip HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nv');
  await client.until((text) => text.endsWith('the body did not arrive within 50 ms\n'));
  expect(client.text).toMatch(/^HTTP\/1\.1 408 /);
  client.send('=0\nGET /app/live HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.until((text) => text.includes(' 405 '));
  expect([opened, logger.lines]).toEqual([[], []]);
});

test('a failure before a session is opened is answered 500 and logged', async () => {
  const { port, opened, logger } = await exchange({ prepare: () => Promise.reject(new Error('the origin failed')) });
  const response = await fetch(`http://127.0.0.1:${port}/app/live?direction=whip`, { method: 'POST', body: 'v=0' });
  expect([response.status, await response.text(), opened]).toEqual([500, 'the server failed on this request\n', []]);
  expect(logger.matching('a WHIP request failed')).toHaveLength(1);
});

test('a client that disconnects leaves the queue', async () => {
  const turns = new HeldTurns();
  const { port } = await exchange({ turns });
  const client = await RawClient.open(port);
  client.send('POST /app/live?direction=whip HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nv=0');
  await until('the request', () => turns.waiting.length === 1, { deadlineMs: 5000 });
  client.socket.destroy();
  await until('the end', () => turns.left === 1, { deadlineMs: 5000 });
});

function post(port: number): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/app/live?direction=whip`, { method: 'POST', body: 'v=0' });
}

test('a refused request is answered 401 with the reason; nothing is prepared or opened', async () => {
  const prepare = vi.fn(() => null);
  const { port, opened } = await exchange({ admit: () => DENIED, prepare });
  const response = await post(port);
  expect([response.status, await response.text()]).toEqual([401, `${DENIED.reason}\n`]);
  expect([opened, prepare.mock.calls.length]).toEqual([[], 0]);
});

test('a refused client gets the challenge of the verdict, if there is one', async () => {
  const open = await exchange({ admit: () => DENIED });
  const asking = await exchange({ admit: () => ({ ...DENIED, challenge: 'Bearer' }) });
  const challenges = [open, asking].map(async ({ port }) => (await post(port)).headers.get('www-authenticate'));
  expect(await Promise.all(challenges)).toEqual([null, 'Bearer']);
});

test('a request waits for its verdict; a client that left by then opens nothing, and its lease ends', async () => {
  const { promise, resolve } = Promise.withResolvers<Verdict>();
  const admit = vi.fn(() => promise);
  const { port, opened } = await exchange({ admit });
  const leaving = new AbortController();
  const left = fetch(`http://127.0.0.1:${port}/app/live?direction=whip`, { method: 'POST', body: 'v=0', signal: leaving.signal });
  await until('the question', () => admit.mock.calls.length === 1, { deadlineMs: 5000 });
  leaving.abort();
  await expect(left).rejects.toThrow();
  const staying = post(port);
  await until('the question', () => admit.mock.calls.length === 2, { deadlineMs: 5000 });
  const stay = new FakeLease();
  resolve(stay);
  expect((await staying).status).toBe(201);
  await until('the end of one stay', () => stay.closes === 1, { deadlineMs: 5000 });
  expect(opened).toEqual(['live']);
});

test('a lease ends with its session, and an expired lease ends the session', async () => {
  const stays: FakeLease[] = [];
  const ends: (() => void)[] = [];
  const closed: unknown[] = [];
  const { port } = await exchange({
    admit: () => {
      const stay = new FakeLease();
      stays.push(stay);
      return stay;
    },
    open: ({ onEnded }) => {
      ends.push(() => onEnded('it has ended'));
      return { accept: (offer) => offer, announced: () => undefined, close: (...reason) => closed.push(reason) };
    },
  });
  for (let n = 0; n < 3; n += 1) await post(port);
  ends[1]?.();
  stays[2]?.expire?.('its time is over');
  expect(stays.map(({ closes }) => closes)).toEqual([0, 1, 1]);
  expect(closed).toEqual([['its time is over', 'expired']]);
});

test('an admitted client without a stream ends its admission', async () => {
  const stay = new FakeLease();
  const { port } = await exchange({
    admit: () => stay,
    open: () => {
      throw new ExchangeRefused(404, 'none');
    },
  });
  expect((await post(port)).status).toBe(404);
  await until('the end of the stay', () => stay.closes === 1, { deadlineMs: 5000 });
});

test('a control server may redirect an offer to another stream; the session keeps the requested address', async () => {
  const prepare = vi.fn(() => null);
  const { port, opened } = await exchange({
    admit: () => FakeLease.to('http://other.example/b/renamed'),
    targetOf: ({ newUrl }) => ({ vhost: 'other', app: 'b', stream: `${newUrl?.split('/').at(-1)}`, playlist: '' }),
    prepare,
  });
  const response = await post(port);
  expect([response.status, opened]).toEqual([201, ['renamed']]);
  expect(response.headers.get('location')).toMatch(/^\/app\/live\/\w+\?direction=whip$/);
  expect(prepare).toHaveBeenCalledWith(expect.objectContaining({ stream: 'renamed' }), '192.0.2.1');
});

test('a client that a control server refuses gets its reason', async () => {
  let said = 'you have not paid';
  const { port } = await exchange({ admit: () => ({ ...DENIED, said }) });
  const response = await post(port);
  expect([response.status, await response.text()]).toEqual([401, 'you have not paid\n']);
  said = 'не оплачено';
  const foreign = await post(port);
  expect([foreign.headers.get('content-type'), await foreign.text()]).toEqual(['text/plain; charset=utf-8', `${said}\n`]);
});

test('a session is ended through its own resource only, and ignores candidates sent to another stream', async () => {
  const close = vi.fn();
  const announced = vi.fn();
  const { port } = await exchange({ open: () => ({ accept: (offer: string) => offer, announced, close }) });
  const path = (await post(port)).headers.get('location') ?? '';
  const word = path.split(/[/?]/)[3] ?? '';
  expect(word).toMatch(/^\w{16}$/);
  const ask = async (method: string, at: string): Promise<number> => {
    const body = method === 'PATCH' ? { body: 'a=ice-ufrag:x' } : {};
    return (await fetch(`http://127.0.0.1:${port}${at}`, { method, ...body })).status;
  };
  const others = [
    `/app/other/${word}`,
    `/other/live/${word}`,
    `/live/app/${word}`,
    `/app/live/${word}x`,
    `/app/live/__proto__`,
    '/app/live',
  ];
  for (const at of others) expect([at, await ask('DELETE', at)]).toEqual([at, 404]);
  for (const at of others) expect([at, await ask('PATCH', at)]).toEqual([at, at === '/app/live' ? 400 : 404]);
  expect([close.mock.calls, announced.mock.calls]).toEqual([[], []]);
  expect(await ask('PATCH', path)).toBe(204);
  expect(await ask('DELETE', path)).toBe(200);
  expect([close.mock.calls.length, announced.mock.calls.length]).toEqual([1, 1]);
  expect(await ask('DELETE', path)).toBe(404);
});
