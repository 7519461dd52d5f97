import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../../test/fakes/blob-pool.ts';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { loadAddon } from '../../native/addon.ts';

const THREADS = 2;
const ANY = { host: '127.0.0.1', port: 0, tls: false };

describe.skipIf(loadAddon().addon === null)('delivery threads that sleep', () => {
  let started: BlobPool | null = null;

  async function start(): Promise<BlobPool> {
    started = await startBlobPool(THREADS, {}, { sleeps: true });
    return started;
  }

  const running = ({ pool }: BlobPool): number => pool.status().threads.filter(({ thread }) => thread > 0).length;
  const ask = async (port: number, file: string): Promise<string> => {
    const client = await RawClient.open(port);
    client.send(`GET /app/stream/${file} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
    return await client.end();
  };
  /** Whether another program can bind the port. */
  const isFree = async (port: number): Promise<boolean> => {
    const other = createServer();
    const outcome = once(other, 'listening').then(
      () => true,
      () => false,
    );
    other.listen(port, '127.0.0.1');
    const free = await outcome;
    other.close();
    return free;
  };

  afterEach(async () => {
    await started?.pool.stop();
    await started?.pool.stop();
    started = null;
  });

  test('are started by the first connection, and answer all waiting connections with the current contents', async () => {
    const made = await start();
    const { port } = await made.pool.listen(ANY);
    const second = await made.pool.listen(ANY);
    const blobs = new BlobFeed(made.pool, 'stream');
    blobs.putText('list', 'the list');
    blobs.putBytes('seg', Buffer.alloc(200_000, 's'));
    for (let at = 0; at < 100; at += 1) blobs.putBytes('gone', Buffer.alloc(100_000, 'g'));
    blobs.drop('gone');
    expect([running(made), made.comings(), blobs.feed.watched]).toEqual([0, 0, false]);
    // Nobody has released the memory of the ended stream, and nobody has to.
    expect(made.pool.status().memory.retiring).toBe(0);
    const answers = await Promise.all(Array.from({ length: 40 }, async (_, at) => await ask(at % 2 === 0 ? port : second.port, 'list')));
    for (const answer of answers) expect(answer).toMatch(/\r\n\r\nthe list$/);
    expect(await ask(port, 'seg')).toContain('s'.repeat(200_000));
    expect([running(made), made.comings()]).toEqual([THREADS, 1]);
    await expect.poll(() => blobs.feed.watched).toBe(true);
    expect(made.logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
    // Ports that open later are opened by the threads.
    const later = await made.pool.listen(ANY);
    expect(await ask(later.port, 'list')).toMatch(/the list$/);
  });

  test('are not started by a stream', async () => {
    const made = await start();
    await made.pool.listen(ANY);
    new BlobFeed(made.pool, 'stream').putText('list', 'the list');
    await made.pool.setCertificates([]);
    expect(running(made)).toBe(0);
  });

  test('refuse an occupied port', async () => {
    const made = await start();
    const { port } = await made.pool.listen(ANY);
    await expect(made.pool.listen({ ...ANY, port })).rejects.toThrow('EADDRINUSE');
    expect(running(made)).toBe(0);
  });

  test('release ports without connections', async () => {
    const made = await start();
    const [one, other] = [await made.pool.listen(ANY), await made.pool.listen({ ...ANY, host: '*' })];
    expect([await isFree(one.port), await isFree(other.port)]).toEqual([false, false]);
    made.pool.unlisten(one.id);
    expect(await isFree(one.port)).toBe(true);
    await made.pool.stop();
    expect(await isFree(other.port)).toBe(true);
    await expect(made.pool.listen(ANY)).rejects.toThrow('stopping');
  });

  test('release a port that they have taken over', async () => {
    const made = await start();
    const { port } = await made.pool.listen(ANY);
    await ask(port, 'nothing');
    await made.pool.stop();
    expect(await isFree(port)).toBe(true);
  });

  test('stay started after a client that leaves at once', async () => {
    const made = await start();
    const { port } = await made.pool.listen(ANY);
    const passer = connect(port, '127.0.0.1');
    await once(passer, 'connect');
    passer.destroy();
    await expect.poll(() => running(made)).toBe(THREADS);
    expect(await ask(port, 'nothing')).toContain('404');
  });
});
