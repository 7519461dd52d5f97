import { describe, expect, test } from 'vitest';
import { BlobFeed, startBlobPool } from '../../../test/fakes/blob-pool.ts';
import { metricsText } from '../../../test/fakes/metrics-text.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { systemClock } from '../../util/clock.ts';
import { DeliveryPool } from './delivery-pool.ts';
import { httpMetrics } from './http-metrics.ts';

describe('a worker that crashes', () => {
  test('at its start fails the start of the pool', async () => {
    const logger = new RecordingLogger();
    const workerEntry = new URL('./no-such-file.ts', import.meta.url);
    const pool = new DeliveryPool({ threads: 1, views: {}, workerEntry, clock: systemClock, logger });
    await expect(pool.start()).rejects.toThrow('could not start');
    await pool.stop();
  });

  test('is started again and knows everything', async () => {
    const { pool, logger } = await startBlobPool(1);
    pool.setDefaultCrossDomains({ urls: ['*'], headers: [] });
    const blobs = new BlobFeed(pool, 'stream');
    blobs.putBytes('seg', Buffer.alloc(200_000, 's'));
    blobs.putText('list', 'the list');
    const { port } = await pool.listen({ host: '127.0.0.1', port: 0, tls: false });
    const get = (file: string): Promise<Response> => fetch(`http://127.0.0.1:${port}/app/stream/${file}`);
    const token = await (await get('new-session')).text();
    await expect.poll(() => [blobs.sessions, blobs.feed.watched]).toEqual([1, true]);
    blobs.feed.update({ crash: true });
    await expect.poll(() => pool.status().restarts).toBe(1);
    expect([blobs.sessions, blobs.feed.watched]).toEqual([0, false]);
    blobs.putText('later', 'said while it was away');
    await expect.poll(async () => (await get('list').catch(() => null))?.status, { timeout: 5000 }).toBe(200);
    expect(await (await get('seg')).text()).toBe('s'.repeat(200_000));
    expect(await (await get('later')).text()).toBe('said while it was away');
    expect(await (await get(`need-session?session=${token}`)).text()).toBe(token);
    await expect.poll(() => blobs.sessions).toBe(1);
    expect(logger.lines.find(({ level }) => level === 'error')?.fields).toMatchObject({
      reason: expect.stringContaining('crash on demand'),
    });
    await pool.stop();
  });

  test('leaves its counts in /metrics, without its connections, and counts as a restart', async () => {
    const { pool } = await startBlobPool(1);
    const blobs = new BlobFeed(pool, 'stream');
    blobs.putText('list', 'the list');
    const { port } = await pool.listen({ host: '127.0.0.1', port: 0, tls: false });
    const get = (file: string): Promise<Response> => fetch(`http://127.0.0.1:${port}/app/stream/${file}`);
    const page = (): Record<string, string | undefined> => {
      const lines = metricsText(httpMetrics(pool)).split('\n');
      return Object.fromEntries(lines.map((line) => [line.split(' ')[0]?.replace('millrace_', ''), line.split(' ')[1]]));
    };
    for (let n = 0; n < 5; n += 1) await (await get('list')).text();
    await (await get('nothing')).text();
    const counted = { http_requests_total: '6', 'http_responses_total{class="2xx"}': '5', 'http_responses_total{class="4xx"}': '1' };
    // A thread reports once a second.
    await expect.poll(page, { timeout: 10_000 }).toMatchObject({ ...counted, delivery_thread_restarts_total: '0' });
    const { http_sent_bytes_total: sent } = page();
    blobs.feed.update({ crash: true });
    await expect.poll(() => pool.status().restarts).toBe(1);
    expect(page()).toMatchObject({ ...counted, http_sent_bytes_total: sent, http_connections: '0', delivery_thread_restarts_total: '1' });
    await expect.poll(async () => (await get('list').catch(() => null))?.status, { timeout: 10_000 }).toBe(200);
    await expect.poll(() => Number(page()['http_requests_total']), { timeout: 10_000 }).toBeGreaterThan(6);
    expect(Number(page()['http_responses_total{class="2xx"}'])).toBeGreaterThan(5);
    await pool.stop();
  });
});
