import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type BlobPool, startBlobPool } from '../../../test/fakes/blob-pool.ts';
import { RawClient } from '../../../test/fakes/raw-client.ts';

describe.each([
  ['in the main thread', 0],
  ['in two workers', 2],
])('delivery %s', (_name, threads) => {
  let started: BlobPool | null = null;
  let port = 0;

  async function start(): Promise<BlobPool> {
    started = await startBlobPool(threads);
    ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false }));
    return started;
  }

  afterEach(async () => {
    await started?.pool.stop();
    started = null;
  });

  test('an occupied port rejects with EADDRINUSE', async () => {
    const { pool } = await start();
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    const { port: taken } = blocker.address() as { port: number };
    await expect(pool.listen({ host: '127.0.0.1', port: taken, tls: false })).rejects.toThrow('EADDRINUSE');
    blocker.close();
  });

  test('a port shared among the threads of another server is occupied, too', async () => {
    await start();
    const other = await startBlobPool(threads);
    await expect(other.pool.listen({ host: '127.0.0.1', port, tls: false })).rejects.toThrow('EADDRINUSE');
    await other.pool.stop();
  });

  test('IPv4 and IPv6 are separate ports', async () => {
    const { pool } = await start();
    const all = await pool.listen({ host: '*', port: 0, tls: false });
    const six = await pool.listen({ host: '::', port: all.port, tls: false });
    expect(six.port).toBe(all.port);
  });

  test('a closed port refuses connections', async () => {
    const { pool } = await start();
    const second = await pool.listen({ host: '127.0.0.1', port: 0, tls: false });
    pool.unlisten(second.id);
    await expect.poll(async () => (await RawClient.open(second.port).catch(() => null))?.destroy() ?? 'refused').toBe('refused');
  });
});
