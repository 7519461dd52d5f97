/** Everything that may happen to pulled streams at once. */
import fc from 'fast-check';
import { expect, it, onTestFinished, vi } from 'vitest';
import { FakePullSource, MemoryPullStore } from '../../test/fakes/fake-pull-source.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import type { ApplicationConfig } from '../config/index.ts';
import { systemClock } from '../util/clock.ts';
import { Application } from './application.ts';
import { IngestRefused } from './ingest.ts';
import { ProviderKind, SourceType } from './kinds.ts';
import { PullFailed } from './pull.ts';
import { PullRegistry } from './pull-registry.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

const NAMES = ['a', 'b'] as const;
const GONE = { code: 'deleted', detail: 'x' } as const;

function setUp() {
  const clock = systemClock;
  const logger = new RecordingLogger();
  const config = { name: 'app', providers: { rtspPull: {}, rtmp: {} }, publishers: {}, outputProfiles: { outputProfile: [] } };
  const { providers }: { providers: { rtspPull?: object } } = config;
  const context = { clock, logger, queues: new QueueRegistry(clock), publishers: new Map(), transcoder: null, nextStreamId: () => 1 };
  const definition = { name: 'app', config: config as unknown as ApplicationConfig, echo: {} };
  const make = () => new Application('v', definition, new TrafficMeter(clock, null), context);
  let application: Application | null = make();
  const source = new FakePullSource({
    schemes: ['rtsp'],
    provider: ProviderKind.RTSP_PULL,
    sourceType: SourceType.RTSP_PULL,
    plays: () => true,
  });
  const store = new MemoryPullStore();
  const save = store.save.bind(store);
  // As a disk: not at once.
  store.save = async (document) => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await save(document);
  };
  const pulls = new PullRegistry({ sources: [source], store, clock, logger, application: () => application ?? undefined });
  const properties = {
    ...{ noInputFailoverTimeoutMs: 60, unusedStreamDeletionTimeoutMs: 60_000 },
    ...{ ignoreRtcpSRTimestamp: false, retryCount: 1, relay: false },
  };
  const working: Promise<unknown>[] = [];
  const tolerant = (error: unknown): void => {
    if (!(error instanceof PullFailed || error instanceof IngestRefused)) throw error;
  };
  const actions = {
    create: (name: string, persistent: boolean) => {
      if (application === null) return;
      const definition = { name, urls: ['rtsp://one/', 'rtsp://two/'], properties: { ...properties, persistent } };
      working.push(pulls.create(application, definition).catch(tolerant));
    },
    delete: (name: string) => {
      const stream = application?.stream(name);
      working.push(pulls.delete({ vhost: 'v', app: 'app', name }, GONE).then(() => stream?.terminate(GONE)));
    },
    publish: (name: string) => {
      const request = {
        streamName: name,
        provider: ProviderKind.RTMP,
        sourceType: SourceType.RTMP,
        sourceUrl: 'x',
        onClose: () => undefined,
      };
      try {
        application?.openIngest(request).close({ code: 'peer-left', detail: 'x' });
      } catch (error) {
        tolerant(error);
      }
    },
    deliver: () => source.deliver(2),
    lose: () => source.opened.at(-1)?.target.sink.close({ code: 'peer-left', detail: 'x' }),
    fail: () => {
      source.plays = () => false;
    },
    play: () => {
      source.plays = () => true;
    },
    restart: () => {
      const before = application;
      if (before === null) return;
      // In one step, as the orchestrator does.
      application = null;
      before.close({ code: 'application-restart', detail: 'x' });
      application = make();
    },
    disable: () => {
      delete providers.rtspPull;
    },
    enable: () => {
      providers.rtspPull = {};
    },
  };
  return { actions, source, store, pulls, working, logger, application: () => application! };
}

const name = fc.constantFrom(...NAMES);
const step = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), name, persistent: fc.boolean() }),
  fc.record({ kind: fc.constantFrom('delete' as const, 'publish' as const), name }),
  fc.record({ kind: fc.constantFrom('deliver', 'lose', 'fail', 'play', 'restart', 'disable', 'enable') }),
);
const steps = fc.array(fc.record({ step, wait: fc.constantFrom(-1, -1, 0, 1, 3, 120) }), { minLength: 3, maxLength: 14 });

/** Lets the fake time pass until `promise` is settled. */
async function passing(promise: Promise<unknown>): Promise<void> {
  let settled = false;
  void promise.finally(() => (settled = true)).catch(() => undefined);
  while (!settled) await vi.advanceTimersByTimeAsync(10);
  await promise;
}

it('leaves no open source, no stream and no document of a deleted pull, for arbitrary orders of operations', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  let pulled = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const { actions, source, store, pulls, working, application, logger } = setUp();
      for (const { step: next, wait } of all) {
        if (next.kind === 'create') actions.create(next.name, next.persistent);
        else if ('name' in next) actions[next.kind](next.name);
        else actions[next.kind as 'deliver']();
        if (wait >= 0) await vi.advanceTimersByTimeAsync(wait);
      }
      await passing(Promise.all(working));
      const listed = (): string[] => application().streams.map(({ name: of }) => of);
      await new Promise((resolve) => setImmediate(resolve));
      // A stream has only one source.
      const open = () => source.opened.filter(({ closed }) => !closed).length;
      await vi.waitFor(() => expect(open()).toBeLessThanOrEqual(listed().length));
      // Stored pulls play, or wait for their return.
      const missing = [...store.documents.keys()].filter((one) => !listed().includes(one));
      expect(missing.length).toBeLessThanOrEqual(pulls.waiting);
      pulled += source.opened.length;
      for (const one of NAMES) await passing(pulls.delete({ vhost: 'v', app: 'app', name: one }, GONE));
      expect(listed()).toEqual([]);
      expect(store.documents.size).toBe(0);
      pulls.close({ code: 'shutdown', detail: 'x' });
      await vi.waitFor(() => expect(open()).toBe(0));
      expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
      application().close(GONE);
    }),
    { numRuns: 60 },
  );
  expect(pulled).toBeGreaterThan(30);
}, 40_000);
