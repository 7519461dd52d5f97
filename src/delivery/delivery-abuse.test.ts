import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../test/fakes/blob-pool.ts';
import { RawClient } from '../../test/fakes/raw-client.ts';
import { DEFAULT_HTTP_LIMITS } from './http-limits.ts';

const CLIENTS = 500;
const HEAD = 'Host: 127.0.0.1\r\n\r\n';

/** Abuse of the server by a client. */
const ABUSES: readonly ((client: RawClient) => void)[] = [
  (client) => client.send(randomBytes(2000)),
  (client) => client.send('GET /app/stream/seg HTT'),
  (client) => client.send(`GET /app/stream/wait-never HTTP/1.1\r\n${HEAD}`),
  (client) => client.socket.end(`GET /app/stream/wait-never HTTP/1.1\r\n${HEAD}`),
  (client) => {
    client.socket.pause();
    client.send(`GET /app/stream/seg HTTP/1.1\r\n${HEAD}`.repeat(5));
  },
  (client) => {
    client.send(`GET /app/stream/seg HTTP/1.1\r\n${HEAD}`);
    client.socket.once('data', () => client.socket.resetAndDestroy());
  },
  (client) => client.socket.end(),
  (client) => client.socket.resetAndDestroy(),
  (client) => client.send(`POST /app/stream/seg HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n${'x'.repeat(5000)}`),
  (client) => client.send(`GET /app/stream/throw HTTP/1.1\r\n${HEAD}`),
];

describe.each([
  ['in the main thread', 0],
  ['in two workers', 2],
])('abuse of delivery %s', (_name, threads) => {
  let started: BlobPool;
  let port: number;
  let blobs: BlobFeed;

  beforeEach(async () => {
    started = await startBlobPool(threads, {
      // A loaded machine may take a while from a client's connection to its request; no good request may be late.
      http: { ...DEFAULT_HTTP_LIMITS, headerTime: 3000, idleTime: 3000, sendTime: 1000, lingerTime: 200, sweepInterval: 20 },
    });
    blobs = new BlobFeed(started.pool, 'stream');
    blobs.putBytes('seg', randomBytes(20_000_000));
    ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false }));
  });

  afterEach(() => started.pool.stop());

  test(`${CLIENTS} misbehaving clients leave no connections and no memory behind`, async () => {
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, n) => {
        const client = await RawClient.open(port, { allowHalfOpen: true });
        ABUSES[n % ABUSES.length]?.(client);
        return client;
      }),
    );
    const kept = (): Record<string, number> => {
      const sum = { connections: 0, waiting: 0, blocksInFlight: 0 };
      for (const { report } of started.pool.status().threads) {
        sum.connections += report?.connections ?? 0;
        sum.waiting += report?.waiting ?? 0;
        sum.blocksInFlight += report?.blocksInFlight ?? 0;
      }
      return sum;
    };
    const waiters = clients.filter((_client, n) => n % ABUSES.length === 2);
    await expect.poll(kept, { timeout: 25_000 }).toEqual({ connections: waiters.length, waiting: waiters.length, blocksInFlight: 0 });
    for (const waiter of waiters) waiter.socket.resetAndDestroy();
    await expect.poll(kept).toEqual({ connections: 0, waiting: 0, blocksInFlight: 0 });
    blobs.drop('seg');
    await expect.poll(() => started.pool.status().memory.retiring).toBe(0);
    blobs.putText('still', 'alive');
    // A thread may see the request before the new file.
    await expect.poll(async () => (await fetch(`http://127.0.0.1:${port}/app/stream/still`)).text()).toBe('alive');
    for (const client of clients) client.destroy();
  });
});
