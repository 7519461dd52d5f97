import { describe, expect, it } from 'vitest';
import { StreamEpoch } from './stream-epoch.ts';

const START = 1_000_000;

/** Packets every 40 ms from `from` to `to` (media ms), each `late` ms late. */
function feed(epoch: StreamEpoch, from: number, to: number, late: number): boolean {
  let moved = false;
  for (let media = from; media < to; media += 40) moved = epoch.observe(media, START + media + late) || moved;
  return moved;
}

function playing(): StreamEpoch {
  const epoch = new StreamEpoch();
  epoch.observe(0, START + 300);
  epoch.observe(40, START + 40);
  epoch.settle();
  feed(epoch, 80, 20_000, 0);
  return epoch;
}

describe('StreamEpoch', () => {
  it('uses the packet with the least delay', () => {
    expect(playing().value).toBe(START);
  });

  it('follows a source whose clock stood still, within seconds', () => {
    const epoch = playing();
    expect(feed(epoch, 20_000, 32_000, 7000)).toBe(true);
    expect(epoch.value).toBe(START + 7000);
  });

  it('does not change when a stalled source catches up', () => {
    const epoch = playing();
    for (let media = 20_000; media < 27_000; media += 40) expect(epoch.observe(media, START + 27_000)).toBe(false);
    expect(feed(epoch, 27_000, 40_000, 0)).toBe(false);
    expect(epoch.value).toBe(START);
  });

  it('ignores delay', () => {
    const epoch = playing();
    expect(feed(epoch, 20_000, 40_000, 900)).toBe(false);
  });

  it('follows a source that runs ahead', () => {
    const epoch = playing();
    expect(feed(epoch, 20_000, 32_000, -5000)).toBe(true);
    expect(epoch.value).toBe(START - 5000);
  });

  it('improves its estimate after some seconds, in both directions', () => {
    for (const late of [-300, 400]) {
      const epoch = playing();
      expect(epoch.estimate).toBe(START);
      feed(epoch, 20_000, 32_000, late);
      expect([epoch.value, epoch.estimate]).toEqual([START, START + late]);
    }
    const young = new StreamEpoch();
    young.observe(0, START);
    young.settle();
    young.observe(40, START + 10);
    expect(young.estimate).toBe(START - 30);
  });
});
