import { afterEach, describe, expect, it } from 'vitest';
import { FakePullSource, MemoryPullStore } from '../../test/fakes/fake-pull-source.ts';
import { FakeWork } from '../../test/fakes/fake-work.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { ApplicationConfig } from '../config/index.ts';
import { systemClock as clock } from '../util/clock.ts';
import { Application } from './application.ts';
import { ProviderKind, SourceType } from './kinds.ts';
import { PullRegistry } from './pull-registry.ts';
import { QueueRegistry } from './queue-registry.ts';
import type { WorkState } from './shared-work.ts';
import { TrafficMeter } from './traffic-meter.ts';

const SHUTDOWN = { code: 'shutdown', detail: 'the test is over' } as const;
const PATIENCE = { timeout: 5000 };
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function setUp(state: WorkState) {
  const logger = new RecordingLogger();
  const config = { name: 'app', providers: { rtspPull: {} }, publishers: {}, outputProfiles: { outputProfile: [] } };
  const context = { clock, logger, queues: new QueueRegistry(clock), publishers: new Map(), transcoder: null, nextStreamId: () => 1 };
  const definition = { name: 'app', config: config as unknown as ApplicationConfig, echo: {} };
  const application = new Application('v', definition, new TrafficMeter(clock, null), context);
  const source = new FakePullSource({
    ...{ schemes: ['rtsp'], provider: ProviderKind.RTSP_PULL, sourceType: SourceType.RTSP_PULL, plays: () => true },
  });
  const store = new MemoryPullStore();
  const work = new FakeWork(state);
  const pulls = new PullRegistry({ sources: [source], store, clock, logger, work, application: () => application });
  stops.push(() => pulls.close(SHUTDOWN));
  const properties = {
    ...{ persistent: true, noInputFailoverTimeoutMs: 60_000, unusedStreamDeletionTimeoutMs: 60_000 },
    ...{ ignoreRtcpSRTimestamp: false, retryCount: 1, relay: false },
  };
  const pull = { name: 's', urls: ['rtsp://one/'], properties };
  return { application, pulls, pull, source, store, work, document: { vhost: 'v', app: 'app', ...pull } };
}

describe('a persistent pull that several nodes know', () => {
  it('is pulled by the node whose it is, and waits at the others', async () => {
    const { application, pulls, source, work, document } = setUp('unknown');
    pulls.restore(document);
    expect([source.opened.length, pulls.waiting, [...work.asked]]).toEqual([0, 1, ['pull/v/app/s']]);
    work.state = 'others';
    await new Promise((resolve) => setTimeout(resolve, 1200));
    expect([source.opened.length, application.hasStream('s')]).toEqual([0, false]);
    work.state = 'ours';
    await expect.poll(() => application.hasStream('s'), PATIENCE).toBe(true);
    work.state = 'others';
    await expect.poll(() => [application.hasStream('s'), pulls.waiting], PATIENCE).toEqual([false, 1]);
    work.state = 'ours';
    await expect.poll(() => source.opened.length, PATIENCE).toBe(2);
  });

  it('is only kept by a node that is told of it while another one pulls it', async () => {
    const { application, pulls, pull, source, store, work } = setUp('unknown');
    setTimeout(() => {
      work.state = 'others';
    }, 100);
    await pulls.create(application, pull);
    expect([source.opened.length, application.hasStream('s'), pulls.waiting, store.documents.size]).toEqual([0, false, 1, 1]);
    await pulls.delete({ vhost: 'v', app: 'app', name: 's' }, { code: 'deleted', detail: 'x' });
    expect([pulls.waiting, store.documents.size]).toEqual([0, 0]);
  });

  it('is pulled at once where it is ours, and so is what nobody shares', async () => {
    const { application, pulls, pull, work } = setUp('ours');
    await pulls.create(application, pull);
    work.state = 'others';
    await pulls.create(application, { ...pull, name: 'passing', properties: { ...pull.properties, persistent: false } });
    await expect.poll(() => application.hasStream('s'), PATIENCE).toBe(false);
    expect([application.hasStream('passing'), [...work.asked]]).toEqual([true, ['pull/v/app/s']]);
  });
});
