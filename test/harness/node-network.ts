/**
 * Two nodes that share a pull, a channel and a push, with an edge and a Redis, each at its own host: packets between any two can be
 * dropped.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { RedisServer } from '../support/redis-server.ts';
import { apiPath, type StreamInformation } from './api-client.ts';
import { Network } from './network.ts';
import { until } from './poll.ts';
import { freePorts } from './ports.ts';
import { startServer, type TestServer } from './server.ts';

/** The minimum of the configuration. */
export const LEASE_MS = 3000;
const STREAMS = `${apiPath.app('default', 'app')}/streams`;
const WORKS = ['pull', 'channel', 'push'] as const;
const DEADLINE = { deadlineMs: 40_000 };

/** One kind of work that the nodes share. */
export type Work = (typeof WORKS)[number];

/** A node with the name of its host. */
export interface NetworkNode {
  readonly host: string;
  readonly server: TestServer;
}

/** Redis is at the host `redis`, the edge at `edge`. The caller of `open` closes it. */
export class NodeNetwork {
  readonly network: Network;
  readonly redis: RedisServer;
  readonly edge: NetworkNode;
  readonly nodes: readonly [NetworkNode, NetworkNode];
  readonly #folder: string;

  private constructor(folder: string, network: Network, redis: RedisServer, edge: NetworkNode, nodes: readonly [NetworkNode, NetworkNode]) {
    this.#folder = folder;
    this.network = network;
    this.redis = redis;
    this.edge = edge;
    this.nodes = nodes;
  }

  /** Resolves when both nodes know the work, and one does each. Throws if `whyNoNetwork` has a reason. */
  static async open(): Promise<NodeNetwork> {
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-network-'));
    for (const name of ['media', 'files']) mkdirSync(path.join(folder, name));
    writeFileSync(path.join(folder, 'files', 'tv.sch'), '<Schedule/>');
    const film = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
    const codecs = ['-t', '10', '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-g', '30', '-c:a', 'aac', '-threads', '1'];
    execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...film, ...codecs, path.join(folder, 'media', 'film.mp4')]);
    const network = Network.open(['redis', 'one', 'two', 'edge']);
    const place = (host: string) => ({ address: network.address(host), at: network.at(host) });
    const redis = await RedisServer.start(null, ['--protected-mode', 'no'], undefined, place('redis'));
    const store = (own: string, more: string): string =>
      `<OriginMapStore>${own}<RedisServer><Host>${redis.address}</Host></RedisServer>${more}</OriginMapStore>`;
    const shared = `<SharedWork><Group>g</Group><LeaseTime>${LEASE_MS}</LeaseTime></SharedWork>`;
    const [ovtPort = 0] = await freePorts(1);
    const node = async (host: string): Promise<NetworkNode> => {
      const address = network.address(host);
      const providers = `<Schedule><MediaRootDir>${folder}/media</MediaRootDir><ScheduleFilesDir>${folder}/files</ScheduleFilesDir></Schedule>`;
      const server = await startServer({
        host: place(host),
        ips: [address],
        ovtPort,
        origins: store(`<OriginHostName>${address}</OriginHostName>`, shared),
        providers,
        fileProvider: `<RootPath>${folder}/media</RootPath>`,
        push: '',
        withoutHls: true,
        segmentDuration: 1,
        head: '<Drain><GracePeriod>60000</GracePeriod></Drain>',
      });
      return { host, server };
    };
    const edge: NetworkNode = {
      host: 'edge',
      server: await startServer({
        host: place('edge'),
        ips: [network.address('edge')],
        origins: store('', ''),
        withoutHls: true,
        originMode: true,
        segmentDuration: 1,
      }),
    };
    const nodes = [await node('one'), await node('two')] as const;
    const pull = { name: 'film', urls: ['file:///film.mp4'], properties: { persistent: true } };
    const url = edge.server.rtmp('').slice(0, -1);
    const push = { id: 'p', stream: { name: 'film' }, protocol: 'rtmp', url, streamKey: 'pushed' };
    for (const { server } of nodes) {
      await server.api.create(STREAMS, pull);
      await server.api.create(`${apiPath.app('default', 'app')}:startPush`, push);
    }
    return new NodeNetwork(folder, network, redis, edge, nodes);
  }

  /** The present work of a node. */
  async worksOf({ server }: NetworkNode): Promise<Work[]> {
    const streams = await server.api.get<string[]>(STREAMS);
    // A waiting node is listed, too, and may relay the film from the other node.
    const film = streams.includes('film') ? await server.api.get<StreamInformation>(apiPath.stream('film')) : null;
    const plays = film?.input.sourceUrl.startsWith('file:') === true && film.outputs.length > 0;
    const { body } = await server.api.call('POST', `${apiPath.app('default', 'app')}:pushes`, {});
    const [push] = (body as { response: { state: string }[] }).response;
    const does = { pull: plays, channel: streams.includes('tv'), push: push?.state === 'pushing' };
    return WORKS.filter((work) => does[work]);
  }

  /** Resolves when exactly one of `nodes` does each work, with the node that pulls. */
  async divided(nodes: readonly NetworkNode[] = this.nodes): Promise<NetworkNode> {
    return await until(
      'each work to be done once',
      async () => {
        const works = await Promise.all(nodes.map(async (node) => await this.worksOf(node)));
        const all = works.flat().sort();
        return all.join() === [...WORKS].sort().join() ? nodes[works.findIndex((list) => list.includes('pull'))] : null;
      },
      DEADLINE,
    );
  }

  /** The node other than `node`. */
  other(node: NetworkNode): NetworkNode {
    const [one, two] = this.nodes;
    return node === one ? two : one;
  }

  /** `status` of `/health`. */
  async health({ server }: NetworkNode): Promise<string> {
    return ((await (await fetch(`${server.api.base}/health`)).json()) as { status: string }).status;
  }

  /** The edge's information about the film. */
  async filmAtEdge(): Promise<StreamInformation['input']> {
    return (await this.edge.server.api.get<StreamInformation>(apiPath.stream('film'))).input;
  }

  /** Waits until the origin map names a node for the film. */
  async registered({ host }: NetworkNode): Promise<void> {
    const address = this.network.address(host);
    await until(`the film of ${host} in the map`, async () => (await this.redis.value('app/film'))?.includes(`//${address}:`), DEADLINE);
  }

  /** Waits until the edge gets the film from a node, which may itself relay it. */
  async comesFrom({ host }: NetworkNode): Promise<void> {
    const address = this.network.address(host);
    await until(
      `the edge to have the film from ${host}`,
      async () => (await this.filmAtEdge()).sourceUrl.includes(`//${address}:`),
      DEADLINE,
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.edge, ...this.nodes].map(async ({ server }) => await server.kill().then(() => server.close())));
    await this.redis.stop();
    this.network.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
