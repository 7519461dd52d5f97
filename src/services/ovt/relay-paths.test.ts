import { afterEach, describe, expect, test } from 'vitest';
import { FakeStream } from '../../../test/fakes/fake-stream.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../test/fixtures/bitstreams.ts';
import type { WantedStream } from '../../core/origins.ts';
import type { PullSession } from '../../core/pull.ts';
import { OvtPublisher } from './ovt-publisher.ts';
import { OvtPullSource } from './ovt-pull-source.ts';
import { RelayPaths } from './relay-paths.ts';

const GONE = { code: 'peer-left', detail: 'the test ends' } as const;
const ADDRESS = { vhost: 'default', app: 'app', stream: 'live' };
const LOOP_REFUSAL = /^The stream would go in a circle/;

class Live extends FakeStream {
  override tracks = [videoTrack({ config: AVCC.high720 })];
  override readonly name = 'live';
  override readonly sourceName = 'live';
}

const nodes: Node[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
});

/** A server that pulls requested streams from `origin`. */
class Node {
  readonly logger = new RecordingLogger();
  readonly paths = new RelayPaths();
  readonly publisher: OvtPublisher;
  origin: Node | null = null;
  /** Reasons of failed pulls. */
  readonly faults: string[] = [];
  readonly #source: OvtPullSource;
  readonly #closing: (() => void)[] = [];
  #pending: Promise<boolean> | null = null;

  constructor() {
    this.#source = new OvtPullSource(new ManualClock(), this.paths);
    const finder = { find: (wanted: WantedStream) => (this.origin === null ? null : this.find(wanted.via)) };
    this.publisher = new OvtPublisher({ logger: this.logger, clock: new ManualClock(), finder, paths: this.paths });
    nodes.push(this);
  }

  async listen(): Promise<this> {
    const options = { host: '127.0.0.1', port: 0, virtualHostFor: () => 'default', hasApplication: () => true };
    await this.publisher.listen(options);
    return this;
  }

  /** One pull for all requests, as in the core. */
  find(via?: readonly string[]): Promise<boolean> {
    const settle = async (): Promise<boolean> => {
      try {
        await this.pull(via);
        return true;
      } catch (error) {
        this.faults.push((error as Error).message);
        return false;
      }
    };
    this.#pending ??= settle().finally(() => {
      this.#pending = null;
    });
    return this.#pending;
  }

  async pull(via?: readonly string[], stream = ADDRESS): Promise<PullSession> {
    const url = `ovt://127.0.0.1:${this.origin?.publisher.ports[0]}/app/live`;
    const sink = new RecordingSink();
    const target = { url, settings: {}, ignoreSenderReports: false, sink, signal: AbortSignal.timeout(10_000), logger: this.logger };
    const session = await this.#source.open({ ...target, stream, ...(via !== undefined && { via }) });
    this.#closing.push(() => session.close());
    return session;
  }

  serve(): void {
    const stream = new Live();
    const served = this.publisher.attach(stream);
    served.onTracks(stream.tracks);
    this.#closing.push(() => served.close(GONE));
  }

  async close(): Promise<void> {
    for (const close of this.#closing) close();
    await this.publisher.stop();
  }
}

/** Each pulls from the next, the last from the first. */
async function ring(size: number): Promise<Node[]> {
  const made = await Promise.all(Array.from({ length: size }, async () => await new Node().listen()));
  for (const [index, node] of made.entries()) node.origin = made[(index + 1) % size] ?? null;
  return made;
}

describe('streams between servers', () => {
  test.each([1, 2, 3, 5])('a ring of %d servers without a publisher ends at once, and each server logs the reason', async (size) => {
    const made = await ring(size);
    const began = performance.now();
    expect(await made[0]?.find()).toBe(false);
    expect(performance.now() - began).toBeLessThan(3000);
    for (const node of made) expect(node.faults).toEqual([expect.stringMatching(LOOP_REFUSAL)]);
    const refusals = made[0]?.logger.lines.filter(({ message }) => message.startsWith('an OVT edge was refused')) ?? [];
    expect(refusals).toHaveLength(1);
    expect(refusals[0]?.message).toContain(`this server asks for it itself, through ${size} servers`);
  });

  test('a server does not fall back to a server that relays the stream from it', async () => {
    const [first, second] = await ring(2);
    first?.serve();
    await second?.pull();
    second?.serve();
    await expect(first?.pull()).rejects.toThrow(/it comes from the server that asks for it$/);
  });

  test('two servers that lost their sources do not pull the stream from each other', async () => {
    const [first, second] = await ring(2);
    first?.serve();
    second?.serve();
    await first?.pull();
    await expect(second?.pull()).rejects.toThrow(LOOP_REFUSAL);
  });

  test.each([1, 2])('a stream can be pulled back under another name through %d servers', async (size) => {
    const made = await ring(size);
    made[0]?.serve();
    if (size === 2) {
      await made[1]?.pull();
      made[1]?.serve();
    }
    await expect(made[0]?.pull(undefined, { ...ADDRESS, stream: 'copy' })).resolves.toBeDefined();
  });

  test('a pull in the opposite direction is possible after the first pull has closed', async () => {
    const [first, second] = await ring(2);
    first?.serve();
    second?.serve();
    (await first?.pull())?.close();
    await expect(second?.pull()).resolves.toBeDefined();
  });

  test('a path has at most 16 servers, and malformed entries of a path are skipped', () => {
    const paths = new RelayPaths();
    const others = Array.from({ length: 16 }, (_, index) => `node${index}`);
    expect(paths.loopOf(ADDRESS, others)).toBeNull();
    expect(paths.loopOf(ADDRESS, [...others, 'one-more'])).toContain('more than 16 servers');
    expect(paths.loopIn(others, ADDRESS)).toBeNull();
    expect(paths.loopIn([...others, 'one-more'], ADDRESS)).toContain('more than 16 servers');
    expect(paths.loopIn(['a', paths.stationOf(ADDRESS)], ADDRESS)).toContain('it comes from this server, through 2 servers');
    paths.pulledThrough(ADDRESS, others);
    expect(paths.pathOf(ADDRESS)).toEqual([paths.stationOf(ADDRESS), ...others]);
  });
});
