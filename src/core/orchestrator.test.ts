import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import type { ApplicationConfig, VirtualHostConfig } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import type { Definition } from './definition.ts';
import { Drain } from './drain.ts';
import type { CloseReason, IngestRequest } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import { Orchestrator, type VirtualHostStore } from './orchestrator.ts';
import { emptied, presenceIn } from './presence.ts';
import type { Publisher } from './publishing.ts';
import { QueueRegistry } from './queue-registry.ts';

class FakePublisher implements Publisher {
  readonly kind = PublisherKind.LLHLS;
  readonly packets: Packet[] = [];
  readonly closed: CloseReason[] = [];
  throws = false;

  defaultPlaylist() {
    return null;
  }

  attach() {
    return {
      onTracks: () => undefined,
      onPacket: (packet: Packet) => {
        if (this.throws) throw new Error('boom');
        this.packets.push(packet);
      },
      close: (reason: CloseReason) => {
        this.closed.push(reason);
      },
    };
  }
}

function vhostDefinition(name: string, hostNames: string[]): Definition<VirtualHostConfig> {
  return { name, config: { name, host: { names: hostNames } } as unknown as VirtualHostConfig, echo: { name } };
}

function appDefinition(name: string, overrides: object = {}): Definition<ApplicationConfig> {
  const config = {
    name,
    type: 'live',
    providers: { rtmp: {} },
    publishers: { llhls: {} },
    outputProfiles: {
      outputProfile: [
        {
          name: 'p',
          outputStreamName: '${OriginStreamName}_out',
          playlists: [],
          encodes: {
            videos: [{ name: 'v', bypass: true }],
            audios: [
              { name: 'a', bypass: true },
              { name: 'opus', codec: 'opus', bypass: false, bypassIfMatch: { codec: 'eq' } },
            ],
            images: [],
          },
        },
      ],
    },
    ...overrides,
  };
  return { name, config: config as unknown as ApplicationConfig, echo: { name } };
}

function setUp(options: { store?: Partial<VirtualHostStore>; maxStreams?: number } = {}) {
  const full: string[] = [];
  const clock = new ManualClock();
  const saved: { name: string; applications: readonly unknown[] }[] = [];
  const publisher = new FakePublisher();
  const logger = new RecordingLogger();
  const drain = new Drain();
  const orchestrator = new Orchestrator({
    drain,
    clock,
    logger,
    queues: new QueueRegistry(clock),
    store: {
      save: async (document) => {
        saved.push(document);
      },
      remove: async () => undefined,
      ...options.store,
    },
    publishers: new Map([[publisher.kind, publisher]]),
    ...(options.maxStreams !== undefined && { maxStreams: options.maxStreams }),
    onFull: ({ name }) => full.push(name),
    onHostsChanged: () => undefined,
  });
  return { orchestrator, drain, publisher, saved, logger, clock, full };
}

function request(streamName: string, closes: CloseReason[] = []): IngestRequest {
  return { streamName, provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1', onClose: (reason) => closes.push(reason) };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('Orchestrator', () => {
  it('carries packets from an ingest to the publishers of its outbound stream', async () => {
    const { orchestrator, publisher } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, request('s'));
    ingest.setTracks([videoTrack(), audioTrack()]);
    for (let index = 0; index < 10; index += 1) ingest.push(videoPacket(index));
    await turn();
    expect(publisher.packets.length).toBe(10);
    expect(publisher.packets[0]?.track).toMatchObject({ variantName: 'v', bypass: true });
    const stream = orchestrator.application('v', 'app')?.stream('s');
    expect(stream?.outputs[0]?.name).toBe('s_out');
    expect(stream?.outputs[0]?.tracks.map((track) => track.variantName)).toEqual(['v', 'a', '']);
    ingest.close({ code: 'peer-left', detail: 'bye' });
    expect(publisher.closed.length).toBe(1);
    expect(orchestrator.application('v', 'app')?.streams).toEqual([]);
    expect(orchestrator.queues.statuses()).toEqual([]);
  });

  it('limits the published streams of each application; pulled streams do not count', async () => {
    const { orchestrator, full } = setUp({ maxStreams: 2 });
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app'), appDefinition('other')]);
    const target = { host: 'x', app: 'app' };
    orchestrator.application('v', 'app')?.openPulled(request('pulled'));
    const first = orchestrator.openIngest(target, request('a'));
    orchestrator.openIngest(target, request('b'));
    const refused = "application 'app' has 2 streams, which is all it may have";
    expect(() => orchestrator.openIngest(target, request('c'))).toThrow(
      expect.objectContaining({ code: 'full', message: refused }) as Error,
    );
    expect(() => orchestrator.checkIngest(target, request('c'))).toThrow(refused);
    expect(full).toEqual(['app', 'app']);
    orchestrator.openIngest({ host: 'x', app: 'other' }, request('c'));
    first.close({ code: 'peer-left', detail: 'bye' });
    orchestrator.openIngest(target, request('c'));
  });

  it('refuses publishers while it is drained, and keeps and counts existing ones', async () => {
    const { orchestrator, drain } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [
      appDefinition('app', { providers: { rtmp: {}, ovt: {}, multiplex: {} } }),
    ]);
    const target = { host: 'x', app: 'app' };
    const first = orchestrator.openIngest(target, request('a'));
    first.setTracks([audioTrack()]);
    const app = orchestrator.application('v', 'app');
    app?.openPulled({ ...request('pulled'), provider: 'ovt' });
    drain.set(true);
    const refusal = expect.objectContaining({ code: 'shutting-down' }) as Error;
    expect(() => orchestrator.checkIngest(target, request('b'))).toThrow(refusal);
    expect(() => orchestrator.openIngest(target, request('b'))).toThrow(refusal);
    app?.openIngest({ ...request('channel'), provider: 'multiplex' }).setTracks([audioTrack()]);
    orchestrator.meter.connect('llhls', 3);
    orchestrator.meter.connect('push', 1);
    expect([app?.streams.map(({ name }) => name), presenceIn(orchestrator)]).toEqual([['a', 'channel'], { publishers: 1, sessions: 3 }]);
    expect(presenceIn(orchestrator, 2).sessions).toBe(5);
    const emptiedAt = emptied(drain, () => presenceIn(orchestrator), new Promise(() => undefined));
    first.close({ code: 'peer-left', detail: 'bye' });
    orchestrator.meter.disconnect('llhls', 3);
    await emptiedAt;
    drain.set(false);
    orchestrator.openIngest(target, request('b')).setTracks([audioTrack()]);
    // The caller stops waiting.
    await emptied(drain, () => presenceIn(orchestrator), Promise.resolve());
    expect([drain.active, presenceIn(orchestrator).publishers]).toEqual([true, 1]);
  });

  it('applies the limit of each provider separately, and lets a stream be replaced', async () => {
    const { orchestrator } = setUp();
    const providers = { rtmp: { maxConnection: 2, blockDuplicateStreamName: false }, srt: {}, ovt: { maxConnection: 1 } };
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app', { providers }), appDefinition('other')]);
    const target = { host: 'x', app: 'app' };
    const first = orchestrator.openIngest(target, request('a'));
    orchestrator.openIngest(target, request('b'));
    const refused = "application 'app' has 2 streams of provider 'rtmp', which is all it may have (MaxConnection)";
    expect(() => orchestrator.openIngest(target, request('c'))).toThrow(
      expect.objectContaining({ code: 'full', message: refused }) as Error,
    );
    expect(() => orchestrator.checkIngest(target, request('c'))).toThrow(refused);
    orchestrator.openIngest(target, request('b'));
    orchestrator.openIngest(target, { ...request('c'), provider: 'srt' });
    orchestrator.openIngest({ host: 'x', app: 'other' }, request('c'));
    first.close({ code: 'peer-left', detail: 'bye' });
    orchestrator.openIngest(target, request('d'));
    expect(() => orchestrator.openIngest(target, request('e'))).toThrow(refused);
    // Pulled streams count as connections of their provider, too.
    const app = orchestrator.application('v', 'app');
    app?.openPulled({ ...request('p'), provider: 'ovt' });
    expect(() => app?.openPulled({ ...request('q'), provider: 'ovt' })).toThrow("has 1 streams of provider 'ovt'");
  });

  it('reports to publishers whether another viewer is admitted, over all streams of the application', async () => {
    const { orchestrator } = setUp();
    const publishers = { webrtc: { maxConnection: 2 }, srt: { maxConnection: 0 }, llhls: {} };
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app', { publishers }), appDefinition('other')]);
    const outputs = ['a', 'b'].map((name) => {
      const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, request(name));
      ingest.setTracks([videoTrack()]);
      ingest.push(videoPacket(0));
      return orchestrator.application('v', 'app')?.outbound(`${name}_out`);
    });
    const room = (): unknown => outputs.map((output) => output?.hasRoom('webrtc'));
    const handles = outputs.map((output, index) => {
      expect(room()).toEqual([true, true]);
      return output?.openSession({ kind: 'webrtc', id: `${index}`, onTerminate: () => undefined });
    });
    expect(room()).toEqual([false, false]);
    expect(outputs.map((output) => [output?.hasRoom('srt'), output?.hasRoom('llhls')])).toEqual(Array(2).fill([true, true]));
    handles[1]?.close();
    expect(room()).toEqual([true, true]);
  });

  it('derives the wall clock from the packets with the least delay', async () => {
    const { orchestrator, clock } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, request('s'));
    const publishedAt = clock.now();
    clock.advance(1500);
    ingest.setTracks([videoTrack()]);
    for (let index = 0; index <= 45; index += 1) ingest.push(videoPacket(index));
    await turn();
    const output = orchestrator.application('v', 'app')?.stream('s')?.outputs[0];
    expect(output?.startedAt).toBe(publishedAt);
    clock.advance(10_000);
    ingest.push(videoPacket(46));
    await turn();
    expect(output?.startedAt).toBe(publishedAt);
  });

  it('notifies a source of each viewer and other consumer, until the source has ended', async () => {
    const { orchestrator } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    let told = 0;
    const onWatched = (): void => {
      told += 1;
    };
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, { ...request('s'), onWatched });
    ingest.setTracks([videoTrack(), audioTrack()]);
    const output = orchestrator.application('v', 'app')?.stream('s')?.outputs[0];
    output?.openSession({ kind: 'webrtc', id: 'a', onTerminate: () => undefined });
    expect(told).toBe(1);
    output?.wake();
    expect(told).toBe(2);
    ingest.close({ code: 'peer-left', detail: 'bye' });
    output?.wake();
    expect(told).toBe(2);
  });

  it('keeps a burst completely and pauses its source', async () => {
    const { orchestrator, publisher } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    const asked: string[] = [];
    const burst = { ...request('s'), onCongested: () => asked.push('stop'), onRelieved: () => asked.push('go on') };
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, burst);
    ingest.setTracks([videoTrack()]);
    for (let index = 0; index < 5000; index += 1) ingest.push(videoPacket(index));
    expect(asked).toEqual(['stop']);
    ingest.setTracks([videoTrack({ config: AVCC.baseline360 })]);
    expect(asked).toEqual(['stop', 'go on']);
    for (let index = 5000; index < 5600; index += 1) ingest.push(videoPacket(index));
    ingest.close({ code: 'peer-left', detail: 'bye' });
    expect(publisher.packets).toHaveLength(5600);
    expect(asked).toEqual(['stop', 'go on', 'stop', 'go on']);
  });

  it('logs an unreadable track once, and lists no stream without a readable track', async () => {
    const { orchestrator, logger } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, request('s'));
    expect(() => ingest.setTracks([videoTrack({ config: Buffer.of(1, 2) })])).toThrow(ProtocolError);
    expect(orchestrator.application('v', 'app')?.streams).toEqual([]);
    for (const last of [3, 4]) ingest.setTracks([videoTrack({ config: Buffer.of(1, last) }), audioTrack()]);
    expect(logger.lines.filter(({ message }) => message.startsWith('the parameters of a track cannot be read'))).toHaveLength(1);
    expect(
      orchestrator
        .application('v', 'app')
        ?.stream('s')
        ?.tracks.map(({ type }) => type),
    ).toEqual(['audio', 'data']);
  });

  it('names encodes that it cannot serve', async () => {
    const { orchestrator, logger } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    orchestrator.openIngest({ host: 'x', app: 'app' }, request('s')).setTracks([audioTrack()]);
    expect(logger.lines.some(({ level, fields }) => level === 'warn' && JSON.stringify(fields['encodes']) === '["opus"]')).toBe(true);
  });

  it.each([
    ['no-virtual-host', { host: 'other', app: 'app' }, 's'],
    ['no-application', { host: 'v.local', app: 'nope' }, 's'],
    ['provider-disabled', { host: 'v.local', app: 'closed' }, 's'],
    ['invalid-name', { host: 'v.local', app: 'app' }, 'a/b'],
    ['duplicate-name', { host: 'v.local', app: 'app' }, 'taken'],
  ])('refuses an ingest: %s', async (code, target, streamName) => {
    const { orchestrator } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['v.local']), [
      appDefinition('app'),
      appDefinition('closed', { providers: {} }),
    ]);
    orchestrator.openIngest({ host: 'v.local', app: 'app' }, request('taken'));
    const refusal = expect.objectContaining({ name: 'IngestRefused', code });
    expect(() => orchestrator.checkIngest(target, request(streamName))).toThrowError(refusal);
    expect(() => orchestrator.openIngest(target, request(streamName))).toThrowError(refusal);
  });

  it('checks whether an ingest would be admitted without admitting it', async () => {
    const { orchestrator } = setUp();
    const sourceLoss = { takeOver: 'replace' };
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [
      appDefinition('app'),
      appDefinition('open', { providers: { rtmp: { blockDuplicateStreamName: false } } }),
      appDefinition('taking', { providers: { rtmp: {} }, sourceLoss }),
      appDefinition('keeping', { providers: { rtmp: {} }, sourceLoss: { takeOver: 'block' } }),
    ]);
    for (const app of ['app', 'open', 'taking', 'keeping']) {
      const target = { host: 'x', app };
      const closes: CloseReason[] = [];
      orchestrator.checkIngest(target, request('s'));
      orchestrator.openIngest(target, request('s', closes));
      const check = (): void => orchestrator.checkIngest(target, request('s'));
      if (app === 'open' || app === 'taking') check();
      else expect(check).toThrowError(expect.objectContaining({ code: 'duplicate-name' }));
      expect(closes).toEqual([]);
    }
  });

  it('lets a new publisher take over when duplicates are not blocked', async () => {
    const { orchestrator } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [
      appDefinition('app', { providers: { rtmp: { blockDuplicateStreamName: false } } }),
    ]);
    const closes: CloseReason[] = [];
    orchestrator.openIngest({ host: 'x', app: 'app' }, request('s', closes));
    const second = orchestrator.openIngest({ host: 'x', app: 'app' }, request('s'));
    expect(closes).toMatchObject([{ code: 'replaced' }]);
    expect(second.closed).toBe(false);
  });

  it('restarts an application on replacement: its streams end with a reason', async () => {
    const { orchestrator, saved } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('a'), appDefinition('b')]);
    const closes: CloseReason[] = [];
    orchestrator.openIngest({ host: 'x', app: 'a' }, request('s', closes)).setTracks([videoTrack()]);
    await orchestrator.replaceApplication('v', 'a', (current) => ({ ...current, echo: { name: 'a', changed: true } }));
    expect(closes).toMatchObject([{ code: 'application-restart' }]);
    expect([...(orchestrator.virtualHost('v')?.applications.keys() ?? [])]).toEqual(['b', 'a']);
    expect(saved.at(-1)?.applications).toEqual([{ name: 'b' }, { name: 'a', changed: true }]);
  });

  it('changes nothing when saving fails', async () => {
    let broken = false;
    const fail = async (): Promise<void> => {
      if (broken) throw Object.assign(new Error('disk full'), { code: 'ENOSPC' });
    };
    const { orchestrator } = setUp({ store: { save: fail, remove: fail } });
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('a')]);
    broken = true;
    const refusal = expect.objectContaining({ name: 'ControlError', code: 'not-durable' });
    await expect(orchestrator.createVirtualHost(vhostDefinition('w', ['w']), [])).rejects.toThrowError(refusal);
    await expect(orchestrator.deleteVirtualHost('v')).rejects.toThrowError(refusal);
    await expect(orchestrator.createApplication('v', appDefinition('b'))).rejects.toThrowError(refusal);
    await expect(orchestrator.deleteApplication('v', 'a')).rejects.toThrowError(refusal);
    expect(orchestrator.virtualHosts.map(({ name }) => name)).toEqual(['v']);
    expect([...(orchestrator.virtualHost('v')?.applications.keys() ?? [])]).toEqual(['a']);
  });

  it('accepts one of two simultaneous creations', async () => {
    const { orchestrator } = setUp();
    const results = await Promise.allSettled([1, 2].map(() => orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [])));
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('removes a failing publisher from its stream and keeps the others and the ingest', async () => {
    const { orchestrator, publisher, logger } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, request('s'));
    ingest.setTracks([videoTrack()]);
    publisher.throws = true;
    ingest.push(videoPacket(0));
    await turn();
    publisher.throws = false;
    ingest.push(videoPacket(1));
    await turn();
    expect(ingest.closed).toBe(false);
    expect(publisher.packets).toEqual([]);
    expect(logger.lines.some(({ level, message }) => level === 'error' && message.includes('publisher failed'))).toBe(true);
  });

  it('counts ingests and sessions up to the server, and decreases the counts at their ends', async () => {
    const { orchestrator } = setUp();
    await orchestrator.createVirtualHost(vhostDefinition('v', ['*']), [appDefinition('app')]);
    const ingest = orchestrator.openIngest({ host: 'x', app: 'app' }, request('s'));
    ingest.setTracks([videoTrack()]);
    ingest.countBytes(1000);
    const stream = orchestrator.application('v', 'app')?.stream('s');
    stream?.meter.connect('llhls', 2);
    expect(orchestrator.meter).toMatchObject({ ingests: { rtmp: 1 }, sessions: { llhls: 2 }, totalSessions: 2, in: { total: 1000 } });
    await orchestrator.deleteApplication('v', 'app');
    stream?.meter.disconnect('llhls', 2);
    expect(orchestrator.meter).toMatchObject({ ingests: { rtmp: 0 }, sessions: { llhls: 0 }, totalSessions: 0, maxTotalSessions: 2 });
  });

  it('makes applications of a template for a viewer, never for publishers, and removes unused ones', async () => {
    const { orchestrator, clock } = setUp();
    orchestrator.restore(vhostDefinition('v', ['*']), [appDefinition('app'), appDefinition('*')], { readOnly: true });
    const vhost = orchestrator.virtualHost('v');
    expect([...(vhost?.applications.keys() ?? [])]).toEqual(['app']);
    for (const app of ['*', 'made']) {
      expect(() => orchestrator.openIngest({ host: 'x', app }, request('s'))).toThrow(/has no application/);
    }
    expect(orchestrator.applicationOnDemand('v', 'app')).toBe(orchestrator.application('v', 'app'));
    expect(orchestrator.applicationOnDemand('v', 'a/b')).toBeUndefined();
    expect(orchestrator.applicationOnDemand('nope', 'made')).toBeUndefined();
    const made = orchestrator.applicationOnDemand('v', 'made');
    if (made === undefined) throw new Error('nothing was made');
    expect([made.name, made.definition.echo['name'], vhost?.dynamic.has(made)]).toEqual(['made', 'made', true]);
    expect(orchestrator.applicationOnDemand('v', 'made')).toBe(made);

    const ingest = orchestrator.openIngest({ host: 'x', app: 'made' }, request('s'));
    // The stream is not listed yet, but it exists.
    clock.advance(100_000);
    orchestrator.onDemand.removeUnused(60_000);
    expect(orchestrator.application('v', 'made')).toBe(made);
    ingest.setTracks([videoTrack()]);
    clock.advance(100_000);
    orchestrator.onDemand.removeUnused(60_000);
    ingest.close({ code: 'peer-left', detail: 'bye' });
    orchestrator.onDemand.removeUnused(60_000);
    clock.advance(59_000);
    orchestrator.onDemand.removeUnused(60_000);
    expect(orchestrator.application('v', 'made')).toBe(made);
    clock.advance(2000);
    orchestrator.onDemand.removeUnused(60_000);
    expect(vhost?.dynamic.size).toBe(0);
    expect([...(vhost?.applications.keys() ?? [])]).toEqual(['app']);
  });

  it('limits the applications made from a template', () => {
    const { orchestrator } = setUp();
    orchestrator.restore(vhostDefinition('v', ['*']), [appDefinition('*')], { readOnly: true });
    const made = Array.from({ length: 300 }, (_, index) => orchestrator.applicationOnDemand('v', `made${index}`));
    expect(made.filter((application) => application !== undefined)).toHaveLength(200);
    expect(orchestrator.onDemand.refused).toBe(100);
    orchestrator.onDemand.removeUnused(0);
    expect(orchestrator.applicationOnDemand('v', 'again')).toBeDefined();
  });

  it('makes no application without a template', async () => {
    const { orchestrator } = setUp();
    orchestrator.restore(vhostDefinition('v', ['*']), [appDefinition('app')], { readOnly: true });
    expect(orchestrator.applicationOnDemand('v', 'made')).toBeUndefined();
  });
});
