import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { OriginsConfig } from '../config/index.ts';
import type { Application } from './application.ts';
import { IngestRefused } from './ingest.ts';
import { type PullDefinition, PullFailed } from './pull.ts';
import { StreamArrivals } from './stream-arrivals.ts';
import { StreamDemand } from './stream-demand.ts';

const ORIGINS = {
  origin: [{ location: '/', pass: { scheme: 'rtsp', urls: { url: ['h/'] }, forwardQueryParams: true }, strictLocation: false }],
} as unknown as OriginsConfig;
const wanted = (stream: string) => ({ vhost: 'v', app: 'app', stream, query: 'q=1' });

function setUp(
  pull: (streams: Set<string>, definition: PullDefinition) => Promise<void>,
  map?: { origins: OriginsConfig; locate: (app: string, stream: string) => Promise<string | null>; reachable?: boolean },
) {
  const streams = new Set<string>();
  const playable = new Set<string>();
  const pulled: PullDefinition[] = [];
  const clock = new ManualClock();
  const arrivals = new StreamArrivals({ isPlayable: (name) => playable.has(name), isComing: (name) => streams.has(name) });
  const application = {
    isPlayable: (name: string) => playable.has(name),
    awaitPlayable: (name: string, limitMs: number) => arrivals.wait(name, limitMs),
    hasStream: (name: string) => streams.has(name),
  } as unknown as Application;
  const demand = new StreamDemand({
    application: (_vhost, app) => (app === 'app' ? application : undefined),
    applicationOnDemand: (_vhost, app) => (app === 'made' ? application : undefined),
    origins: () => map?.origins ?? ORIGINS,
    originMap: (vhost) => (vhost === 'v' && map !== undefined ? { reachable: true, ...map } : undefined),
    pull: async (_application, definition) => {
      pulled.push(definition);
      await pull(streams, definition);
    },
    clock,
    logger: new RecordingLogger(),
  });
  const becomes = (name: string): void => {
    playable.add(name);
    arrivals.look();
  };
  return { demand, streams, playable, becomes, pulled, clock };
}

describe('a stream that a viewer asks for', () => {
  it('is pulled once for all requests, and found when it can be played', async () => {
    const { demand, becomes, pulled } = setUp(async (streams, { name }) => {
      streams.add(name);
    });
    const first = demand.find(wanted('s'));
    const second = demand.find(wanted('s'));
    setTimeout(() => becomes('s'), 60);
    expect(await Promise.all([first, second])).toEqual([true, true]);
    expect(pulled.map(({ urls }) => urls)).toEqual([['rtsp://h/app/s?q=1']]);
    expect([demand.find(wanted('s')), demand.pending]).toEqual([null, 0]);
  });

  it('is looked up again only some time after its origin has failed', async () => {
    const { demand, clock, pulled } = setUp(async () => {
      throw new PullFailed('no answer');
    });
    expect(await demand.find(wanted('s'))).toBe(false);
    expect(demand.find(wanted('s'))).toBeNull();
    clock.advance(1000);
    expect(await demand.find(wanted('s'))).toBe(false);
    expect(pulled.length).toBe(2);
  });

  it.each([new IngestRefused('provider-disabled', 'x'), new TypeError('a fault of ours')])('is 404 after %s', async (error) => {
    const { demand } = setUp(async () => {
      throw error;
    });
    expect(await demand.find(wanted('s'))).toBe(false);
  });

  it('is 404 when its source ends before it can be played', async () => {
    const { demand } = setUp(async () => undefined);
    expect(await demand.find(wanted('s'))).toBe(false);
  });

  it('is not pulled while a publisher is about to start it', async () => {
    const { demand, streams, becomes, pulled } = setUp(async () => undefined);
    streams.add('s');
    const found = demand.find(wanted('s'));
    becomes('s');
    expect([await found, pulled.length]).toEqual([true, 0]);
  });

  it('gets an application from a template', async () => {
    const { demand, playable } = setUp(async (streams, { name }) => {
      streams.add(name);
      playable.add(name);
    });
    expect(await demand.find({ ...wanted('s'), app: 'made' })).toBe(true);
  });

  it('leaves room for others while one address waits for many streams', async () => {
    const first = Promise.withResolvers<void>();
    const { demand } = setUp(() => first.promise);
    const asked = Array.from({ length: 80 }, (_none, index) => demand.find({ ...wanted(`s${index}`), client: '192.0.2.1' }));
    const waiting = asked.filter((one) => one !== null);
    expect([waiting.length, demand.refused]).toEqual([64, 16]);
    const other = demand.find({ ...wanted('other'), client: '192.0.2.2' });
    expect(other).not.toBeNull();
    // Requests for a stream that is already awaited join its wait.
    expect(demand.find({ ...wanted('other'), client: '192.0.2.1' })).toBe(other);
    first.resolve();
    await Promise.all([...waiting, other]);
    expect(demand.find({ ...wanted('late'), client: '192.0.2.1' })).not.toBeNull();
  });

  it('is refused without an application, or beyond 200 waiting requests', async () => {
    const never = Promise.withResolvers<void>();
    const { demand } = setUp(() => never.promise);
    expect(demand.find({ ...wanted('s'), app: 'other' })).toBeNull();
    const waiting = Array.from({ length: 201 }, (_none, index) => demand.find(wanted(`s${index}`)));
    expect([waiting.filter((one) => one !== null).length, demand.refused]).toEqual([200, 1]);
    never.resolve();
    await Promise.all(waiting);
    expect(demand.pending).toBe(0);
  });
});

describe('a stream that no origin matches', () => {
  const NONE = { origin: [], properties: { retryCount: 7 } } as unknown as OriginsConfig;
  const register = async (streams: Set<string>, { name }: PullDefinition): Promise<void> => void streams.add(name);

  it('is pulled as a relay from the address in the origin map, looked up once for all requests', async () => {
    const asked: string[] = [];
    const locate = async (app: string, stream: string) => {
      asked.push(`${app}/${stream}`);
      return 'ovt://origin:9000/app/s';
    };
    const { demand, becomes, pulled } = setUp(register, { origins: NONE, locate });
    const found = [demand.find(wanted('s')), demand.find(wanted('s'))];
    becomes('s');
    expect(await Promise.all(found)).toEqual([true, true]);
    expect([asked, demand.pending]).toEqual([['app/s'], 0]);
    const properties = { relay: true, persistent: false, retryCount: 7, noInputFailoverTimeoutMs: 3000 };
    expect(pulled).toMatchObject([{ name: 's', urls: ['ovt://origin:9000/app/s'], configured: true, fromOriginMap: true, properties }]);
  });

  it('is pulled without relay when the map names an RTSP source', async () => {
    const { demand, becomes, pulled } = setUp(register, { origins: NONE, locate: async () => 'rtsp://camera/' });
    becomes('other');
    const found = demand.find(wanted('s'));
    becomes('s');
    expect([await found, pulled[0]?.properties.relay]).toEqual([true, false]);
  });

  it('is 404 when the map does not have it, and is not looked up again at once', async () => {
    let asked = 0;
    const locate = async (): Promise<null> => {
      asked += 1;
      return null;
    };
    const { demand, pulled, clock } = setUp(register, { origins: NONE, locate });
    expect(await demand.find(wanted('s'))).toBe(false);
    expect(demand.find(wanted('s'))).toBeNull();
    clock.advance(1000);
    expect(await demand.find(wanted('s'))).toBe(false);
    // No application is made for an unavailable stream.
    expect(await demand.find({ ...wanted('s'), app: 'made' })).toBe(false);
    expect([asked, pulled.length]).toEqual([3, 0]);
    expect(demand.find({ ...wanted('s'), vhost: 'other' })).toBeNull();
  });

  it('is awaited without a look-up when it is about to start, or starts during the look-up', async () => {
    let meanwhile = (): void => undefined;
    let asked = 0;
    const locate = async (): Promise<null> => {
      asked += 1;
      meanwhile();
      return null;
    };
    const { demand, streams, becomes, pulled } = setUp(register, { origins: NONE, locate });
    streams.add('s');
    const found = demand.find(wanted('s'));
    becomes('s');
    expect([await found, asked]).toEqual([true, 0]);
    meanwhile = () => {
      streams.add('t');
      setTimeout(() => becomes('t'), 30);
    };
    expect([await demand.find(wanted('t')), asked, pulled.length]).toEqual([true, 1, 0]);
  });

  it('is unknown while the map is unreachable, and looked up again afterwards', async () => {
    const map = { origins: NONE, locate: async (): Promise<string | null> => null, reachable: false };
    const { demand, streams, becomes, pulled } = setUp(register, map);
    expect([await demand.find(wanted('s')), demand.isUnknown(wanted('s'))]).toEqual([false, true]);
    streams.add('coming');
    expect([demand.isUnknown(wanted('coming')), demand.isUnknown({ ...wanted('s'), vhost: 'other' })]).toEqual([false, false]);
    map.reachable = true;
    map.locate = async () => 'ovt://a/app/s';
    const found = demand.find(wanted('s'));
    becomes('s');
    expect([await found, demand.isUnknown(wanted('s')), pulled.length]).toEqual([true, false, 1]);
  });

  it('is known to be absent when a configured origin covers it, even while the map is unreachable', async () => {
    const { demand } = setUp(register, { origins: ORIGINS, locate: async () => null, reachable: false });
    expect(demand.isUnknown(wanted('s'))).toBe(false);
  });

  it('is refused beyond 200 waiting requests while Redis does not answer', async () => {
    const answer = Promise.withResolvers<null>();
    const { demand } = setUp(register, { origins: NONE, locate: () => answer.promise });
    const waiting = Array.from({ length: 201 }, (_none, index) => demand.find(wanted(`s${index}`)));
    expect([waiting.filter((one) => one !== null).length, demand.refused]).toEqual([200, 1]);
    answer.resolve(null);
    expect(new Set(await Promise.all(waiting.slice(0, 200)))).toEqual(new Set([false]));
    expect(demand.pending).toBe(0);
  });
});
