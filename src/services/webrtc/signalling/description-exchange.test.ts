import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RawClient } from '../../../../test/fakes/raw-client.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { until } from '../../../../test/harness/poll.ts';
import { DescriptionExchange, type ExchangeOptions } from './description-exchange.ts';

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
    const place = { target, app: 'app', stream: 'live', file: '', direction: 'whip', transport: null };
    whip.handle(request, response, place as unknown as Parameters<DescriptionExchange['handle']>[2], '192.0.2.1');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, logger, opened };
}

test('a body that does not come to its end in time is 408, and what comes of it later opens nothing', async () => {
  const { port, opened, logger } = await exchange({ patience: 0.005 });
  const client = await RawClient.open(port);
  onTestFinished(() => void client.socket.destroy());
  client.send('POST /app/live?direction=whip HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nv');
  await client.until((text) => text.endsWith('the body did not arrive within 50 ms\n'));
  expect(client.text).toMatch(/^HTTP\/1\.1 408 /);
  client.send('=0\nGET /app/live HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.until((text) => text.includes(' 405 '));
  expect([opened, logger.lines]).toEqual([[], []]);
});

test('what fails before a session is opened is answered 500 and told to the log', async () => {
  const { port, opened, logger } = await exchange({ prepare: () => Promise.reject(new Error('the origin failed')) });
  const response = await fetch(`http://127.0.0.1:${port}/app/live?direction=whip`, { method: 'POST', body: 'v=0' });
  expect([response.status, await response.text(), opened]).toEqual([500, 'the server failed on this request\n', []]);
  expect(logger.matching('a WHIP request failed')).toHaveLength(1);
});

test('a client that goes waits for its turn no longer', async () => {
  const turns = new HeldTurns();
  const { port } = await exchange({ turns });
  const client = await RawClient.open(port);
  client.send('POST /app/live?direction=whip HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nv=0');
  await until('the request', () => turns.waiting.length === 1, { deadlineMs: 5000 });
  client.socket.destroy();
  await until('the end', () => turns.left === 1, { deadlineMs: 5000 });
});
