/** Streams that an application pulls from a source under the control of the test. */
import { afterEach, vi } from 'vitest';
import type { ApplicationConfig } from '../../src/config/index.ts';
import { Application } from '../../src/core/application.ts';
import { ProviderKind, PublisherKind, SourceType } from '../../src/core/kinds.ts';
import type { PullDefinition } from '../../src/core/pull.ts';
import { PullRegistry } from '../../src/core/pull-registry.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import { TrafficMeter } from '../../src/core/traffic-meter.ts';
import type { Packet } from '../../src/media/packet.ts';
import { type Clock, systemClock } from '../../src/util/clock.ts';
import { FakePullSource, MemoryPullStore } from './fake-pull-source.ts';
import { RecordingLogger } from './recording-logger.ts';

const stops: (() => void)[] = [];

/** Call it once per test file that pulls: ends all pulls after each test. */
export function endPulls(): void {
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
    vi.useRealTimers();
  });
}

/** An application whose source plays the URLs for which `plays` is true. */
export function setUpPulls(plays: (url: string) => boolean, clock: Clock = systemClock) {
  const packets: Packet[] = [];
  const publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: () => ({ onTracks: () => undefined, onPacket: (packet: Packet) => packets.push(packet), close: () => undefined }),
  };
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [], images: [] };
  const config = {
    name: 'app',
    providers: { rtspPull: { marked: 'as such' }, rtmp: { blockDuplicateStreamName: false } },
    publishers: { llhls: {} },
    outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes }] },
  } as unknown as ApplicationConfig;
  const meter = new TrafficMeter(clock, null);
  const logger = new RecordingLogger();
  const application = new Application('v', { name: 'app', config, echo: {} }, meter, {
    clock,
    logger,
    queues: new QueueRegistry(clock),
    publishers: new Map([[publisher.kind, publisher]]),
    transcoder: null,
    nextStreamId: () => 1,
  });
  const source = new FakePullSource({ schemes: ['rtsp'], provider: ProviderKind.RTSP_PULL, sourceType: SourceType.RTSP_PULL, plays });
  const store = new MemoryPullStore();
  const gone = { now: false };
  const lookUp = () => (gone.now ? undefined : application);
  const pulls = new PullRegistry({ sources: [source], store, clock, logger, application: lookUp });
  stops.push(() => pulls.close({ code: 'shutdown', detail: 'the test ends' }));
  const pull = async (definition: Partial<PullDefinition> = {}, properties: Partial<PullDefinition['properties']> = {}) => {
    await pulls.create(application, {
      name: 's',
      urls: ['rtsp://first/', 'rtsp://second/'],
      ...definition,
      properties: {
        ...{ persistent: false, noInputFailoverTimeoutMs: 60_000, unusedStreamDeletionTimeoutMs: 60_000 },
        ...{ ignoreRtcpSRTimestamp: false, retryCount: 1, relay: false },
        ...properties,
      },
    });
  };
  return { application, source, store, packets, pull, pulls, logger, gone };
}

/** A publisher with the name of the pulled stream. */
export const PUBLISHER = {
  streamName: 's',
  provider: ProviderKind.RTMP,
  sourceType: SourceType.RTMP,
  sourceUrl: 'TCP://encoder',
  onClose: () => undefined,
};

/** Pulls are supervised by `rounds` alone from now on; `endPulls` ends that. */
export function holdRounds(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
}

/** Some rounds of supervision, after `holdRounds`. */
export async function rounds(): Promise<void> {
  await vi.advanceTimersByTimeAsync(250);
  // What they began: attempts of a source that answers at once.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
