import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { OriginsConfig } from '../config/index.ts';
import type { Application } from './application.ts';
import { IngestRefused } from './ingest.ts';
import { type PullDefinition, PullFailed } from './pull.ts';
import { StreamDemand } from './stream-demand.ts';

const ORIGINS = {
  origin: [{ location: '/', pass: { scheme: 'rtsp', urls: { url: ['h/'] }, forwardQueryParams: true }, strictLocation: false }],
} as unknown as OriginsConfig;
const wanted = (stream: string) => ({ vhost: 'v', app: 'app', stream, query: 'q=1' });

function setUp(pull: (streams: Set<string>, definition: PullDefinition) => Promise<void>) {
  const streams = new Set<string>();
  const playable = new Set<string>();
  const pulled: PullDefinition[] = [];
  const clock = new ManualClock();
  const application = {
    outbound: (name: string) => (playable.has(name) ? { tracks: [{}] } : undefined),
    hasStream: (name: string) => streams.has(name),
  } as unknown as Application;
  const demand = new StreamDemand({
    application: (_vhost, app) => (app === 'app' ? application : undefined),
    applicationOnDemand: (_vhost, app) => (app === 'made' ? application : undefined),
    origins: () => ORIGINS,
    pull: async (_application, definition) => {
      pulled.push(definition);
      await pull(streams, definition);
    },
    clock,
    logger: new RecordingLogger(),
  });
  return { demand, streams, playable, pulled, clock };
}

describe('a stream that a viewer asks for', () => {
  it('is pulled once for all who ask, and found when it can be played', async () => {
    const { demand, playable, pulled } = setUp(async (streams, { name }) => {
      streams.add(name);
    });
    const first = demand.find(wanted('s'));
    const second = demand.find(wanted('s'));
    setTimeout(() => playable.add('s'), 60);
    expect(await Promise.all([first, second])).toEqual([true, true]);
    expect(pulled.map(({ urls }) => urls)).toEqual([['rtsp://h/app/s?q=1']]);
    expect([demand.find(wanted('s')), demand.pending]).toEqual([null, 0]);
  });

  it('is looked for again only some time after its origin has failed', async () => {
    const { demand, clock, pulled } = setUp(async () => {
      throw new PullFailed('no answer');
    });
    expect(await demand.find(wanted('s'))).toBe(false);
    expect(demand.find(wanted('s'))).toBeNull();
    clock.advance(1000);
    expect(await demand.find(wanted('s'))).toBe(false);
    expect(pulled.length).toBe(2);
  });

  it.each([new IngestRefused('provider-disabled', 'x'), new TypeError('a fault of ours')])('is not found after %s', async (error) => {
    const { demand } = setUp(async () => {
      throw error;
    });
    expect(await demand.find(wanted('s'))).toBe(false);
  });

  it('is not found when its source ends before it can be played', async () => {
    const { demand } = setUp(async () => undefined);
    expect(await demand.find(wanted('s'))).toBe(false);
  });

  it('is not pulled when it is coming already', async () => {
    const { demand, streams, playable, pulled } = setUp(async () => undefined);
    streams.add('s');
    const found = demand.find(wanted('s'));
    playable.add('s');
    expect([await found, pulled.length]).toEqual([true, 0]);
  });

  it('gets an application of its own where there is a template', async () => {
    const { demand, playable } = setUp(async (streams, { name }) => {
      streams.add(name);
      playable.add(name);
    });
    expect(await demand.find({ ...wanted('s'), app: 'made' })).toBe(true);
  });

  it('is nothing without an application, or with too many others', async () => {
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
