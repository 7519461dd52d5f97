/** Viewers at nodes that wait for a shared pull: when the pulling node dies, they keep the stream, even at the node that takes over. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath, type StreamInformation } from '../harness/api-client.ts';
import { LlhlsReader } from '../harness/llhls-reader.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { SrtViewer } from '../harness/srt-viewer.ts';
import { RedisServer } from '../support/redis-server.ts';

const LEASE_MS = 3000;
const DEADLINE = { deadlineMs: 40_000 };
const STREAM = apiPath.stream('pulled');

interface Node {
  readonly server: TestServer;
  readonly ovtPort: number;
  readonly srtPort: number;
}

let redis: RedisServer;
let folder: string;
let source: TestServer;
let sourcePort = 0;
let encoder: FfmpegPublisher;
let nodes: readonly Node[] = [];

async function startNode(): Promise<Node> {
  const [ovtPort = 0, ingest = 0, egress = 0] = await freePorts(3);
  const shared = `<SharedWork><Group>g</Group><LeaseTime>${LEASE_MS}</LeaseTime></SharedWork>`;
  const store = `<OriginHostName>127.0.0.1</OriginHostName><RedisServer><Host>${redis.address}</Host></RedisServer>${shared}`;
  const origins = `<OriginMapStore>${store}</OriginMapStore>`;
  const server = await startServer({ origins, ovtPort, srt: { ingest, egress }, withoutHls: true, originMode: true, segmentDuration: 1 });
  return { server, ovtPort, srtPort: egress };
}

beforeAll(async () => {
  redis = await RedisServer.start();
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-viewers-'));
  [sourcePort = 0] = await freePorts(1);
  source = await startServer({ ovtPort: sourcePort, withoutHls: true, withoutLlhls: true });
  encoder = publish({ url: source.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  nodes = await Promise.all([startNode(), startNode(), startNode()]);
  await encoder.sent(30);
  const pull = { name: 'pulled', urls: [`ovt://127.0.0.1:${sourcePort}/app/live`], properties: { persistent: true } };
  for (const { server } of nodes) await server.api.create(`${apiPath.app('default', 'app')}/streams`, pull);
}, 90_000);

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([source, ...nodes.map(({ server }) => server)].map(async (server) => await server?.close()));
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function told({ server }: Node): Promise<StreamInformation | null> {
  const { status, body } = await server.api.call('GET', STREAM);
  return status === 200 ? (body as { response: StreamInformation }).response : null;
}

/** OVT port from which a node pulls the stream; null while it waits. */
async function origin(node: Node): Promise<number | null> {
  const stream = await told(node);
  return stream === null || stream.outputs.length === 0 ? null : Number(/:(\d+)\//.exec(stream.input.sourceUrl)?.[1]);
}

async function puller(among: readonly Node[]): Promise<Node> {
  return await until(
    'a node to pull',
    async () => {
      for (const node of among) if ((await origin(node)) === sourcePort) return node;
      return null;
    },
    DEADLINE,
  );
}

test('viewers of LL-HLS and SRT keep the stream when the node that pulls it for all nodes is killed', async () => {
  const holder = await puller(nodes);
  await until('the stream in the map', async () => (await redis.value('app/pulled'))?.includes(`:${holder.ovtPort}/`), DEADLINE);
  const waiting = nodes.filter((node) => node !== holder);
  const watched = await Promise.all(
    waiting.map(async (node) => {
      await until('the stream plays', async () => (await fetch(node.server.http('pulled', 'llhls.m3u8'))).status === 200, DEADLINE);
      const reader = await LlhlsReader.open([node.server.http('pulled', 'llhls.m3u8')]);
      onTestFinished(async () => await reader.stop());
      const srt = new SrtViewer(folder, node.srtPort, 'pulled');
      onTestFinished(async () => await srt.close());
      await until('media over SRT', () => srt.size > 0, DEADLINE);
      expect(await origin(node)).toBe(holder.ovtPort);
      const createdTime = (await told(node))?.input.createdTime;
      return { node, reader, srt, createdTime };
    }),
  );
  await until('reloads', () => watched.every(({ reader }) => reader.reloads >= 4), DEADLINE);

  for (const { srt } of watched) srt.forget();
  await holder.server.kill();
  const heir = await puller(waiting);
  const before = watched.map(({ reader, srt }) => ({ reloads: reader.reloads, size: srt.size }));
  await until(
    'everybody to get further',
    () =>
      watched.every(({ reader, srt }, index) => {
        const { reloads = 0, size = 0 } = before[index] ?? {};
        return reader.reloads >= reloads + 6 && srt.size > size + 50_000;
      }),
    DEADLINE,
  );
  for (const { node, reader, srt, createdTime } of watched) {
    console.log(`${node === heir ? 'took over' : 'follows'}: without media for ${Math.round(srt.longest)} ms`);
    expect((await told(node))?.input.createdTime).toBe(createdTime);
    expect(await origin(node)).toBe(node === heir ? sourcePort : heir.ovtPort);
    expect(srt.child.exit).toBeNull();
    // A viewer that waits for a missing part is told to retry.
    expect(reader.faults.filter((fault) => !fault.includes('answered 503'))).toEqual([]);
  }
}, 120_000);
