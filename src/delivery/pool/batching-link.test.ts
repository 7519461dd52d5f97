import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { QueueGauge } from '../../util/queue-gauge.ts';
import type { ToThread } from '../thread-protocol.ts';
import { BatchingLink } from './batching-link.ts';

function update(payload: string): ToThread {
  return { type: 'feed-update', feed: 1, payload };
}

describe('a link to a delivery thread', () => {
  const posted: (readonly ToThread[])[] = [];
  let link: BatchingLink;

  beforeEach(() => {
    vi.useFakeTimers();
    posted.length = 0;
    link = new BatchingLink({ post: (messages) => posted.push(messages), terminate: async () => {} });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('delivers at once while the thread is awake', () => {
    link.post([update('a')]);
    link.post([update('b')]);
    expect(posted).toEqual([[update('a')], [update('b')]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('batches messages that can wait, for a second at most', () => {
    link.rest();
    link.post([update('a')]);
    vi.advanceTimersByTime(600);
    link.post([update('b'), { type: 'block-retire', block: 7 }]);
    expect(posted).toEqual([]);
    vi.advanceTimersByTime(400);
    expect(posted).toEqual([[update('a'), update('b'), { type: 'block-retire', block: 7 }]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('counts waiting and delivered messages', () => {
    const gauge = new QueueGauge({ id: 1, urn: '', type: 'ToThread', threshold: 4096, clock: new ManualClock() });
    const gauged = new BatchingLink({ post: (messages) => posted.push(messages), terminate: async () => {} }, gauge);
    gauged.post([update('a')]);
    expect(gauge.status()).toMatchObject({ size: 0, peak: 1 });
    gauged.rest();
    gauged.post([update('b'), update('c')]);
    expect(gauge.size).toBe(2);
    gauged.resume();
    expect([gauge.size, posted.flat().length]).toEqual([0, 4]);
    gauged.rest();
    gauged.post([update('d')]);
    gauged.close();
    expect([gauge.size, gauge.dropped]).toEqual([0, 1]);
  });

  it('delivers the batch before urgent messages', () => {
    link.rest();
    link.post([update('a')]);
    link.post([{ type: 'stop' }]);
    expect(posted).toEqual([[update('a'), { type: 'stop' }]]);
  });

  it('sends a full batch before its time', () => {
    link.rest();
    for (let n = 0; n < 4096; n += 1) link.post([update('')]);
    expect(posted.map((messages) => messages.length)).toEqual([4096]);
  });

  it('reports to the thread that it has caught up', () => {
    link.rest();
    link.post([update('a')]);
    link.resume();
    link.post([update('b')]);
    expect(posted).toEqual([[update('a'), { type: 'caught-up' }], [update('b')]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('drops the batch of a terminated thread, even when closed twice', async () => {
    link.rest();
    link.post([update('a')]);
    link.close();
    await link.terminate();
    vi.advanceTimersByTime(5000);
    expect(posted).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
