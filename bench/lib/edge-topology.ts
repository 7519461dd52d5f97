/** An origin and edges that pull streams over OVT for their viewers, all on this machine. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { within } from '../../test/harness/poll.ts';
import { freePorts } from '../../test/harness/ports.ts';
import { startServer, type TestServer } from '../../test/harness/server.ts';
import type { EdgeLoadAnswer, EdgeLoadOrder } from './edge-load.ts';
import { threadTime } from './process-usage.ts';

const LOAD_DEADLINE_MS = 60_000;

/** The caller of `open` closes it. */
export class EdgeTopology {
  readonly origin: TestServer;
  readonly edges: readonly TestServer[];
  readonly #ovtPort: number;

  private constructor(origin: TestServer, edges: readonly TestServer[], ovtPort: number) {
    this.origin = origin;
    this.edges = edges;
    this.#ovtPort = ovtPort;
  }

  static async open(count: number): Promise<EdgeTopology> {
    const [ovtPort = 0] = await freePorts(1);
    const origins = `<Origins><Origin><Location>/app/</Location>
      <Pass><Scheme>ovt</Scheme><Urls><Url>127.0.0.1:${ovtPort}/app/</Url></Urls></Pass></Origin></Origins>`;
    const common = { segmentDuration: 2, originMode: true, withoutHls: true, webrtc: {} };
    const origin = await startServer({ ...common, ovtPort });
    const edges: TestServer[] = [];
    try {
      for (let n = 0; n < count; n += 1) edges.push(await startServer({ ...common, origins }));
    } catch (error) {
      await Promise.all([origin, ...edges].map(async (server) => await server.close()));
      throw error;
    }
    return new EdgeTopology(origin, edges, ovtPort);
  }

  /** URL of an origin's stream for an edge. */
  source(stream: string): string {
    return `ovt://127.0.0.1:${this.#ovtPort}/app/${stream}`;
  }

  /** CPU of each server over `seconds`, ms per second; the origin comes first. */
  async rates(seconds: number): Promise<number[]> {
    const servers = [this.origin, ...this.edges];
    const startedAt = performance.now();
    const before = servers.map(({ pid }) => threadTime(pid));
    await delay(seconds * 1000);
    const passed = (performance.now() - startedAt) / 1000;
    return servers.map(({ pid }, n) => (threadTime(pid) - (before[n] ?? 0)) / passed);
  }

  async close(): Promise<void> {
    await Promise.all([...this.edges, this.origin].map(async (server) => await server.close()));
  }
}

/**
 * Runs `work` with viewers; returns their figures and its result. The viewers run in another process, connect before, and are gone
 * afterwards.
 */
export async function withViewers<T>(
  order: EdgeLoadOrder,
  work: () => Promise<T>,
): Promise<{ result: T; counted: Extract<EdgeLoadAnswer, { type: 'counted' }> }> {
  const child = fork(fileURLToPath(new URL('./edge-load.ts', import.meta.url)));
  const ended = once(child, 'exit').then(() => Promise.reject(new Error('the viewers have ended')));
  ended.catch(() => undefined);
  const told = async <K extends EdgeLoadAnswer['type']>(type: K): Promise<Extract<EdgeLoadAnswer, { type: K }>> => {
    const [answer] = (await within(`the viewers: ${type}`, LOAD_DEADLINE_MS, Promise.race([once(child, 'message'), ended]))) as [
      EdgeLoadAnswer,
    ];
    if (answer.type !== type) throw new Error(`the viewers said ${answer.type} instead of ${type}`);
    return answer as Extract<EdgeLoadAnswer, { type: K }>;
  };
  try {
    await once(child, 'spawn');
    child.send(order);
    await told('ready');
    const result = await work();
    child.send({ type: 'count' } satisfies EdgeLoadOrder);
    return { result, counted: await told('counted') };
  } finally {
    child.kill('SIGKILL');
  }
}
