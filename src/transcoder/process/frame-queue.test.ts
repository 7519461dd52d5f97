import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { FrameQueue } from './frame-queue.ts';

const queue = (threshold: number): FrameQueue<number> =>
  new FrameQueue({ role: 'filter_video', type: 'Frame', threshold, clock: new ManualClock() });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('FrameQueue', () => {
  it('take waits for put', async () => {
    const made = queue(2);
    const taken = made.take();
    expect(await made.put(1)).toBe(true);
    expect(await taken).toBe(1);
  });

  it('put waits for room', async () => {
    const made = queue(1);
    await made.put(1);
    let second = false;
    const put = made.put(2).then((done) => (second = done));
    await turn();
    expect(second).toBe(false);
    expect(made.offer(3)).toBe(false);
    expect(await made.take()).toBe(1);
    await put;
    expect(second).toBe(true);
    expect(await made.take()).toBe(2);
  });

  it('returns its frames after the close, then undefined, and accepts no further frame', async () => {
    const made = queue(2);
    await made.put(1);
    made.close();
    made.close();
    expect(await made.put(2)).toBe(false);
    expect(await made.take()).toBe(1);
    expect(await made.take()).toBeUndefined();
  });

  it('ends waiting calls when it is closed', async () => {
    const empty = queue(1);
    const taker = empty.take();
    empty.close();
    expect(await taker).toBeUndefined();
    const full = queue(1);
    await full.put(1);
    const putter = full.put(2);
    full.close();
    expect(await putter).toBe(false);
  });
});
