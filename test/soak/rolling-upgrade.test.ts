/** Nodes on separate hosts that die, or are replaced one after the other, while a viewer watches at an edge. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { DoubleWork } from '../harness/double-work.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { whyNoNetwork } from '../harness/network.ts';
import { LEASE_MS, NodeNetwork } from '../harness/node-network.ts';
import { until } from '../harness/poll.ts';

const DEADLINE = { deadlineMs: 60_000 };

const reason = whyNoNetwork();
if (reason !== null) console.log(`no tests of rolling upgrades: ${reason}`);

describe.skipIf(reason !== null)('replaced nodes', () => {
  let all: NodeNetwork;

  beforeAll(async () => {
    all = await NodeNetwork.open();
  }, 90_000);
  afterAll(async () => await all?.close());

  test('a killed node returns, then each node is drained and restarted: all works continue, and the viewer keeps playing', async () => {
    const { edge } = all;
    const killed = await all.divided();
    await all.registered(killed);
    const reader = await LlhlsReader.open([edge.server.http('film', 'llhls.m3u8')]);
    onTestFinished(async () => await reader.stop());
    const reloaded = async (times: number): Promise<void> => {
      const before = reader.reloads;
      await until('the viewer to get further', () => reader.reloads >= before + times, DEADLINE);
    };
    await reloaded(4);
    const began = (await all.filmAtEdge()).createdTime;
    const looks = DoubleWork.begin(all);
    onTestFinished(async () => void (await looks.stop()));

    await killed.server.kill();
    const survivor = all.other(killed);
    expect(await all.divided([survivor])).toBe(survivor);
    await all.comesFrom(survivor);
    await reloaded(4);
    await killed.server.restart();
    expect(await all.divided()).toBe(survivor);

    for (const node of [survivor, killed]) {
      const next = all.other(node);
      node.server.child.signal('SIGTERM');
      // Other nodes take its work over before it ends, and it ends because it is empty.
      await until('the other node does all three works', async () => (await all.worksOf(next)).length === 3, DEADLINE);
      await all.comesFrom(next);
      expect(await node.server.child.ended(60_000)).toEqual({ code: 0, signal: null });
      await node.server.restart();
      await until('the node is healthy', async () => (await all.health(node)) === 'ok', DEADLINE);
      expect(await all.divided()).toBe(next);
      await reloaded(4);
    }
    for (const [work, ms] of await looks.stop()) expect(ms, work).toBeLessThan(LEASE_MS);
    expect((await all.filmAtEdge()).createdTime).toBe(began);
    expect(reader.faults.filter((fault) => !fault.includes('answered 503'))).toEqual([]);
    await all.registered(survivor);
  }, 300_000);
});
