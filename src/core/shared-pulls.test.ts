import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { FakePullSource, MemoryPullStore } from '../../test/fakes/fake-pull-source.ts';
import { FakeWork } from '../../test/fakes/fake-work.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { allOf } from '../../test/support/all-of.ts';
import { type ApplicationConfig, readOutputProfile } from '../config/index.ts';
import { systemClock as clock } from '../util/clock.ts';
import { Application } from './application.ts';
import { ProviderKind, SourceType } from './kinds.ts';
import type { PullDefinition } from './pull.ts';
import { pullKeeper } from './pull-keeper.ts';
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

/** An output profile that bypasses everything. */
const profile = (outputStreamName: string) =>
  readOutputProfile({ name: 'p', outputStreamName, encodes: { videos: [{ bypass: true }], audios: [{ bypass: true }] } }).typed;

function setUp(state: WorkState, outputs: readonly string[] = []) {
  const logger = new RecordingLogger();
  const outputProfiles = { outputProfile: outputs.map(profile) };
  const config = {
    name: 'app',
    providers: { rtspPull: {}, ovt: {}, schedule: {}, multiplex: {}, rtmp: {} },
    publishers: {},
    outputProfiles,
  };
  const context = { clock, logger, queues: new QueueRegistry(clock), publishers: new Map(), transcoder: null, nextStreamId: () => 1 };
  const definition = { name: 'app', config: config as unknown as ApplicationConfig, echo: {} };
  const application = new Application('v', definition, new TrafficMeter(clock, null), context);
  const source = new FakePullSource({
    ...{ schemes: ['rtsp'], provider: ProviderKind.RTSP_PULL, sourceType: SourceType.RTSP_PULL, plays: () => true },
  });
  const origin = new FakePullSource({
    ...{ schemes: ['ovt'], provider: ProviderKind.OVT, sourceType: SourceType.OVT, plays: () => true },
  });
  const store = new MemoryPullStore();
  const work = new FakeWork(state);
  const pulls = new PullRegistry({ sources: [source, origin], store, clock, logger, work, application: () => application });
  stops.push(() => pulls.close(SHUTDOWN));
  const properties = {
    ...{ persistent: true, noInputFailoverTimeoutMs: 60_000, unusedStreamDeletionTimeoutMs: 60_000 },
    ...{ ignoreRtcpSRTimestamp: false, retryCount: 1, relay: false },
  };
  const pull = { name: 's', urls: ['rtsp://one/'], properties };
  /** A viewer's request pulls a stream that another node has. */
  const relayed = (name: string): PullDefinition => ({
    ...{ name, urls: [`ovt://other/app/${name}`], configured: true, fromOriginMap: true, successor: async () => null },
    properties: { ...properties, persistent: false, relay: true },
  });
  return { application, pulls, pull, relayed, source, origin, store, work, document: { vhost: 'v', app: 'app', ...pull } };
}

describe('a persistent pull that several nodes know', () => {
  it('is pulled by the owning node, and waits at the others', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { application, pulls, source, work, document } = setUp('unknown');
    pulls.restore(document);
    expect([source.opened.length, pulls.waiting, [...work.asked]]).toEqual([0, 1, ['pull/v/app/s']]);
    work.state = 'others';
    await vi.advanceTimersByTimeAsync(1200);
    expect([source.opened.length, application.hasStream('s')]).toEqual([0, false]);
    work.state = 'ours';
    await expect.poll(() => application.hasStream('s'), PATIENCE).toBe(true);
    work.state = 'others';
    await expect.poll(() => [application.hasStream('s'), pulls.waiting], PATIENCE).toEqual([false, 1]);
    work.state = 'ours';
    await expect.poll(() => source.opened.length, PATIENCE).toBe(2);
  });

  it('is only stored by a node that learns that another node pulls it', async () => {
    const { application, pulls, pull, source, store, work } = setUp('unknown');
    const created = pulls.create(application, pull);
    expect([work.waiting.size, store.documents.size]).toEqual([1, 0]);
    work.state = 'others';
    await created;
    expect(work.waiting.size).toBe(0);
    expect([source.opened.length, application.hasStream('s'), pulls.waiting, store.documents.size]).toEqual([0, false, 1, 1]);
    await pulls.delete({ vhost: 'v', app: 'app', name: 's' }, { code: 'deleted', detail: 'x' });
    expect([pulls.waiting, store.documents.size]).toEqual([0, 0]);
  });

  it('is pulled by a node that learns nothing', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { application, pulls, pull, source, work } = setUp('unknown');
    const created = pulls.create(application, pull);
    await vi.advanceTimersByTimeAsync(1490);
    expect([work.waiting.size, source.opened.length]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(20);
    await created;
    expect([work.waiting.size, source.opened.length]).toEqual([0, 1]);
  });

  it('is pulled at once on its own node, as is a pull that is not shared', async () => {
    const { application, pulls, pull, work } = setUp('ours');
    await pulls.create(application, pull);
    work.state = 'others';
    await pulls.create(application, { ...pull, name: 'passing', properties: { ...pull.properties, persistent: false } });
    await expect.poll(() => application.hasStream('s'), PATIENCE).toBe(false);
    expect([application.hasStream('passing'), [...work.asked]]).toEqual([true, ['pull/v/app/s']]);
  });

  it('is told to other nodes when it is created or deleted, if it is persistent', async () => {
    const { application, pulls, pull, work, source, document } = setUp('ours');
    await pulls.create(application, { ...pull, name: 'passing', properties: { ...pull.properties, persistent: false } });
    await pulls.delete({ vhost: 'v', app: 'app', name: 'passing' }, { code: 'deleted', detail: 'x' });
    expect(work.told.size).toBe(0);
    source.plays = () => false;
    await expect(pulls.create(application, pull)).rejects.toThrow();
    expect(work.told.size).toBe(0);
    source.plays = () => true;
    await pulls.create(application, pull);
    expect([...work.told]).toEqual([['pull/v/app/s', document]]);
    await pulls.delete(document, { code: 'deleted', detail: 'x' });
    expect([...work.told]).toEqual([['pull/v/app/s', null]]);
  });

  it('is adopted from another node, replaced and dropped like one of its own', async () => {
    const { application, pulls, pull, source, store, work, document } = setUp('others');
    const keeper = pullKeeper(pulls);
    const own = { kind: 'pull', vhost: 'v', app: 'app', name: 's' } as const;
    const definition = { urls: pull.urls, properties: pull.properties };
    await keeper.adopt(own, definition);
    expect([keeper.has(own), pulls.waitingIn(application).map(({ name }) => name), store.documents.size]).toEqual([true, ['s'], 1]);
    expect(await allOf(keeper.definitions('v', () => false))).toEqual([{ work: own, definition }]);
    expect(await allOf(keeper.definitions('w', () => false))).toEqual([]);
    work.state = 'ours';
    await expect.poll(() => application.hasStream('s'), PATIENCE).toBe(true);
    // It is the same.
    await keeper.adopt(own, definition);
    expect([application.hasStream('s'), pulls.waiting]).toEqual([true, 0]);
    await keeper.adopt(own, { ...definition, urls: ['rtsp://two/'] });
    await expect.poll(() => source.opened.at(-1)?.target.url, PATIENCE).toBe('rtsp://two/');
    await expect.poll(() => application.hasStream('s'), PATIENCE).toBe(true);
    await keeper.drop(own);
    expect([keeper.has(own), application.hasStream('s'), pulls.waiting, store.documents.size]).toEqual([false, false, 0, 0]);
    // Nothing of this is told to the node that has told it.
    expect([work.told.size, document.name]).toEqual([0, 's']);
  });

  it.each([
    { urls: ['srt://one'], reason: "scheme 'srt' cannot be pulled" },
    { urls: [], reason: 'its urls are missing' },
    { urls: ['rtsp://one/'], properties: {}, reason: 'its properties.noInputFailoverTimeoutMs is missing' },
  ])('is refused where it cannot be pulled: $reason', async ({ reason, ...definition }) => {
    const { pulls, pull, store } = setUp('others');
    const own = { kind: 'pull', vhost: 'v', app: 'app', name: 's' } as const;
    await expect(pullKeeper(pulls).adopt(own, { properties: pull.properties, ...definition })).rejects.toThrow(reason);
    expect([pulls.waiting, store.documents.size]).toEqual([0, 0]);
  });

  it('replaces the stream that viewers had from the previous node, and continues it for them', async () => {
    const { application, pulls, relayed, source, origin, work, document } = setUp('others', ['${OriginStreamName}', 'more']);
    pulls.restore(document);
    await pulls.create(application, relayed('s'));
    origin.deliver();
    await expect.poll(() => application.outbound('s')?.tracks.length, PATIENCE).toBe(3);
    const [stream, output] = [application.stream('s'), application.outbound('s')];
    const ids = output?.tracks.map(({ id, type }) => `${id} ${type}`);
    expect([output?.fromOriginMap, application.outbound('more')]).toEqual([true, undefined]);
    const sent = output?.packetsOut ?? 0;

    work.state = 'ours';
    await expect.poll(() => source.opened.length, PATIENCE).toBe(1);
    source.deliver();
    await expect.poll(() => output?.packetsOut, PATIENCE).toBeGreaterThan(sent);
    expect([application.stream('s'), application.outbound('s')]).toEqual([stream, output]);
    expect(application.stream('s')?.outputs.map(({ name }) => name)).toEqual(['s', 'more']);
    expect(output?.tracks.map(({ id, type }) => `${id} ${type}`)).toEqual(ids);
    expect([stream?.closed, stream?.sourceUrl, output?.fromOriginMap]).toEqual([false, 'rtsp://one/', false]);
    expect(origin.opened.map(({ closed }) => closed)).toEqual([true]);
  });

  it.each([
    { provider: ProviderKind.SCHEDULED, sourceType: SourceType.SCHEDULED, goesOn: true },
    // A channel's clock is steadier than the relayed stream's.
    { provider: ProviderKind.MULTIPLEX, sourceType: SourceType.MULTIPLEX, goesOn: false },
  ])('leaves the stream to a channel as well ($provider)', async ({ provider, sourceType, goesOn }) => {
    const { application, pulls, relayed, origin } = setUp('others', ['${OriginStreamName}']);
    await pulls.create(application, relayed('s'));
    origin.deliver();
    const stream = application.stream('s');
    const request = { streamName: 's', sourceUrl: 'channel', onClose: () => undefined, steadyTime: !goesOn };
    const publisher = { ...request, provider: ProviderKind.RTMP, sourceType: SourceType.RTMP };
    expect(() => application.checkIngest(publisher)).toThrow('is already being published');
    expect(() => application.openIngest(publisher)).toThrow('is already being published');
    application.checkIngest({ ...request, provider });
    application.openIngest({ ...request, provider, sourceType });
    expect([stream?.closed, application.hasStream('s'), origin.opened[0]?.closed]).toEqual([!goesOn, true, true]);
  });

  it('ends relayed streams that have a name of its outputs', async () => {
    const { application, pulls, relayed, source, origin, work, document } = setUp('others', ['out']);
    pulls.restore(document);
    await pulls.create(application, relayed('out'));
    origin.deliver();
    await expect.poll(() => application.outbound('out')?.sourceName, PATIENCE).toBe('out');
    work.state = 'ours';
    await expect.poll(() => source.opened.length, PATIENCE).toBe(1);
    source.deliver();
    await expect.poll(() => application.outbound('out')?.sourceName, PATIENCE).toBe('s');
    expect([application.hasStream('out'), application.stream('s')?.leftOut]).toEqual([false, []]);
  });

  it('is kept by a waiting node while another node may take it over', async () => {
    const { application, pulls, relayed, origin, document } = setUp('others');
    await pulls.create(application, relayed('other'));
    pulls.restore(document);
    await pulls.create(application, relayed('s'));
    origin.plays = () => false;
    for (const { target } of origin.opened) target.sink.close({ code: 'peer-left', detail: 'it died' });
    // One stream does not wait for the other.
    await expect.poll(() => application.hasStream('other'), { timeout: 15_000 }).toBe(false);
    expect(application.hasStream('s')).toBe(true);
  }, 20_000);
});
