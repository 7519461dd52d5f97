import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ApplicationConfig } from '../../src/config/index.ts';
import { Application } from '../../src/core/application.ts';
import type { CloseReason, IngestRequest } from '../../src/core/ingest.ts';
import { ProviderKind, SourceType } from '../../src/core/kinds.ts';
import { MediaRouter } from '../../src/core/media-router.ts';
import { PullRegistry } from '../../src/core/pull-registry.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import { TrafficMeter } from '../../src/core/traffic-meter.ts';
import type { VirtualHost } from '../../src/core/virtual-host.ts';
import { WaitingRoom } from '../../src/delivery/feed/waiting-room.ts';
import { HttpListener } from '../../src/delivery/http/http-listener.ts';
import { DateLine } from '../../src/delivery/http/status-line.ts';
import { DEFAULT_HTTP_LIMITS } from '../../src/delivery/http-limits.ts';
import { CertificateStore } from '../../src/delivery/tls/certificate-store.ts';
import { MpegtsProvider } from '../../src/services/mpegts/mpegts-provider.ts';
import { PushFailure } from '../../src/services/push/push-failure.ts';
import { PushSession } from '../../src/services/push/push-session.ts';
import { finaliserThread } from '../../src/services/record/finalise.ts';
import { ConnectionGate, type GateOptions } from '../../src/transport/proxy/connection-gate.ts';
import { systemClock } from '../../src/util/clock.ts';
import { forEachGuarded, guarded } from '../../src/util/guarded.ts';
import { BlobFeed, startBlobPool } from '../fakes/blob-pool.ts';
import { FakeExchange, FakeViewContext } from '../fakes/fake-delivery.ts';
import { FakePullSource, MemoryPullStore } from '../fakes/fake-pull-source.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { RawClient } from '../fakes/raw-client.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../fakes/source.ts';
import { SimulatedLink } from '../fakes/srt-link.ts';
import { until } from '../harness/poll.ts';

const FAULT = new TypeError('made up');
const WAIT = { deadlineMs: 30_000, everyMs: 5 };
const fail = (): never => {
  throw FAULT;
};

const closings: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const close of closings.splice(0).reverse()) await close();
});

/** Messages of log lines about faults. */
function told(logger: RecordingLogger): string[] {
  return logger.lines
    .filter(({ level, fields }) => level === 'error' && ('err' in fields || 'error' in fields))
    .map(({ message }) => message);
}

describe('periodic work', () => {
  test('is logged at its 1st, 2nd, 4th … fault, and called again', async () => {
    const logger = new RecordingLogger();
    let calls = 0;
    const throwing = guarded(logger, 'a task', () => {
      calls += 1;
      fail();
    });
    for (let n = 0; n < 100; n += 1) throwing();
    expect(calls).toBe(100);
    expect(logger.lines.map(({ fields }) => fields['faults'])).toEqual([1, 2, 4, 8, 16, 32, 64]);
    expect(logger.lines[0]).toMatchObject({ level: 'error', message: 'a task failed inside the server', fields: { err: FAULT } });
    const rejecting = guarded(logger, 'a promise', async () => fail());
    rejecting();
    await logger.line('a promise failed inside the server');
  });

  test('runs each turn even when the previous turn threw', () => {
    const seen: unknown[] = [];
    const turn = (n: number): void => {
      if (n === 2) fail();
      seen.push(n);
    };
    forEachGuarded([1, 2, 3], turn, (item, error) => seen.push([item, error]));
    expect(seen.splice(0)).toEqual([1, [2, FAULT], 3]);
    expect(() => forEachGuarded([1, 2, 3], turn, fail)).toThrow(FAULT);
    expect(seen).toEqual([1, 3]);
  });
});

function application(logger: RecordingLogger): Application {
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
  const config = {
    ...{ name: 'app', providers: { rtmp: {}, rtspPull: {} }, publishers: {} },
    outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes }] },
  } as unknown as ApplicationConfig;
  let lastId = 0;
  const nextStreamId = (): number => {
    lastId += 1;
    return lastId;
  };
  const shared = {
    clock: systemClock,
    logger,
    queues: new QueueRegistry(systemClock),
    publishers: new Map(),
    transcoder: null,
    nextStreamId,
  };
  return new Application('v', { name: 'app', config, echo: {} }, new TrafficMeter(systemClock, null), shared);
}

describe('a stream', () => {
  function open(app: Application, streamName: string, closes: CloseReason[]): ReturnType<Application['openIngest']> {
    const request: IngestRequest = {
      ...{ streamName, provider: ProviderKind.RTMP, sourceType: SourceType.RTMP, sourceUrl: 'TCP://a' },
      onClose: (reason) => closes.push(reason),
    };
    const stream = app.openIngest(request);
    stream.setTracks([videoTrack(), audioTrack()]);
    return stream;
  }

  test('that causes a fault in the router ends with its connection, and the others continue', async () => {
    const logger = new RecordingLogger();
    const app = application(logger);
    const closes: CloseReason[] = [];
    const broken = open(app, 'broken', closes);
    const sound = open(app, 'sound', closes);
    vi.spyOn(MediaRouter.prototype, 'push').mockImplementationOnce(fail);
    broken.push(videoPacket(0));
    broken.push(videoPacket(1));
    await until('the end of the broken one', () => closes.length > 0, WAIT);
    expect(closes).toEqual([{ code: 'peer-error', detail: 'internal error' }]);
    expect([broken.closed, sound.closed]).toEqual([true, false]);
    expect(told(logger)).toEqual(['the stream failed inside the server']);
    sound.push(audioPacket(0));
    sound.close({ code: 'peer-left', detail: 'bye' });
  });

  test('whose remaining packets cannot be processed ends nevertheless', () => {
    const logger = new RecordingLogger();
    const app = application(logger);
    const stream = open(app, 's', []);
    vi.spyOn(MediaRouter.prototype, 'push').mockImplementation(fail);
    stream.push(videoPacket(0));
    stream.close({ code: 'peer-left', detail: 'bye' });
    expect([stream.closed, app.hasStream('s')]).toEqual([true, false]);
    expect(told(logger)).toEqual(['the rest of the stream failed inside the server']);
  });

  test('that is pulled and can no longer be watched over ends with a log line', async () => {
    const logger = new RecordingLogger();
    const app = application(logger);
    const source = new FakePullSource({
      schemes: ['rtsp'],
      provider: ProviderKind.RTSP_PULL,
      sourceType: SourceType.RTSP_PULL,
      plays: () => true,
    });
    const pulls = new PullRegistry({ sources: [source], store: new MemoryPullStore(), clock: systemClock, logger, application: () => app });
    closings.push(() => pulls.close({ code: 'shutdown', detail: 'over' }));
    const clock = vi.spyOn(systemClock, 'monotonic');
    const properties = { persistent: true, noInputFailoverTimeoutMs: 1, unusedStreamDeletionTimeoutMs: 1, ignoreRtcpSRTimestamp: false };
    await pulls.create(app, {
      name: 's',
      urls: ['rtsp://h/'],
      properties: { ...properties, retryCount: 1, relay: false },
      configured: true,
    });
    clock.mockImplementationOnce(fail);
    await until('the end of the stream', () => !app.hasStream('s'), WAIT);
    expect(told(logger)).toEqual(['a pulled stream failed inside the server']);
  });
});

describe('a persistent stream', () => {
  test('that waits to return does so, though its first try fails', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const logger = new RecordingLogger();
    const app = application(logger);
    let lookUp: () => Application | undefined = () => undefined;
    const source = new FakePullSource({
      ...{ schemes: ['rtsp'], provider: ProviderKind.RTSP_PULL, sourceType: SourceType.RTSP_PULL },
      plays: () => true,
    });
    const pulls = new PullRegistry({
      ...{ sources: [source], store: new MemoryPullStore(), clock: systemClock, logger },
      application: () => lookUp(),
    });
    closings.push(() => pulls.close({ code: 'shutdown', detail: 'over' }));
    const properties = { persistent: true, noInputFailoverTimeoutMs: 60_000, unusedStreamDeletionTimeoutMs: 60_000, retryCount: 1 };
    const definition = { name: 's', urls: ['rtsp://h/'], properties: { ...properties, ignoreRtcpSRTimestamp: false, relay: false } };
    expect(() => pulls.restore({ vhost: 'v', app: 'app', ...definition })).toThrow('there is no application');
    lookUp = fail;
    vi.advanceTimersByTime(3000);
    expect(told(logger)[0]).toBe('the return of persistent streams failed inside the server');
    expect([pulls.waiting, app.hasStream('s')]).toEqual([1, false]);
    lookUp = () => app;
    vi.advanceTimersByTime(3000);
    expect([pulls.waiting, app.hasStream('s')]).toEqual([0, true]);
  });
});

describe('an SRT port', () => {
  test.each(['onData', 'onOpen', 'tick'] as const)('closes only the connection that fails in %s', (place) => {
    const faults: unknown[] = [];
    const link = new SimulatedLink({
      faults: { loss: 0, delay: 1000, jitter: 0 },
      seed: 1,
      listener: { onFault: (error) => faults.push(error) },
    });
    const before = link.call();
    link.run(500_000);
    const broken = link.call();
    if (place === 'onOpen') {
      const open = link.accepted.push.bind(link.accepted);
      link.accepted.push = (session) => {
        session.onOpen = fail;
        return open(session);
      };
    }
    link.run(500_000);
    const session = link.accepted[1]!;
    if (place === 'onData') session.onData = fail;
    if (place === 'tick') session.connection!.tick = fail;
    broken.session.connection?.send(new Uint8Array(100), link.now);
    before.session.connection?.send(new Uint8Array(100), link.now);
    link.run(1_000_000);
    expect(faults.length).toBeGreaterThan(0);
    expect(new Set(faults)).toEqual(new Set([FAULT]));
    if (place !== 'onOpen') expect(session.closed?.detail).toBe('internal error');
    expect(link.accepted[0]?.received).toHaveLength(1);
    expect(link.accepted[0]?.closed).toBeNull();
  });
});

describe('delivery', () => {
  test('answers all waiting requests, even when one of them causes a fault', () => {
    const context = new FakeViewContext();
    const room = new WaitingRoom(context, 10);
    const waiters = [fail, () => true, () => false].map((attempt) => {
      const exchange = new FakeExchange('file', () => []);
      room.add({ exchange, attempt, giveUp: fail }, 1000);
      return exchange;
    });
    expect(() => room.retry()).toThrow(FAULT);
    expect([waiters.map(({ response }) => response?.status), room.size]).toEqual([[500, undefined, undefined], 1]);
    expect(() => context.advance(1000)).toThrow(FAULT);
    expect([waiters[2]?.response?.status, room.size]).toEqual([500, 0]);
  });

  test('closes the connection whose answer fails, and serves the next', async () => {
    const counters: string[] = [];
    const listener = new HttpListener({
      handler: {
        handle: ({ target }, sink) => sink.answer(200, '', [Buffer.alloc(10)], target === '/fault' ? { sent: fail } : null),
      },
      ...{ limits: DEFAULT_HTTP_LIMITS, date: new DateLine(systemClock), commonHeaders: '', sender: null },
      onClosed: (_connection, reason) => counters.push(reason),
    });
    const port = await listener.listen({ host: '127.0.0.1', port: 0 });
    closings.push(() => listener.close(0));
    const client = await RawClient.open(port);
    closings.push(() => client.socket.destroy());
    client.socket.write('GET /fault HTTP/1.1\r\nHost: a\r\n\r\n');
    await until('the counters of the closed connection', () => counters.length > 0, WAIT);
    expect(counters[0]).toContain('TypeError: made up');
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
  });

  test('continues when a report or a look-up of its threads fails', async () => {
    const started = await startBlobPool(0, { reportInterval: 5 });
    closings.push(() => started.pool.stop());
    const blobs = new BlobFeed(started.pool, 'stream');
    blobs.putText('list.m3u8', '#EXTM3U\n');
    const { port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false });
    Object.defineProperty(blobs, 'bytes', { get: () => 0, set: fail });
    expect((await fetch(`http://127.0.0.1:${port}/app/stream/list.m3u8`)).status).toBe(200);
    await until('the line about the fault', () => told(started.logger).length > 0, WAIT);
    expect(told(started.logger)[0]).toBe('a message of a delivery thread failed inside the server');
    expect((await fetch(`http://127.0.0.1:${port}/app/stream/list.m3u8`)).status).toBe(200);
  });
});

describe('in the background', () => {
  test('an MPEG-TS port keeps receiving after a fault in its stream', async () => {
    const logger = new RecordingLogger();
    const provider = new MpegtsProvider({
      ...{ logger, clock: systemClock, host: '127.0.0.1', protocol: 'udp', ports: [0], timeouts: { retry: 1 } },
      route: fail,
    });
    await provider.start();
    closings.push(() => provider.stop());
    const [source] = provider.sources.values();
    const datagram = new Uint8Array(188).fill(0x47, 0, 1);
    for (let n = 0; n < 3; n += 1) source?.push(datagram, '192.0.2.1:1');
    expect(source?.counters.datagrams).toBe(3);
    expect(told(logger)[0]).toBe('transport stream failed inside the server');
  });

  test('a certificate refused by one port reaches the others', async () => {
    const logger = new RecordingLogger();
    const store = new CertificateStore(logger);
    const calls: string[] = [];
    let isBroken = false;
    store.addFollower(() => {
      if (isBroken) fail();
    });
    store.addFollower(() => calls.push('told'));
    isBroken = true;
    store.follow([{ name: 'v', hostNames: [], definition: { config: {} } } as unknown as VirtualHost]);
    await store.settled();
    expect([calls, told(logger)]).toEqual([['told', 'told'], ['certificates could not be passed to a listener']]);
  });

  test('a push whose owner fails is closed', async () => {
    const logger = new RecordingLogger();
    const queue = new QueueRegistry(new ManualClock()).create<never>({ urn: 'u', type: 'Packet', threshold: 10 });
    let events: { onOpen(): void; onFailed(failure: PushFailure): void } | null = null;
    let closed = 0;
    new PushSession({
      ...{ request: {} as never, owner: {} as never, logger, tracks: [], timeouts: {} as never, clock: systemClock, queue },
      open: (options) => {
        events = options.events;
        const close = (): Promise<void> => {
          closed += 1;
          return Promise.reject(FAULT);
        };
        return { sentBytes: 0, dropped: 0, write: () => true, flush: () => undefined, close };
      },
      onOpen: fail,
      onFailed: fail,
    });
    (events as unknown as { onOpen(): void }).onOpen();
    await until('the lines about the fault', () => told(logger).length === 2, WAIT);
    expect([closed, told(logger).sort()]).toEqual([
      1,
      ['a failed push failed inside the server', 'the end of a push failed inside the server'],
    ]);
    expect(new PushFailure('lost', 'x').code).toBe('lost');
  });

  test('a proxy whose header the server fails on loses its connection', () => {
    const faults: string[] = [];
    const limiter = { admit: () => true, admitAddress: () => true, fault: (why: string) => faults.push(why) };
    const gate = new ConnectionGate({ limiter, proxies: { has: () => true }, proxyProtocol: true } as unknown as GateOptions);
    const socket = Object.assign(new EventEmitter(), { remoteAddress: '192.0.2.1', closed: 0, resume: () => undefined });
    const destroy = (): void => {
      socket.closed += 1;
      socket.emit('close');
    };
    gate.open(Object.assign(socket, { destroy }) as unknown as Socket, fail, fail);
    socket.emit('data', 5);
    expect([faults.length, socket.closed]).toEqual([1, 1]);
    expect(faults[0]).toContain('failed on: TypeError');
  });

  test('a crash of the thread that finishes recordings rejects its jobs', async () => {
    const nothing = (): void => undefined;
    const worker = Object.assign(new EventEmitter(), { unref: nothing, postMessage: nothing, terminate: nothing });
    const thread = finaliserThread(() => worker as never);
    const job = thread.run('/nowhere');
    worker.emit('error', FAULT);
    await expect(job).rejects.toMatchObject({ name: 'WorkThreadLost', cause: FAULT });
  });
});
