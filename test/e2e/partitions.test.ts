/**
 * Separate hosts that lose packets between them: shared work is done once, viewers of an edge stay, and everything recovers afterwards.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { DoubleWork } from '../harness/double-work.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { whyNoNetwork } from '../harness/network.ts';
import { LEASE_MS, NodeNetwork } from '../harness/node-network.ts';
import { until } from '../harness/poll.ts';

const DEADLINE = { deadlineMs: 40_000 };

const reason = whyNoNetwork();
if (reason !== null) console.log(`no tests of partitions: ${reason}`);

describe.skipIf(reason !== null)('nodes whose packets are dropped', () => {
  let all: NodeNetwork;
  let reader: LlhlsReader;

  beforeAll(async () => {
    all = await NodeNetwork.open();
  }, 90_000);
  afterAll(async () => await all?.close());

  async function reloaded(times: number): Promise<void> {
    const before = reader.reloads;
    await until('the viewer to get further', () => reader.reloads >= before + times, DEADLINE);
  }

  test('a node loses Redis, then an edge its origin, then the edge Redis: every work is done by exactly one node, and the viewer keeps playing', async () => {
    const { network, edge } = all;
    const holder = await all.divided();
    const other = all.other(holder);
    await all.registered(holder);
    reader = await LlhlsReader.open([edge.server.http('film', 'llhls.m3u8')]);
    onTestFinished(async () => await reader.stop());
    await reloaded(4);
    const began = (await all.filmAtEdge()).createdTime;

    // A node without Redis gives up its work before another node takes it.
    const looks = DoubleWork.begin(all);
    onTestFinished(async () => void (await looks.stop()));
    network.cut(holder.host, 'redis');
    await until('the node is degraded', async () => (await all.health(holder)) === 'degraded', DEADLINE);
    await until('the other node does all three works', async () => (await all.worksOf(other)).length === 3, DEADLINE);
    await all.comesFrom(other);
    await reloaded(4);
    network.heal(holder.host, 'redis');
    await until('the node to be well', async () => (await all.health(holder)) === 'ok', DEADLINE);
    expect(await all.divided()).toBe(other);
    await all.registered(other);
    for (const [work, ms] of await looks.stop()) expect(ms, work).toBeLessThan(LEASE_MS);

    // An edge that is cut off from its origin keeps the stream, and continues it from the same origin afterwards.
    const said = edge.server.log.length;
    network.cut(edge.host, other.host);
    await until('the edge warns about the stream', () => /"level":"warn".*"stream":"film"/.test(edge.server.log.slice(said)), DEADLINE);
    expect((await all.filmAtEdge()).createdTime).toBe(began);
    network.heal(edge.host, other.host);
    await reloaded(8);
    await all.comesFrom(other);
    // A viewer of a missing part is told to retry; segments continue consistently.
    expect(reader.faults.filter((fault) => !fault.includes('answered 503'))).toEqual([]);

    // An edge without Redis serves its present streams, and reports unknown streams as unknown.
    const faults = reader.faults.length;
    network.cut(edge.host, 'redis');
    await until('the edge is degraded', async () => (await all.health(edge)) === 'degraded', DEADLINE);
    expect((await fetch(edge.server.http('unknown', 'llhls.m3u8'))).status).toBe(503);
    await reloaded(4);
    network.heal(edge.host, 'redis');
    await until('the edge to be well', async () => (await all.health(edge)) === 'ok', DEADLINE);
    expect((await fetch(edge.server.http('unknown', 'llhls.m3u8'))).status).toBe(404);
    await reloaded(2);
    expect(reader.faults.slice(faults)).toEqual([]);
    expect((await all.filmAtEdge()).createdTime).toBe(began);
  }, 180_000);
});
