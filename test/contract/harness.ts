/** An API server on a free port with a real core and without a disk, and a client that sends raw requests. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type HostKeys, hostKeysOf } from '../../src/access/access-keys.ts';
import { admissionMetrics } from '../../src/access/admission-metrics.ts';
import { ALL_METHODS, CrossDomainPolicy } from '../../src/access/cross-domains.ts';
import { RefusalCounts } from '../../src/access/refusal-counts.ts';
import { ApiServer, type ApiServerOptions } from '../../src/api/api-server.ts';
import { ControlPlane } from '../../src/api/control.ts';
import { Health } from '../../src/api/health.ts';
import type { EventFeed, LogFeed } from '../../src/api/live/live-feed.ts';
import { LiveFeed } from '../../src/api/live/live-feed.ts';
import { liveMetrics } from '../../src/api/live/live-metrics.ts';
import { loadServerConfig } from '../../src/config/index.ts';
import type { CloseReason, IngestStream } from '../../src/core/ingest.ts';
import { ProviderKind, type PublisherKind, SourceType } from '../../src/core/kinds.ts';
import { NoticeBoard } from '../../src/core/notices/notice-board.ts';
import { Orchestrator, type VirtualHostStore } from '../../src/core/orchestrator.ts';
import type { Publisher } from '../../src/core/publishing.ts';
import { PullRegistry } from '../../src/core/pull-registry.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import { StreamLineage } from '../../src/core/stream-lineage.ts';
import { MILLISECONDS } from '../../src/media/timebase.ts';
import { FigureHistory } from '../../src/monitoring/figure-history.ts';
import { MetricsCollector } from '../../src/monitoring/metrics-collector.ts';
import { newcomerMetrics } from '../../src/monitoring/newcomer-metrics.ts';
import { StreamHistory } from '../../src/monitoring/stream-history.ts';
import { streamMetrics } from '../../src/monitoring/stream-metrics.ts';
import { Dumper } from '../../src/services/hls/dump/dumper.ts';
import { LlhlsPublisher } from '../../src/services/hls/packager/fmp4/llhls-publisher.ts';
import { LlhlsView } from '../../src/services/hls/view/fmp4/llhls-view.ts';
import type { LlhlsViewSettings } from '../../src/services/hls/wire/view-settings.ts';
import { MultiplexChannels } from '../../src/services/multiplex/multiplex-service.ts';
import { PushPublisher } from '../../src/services/push/push-publisher.ts';
import { FilePublisher } from '../../src/services/record/file-publisher.ts';
import { codecModules } from '../../src/transcoder/codec-modules.ts';
import { ENCODERS } from '../../src/transcoder/encoder-catalogue.ts';
import { srtMetrics } from '../../src/transport/srt/srt-metrics.ts';
import { AllowedFolders } from '../../src/util/allowed-folders.ts';
import { Conditions } from '../../src/util/conditions.ts';
import type { LogLevel } from '../../src/util/gated-lines.ts';
import { KnownSecrets } from '../../src/util/known-secrets.ts';
import { LogTail } from '../../src/util/log-tail.ts';
import { newReceiverStatistics, newSenderStatistics } from '../../src/wire/srt/statistics.ts';
import { FakeDelivery } from '../fakes/fake-delivery.ts';
import { openFakeDestination } from '../fakes/fake-destination.ts';
import { FakePullSource, MemoryPullStore } from '../fakes/fake-pull-source.ts';
import { FakeSchedules } from '../fakes/fake-schedules.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { audioTrack, videoPacket, videoTrack } from '../fakes/source.ts';

export const TOKEN = 'millrace-access-token';
/** The answer of `GET /v1/version`. */
export const VERSION =
  '{"message":"OK","response":{"gitVersion":"v0.1.0-g4ff91095c0ff","millraceVersion":"0.1.0","version":"0.20.0"},"statusCode":200}';
/** The answer for an unknown path. */
export const NO_CONTROLLER = '{"message":"[HTTP] Controller not found (404)","statusCode":404}';
export const AUTHORIZATION = `Basic ${Buffer.from(TOKEN).toString('base64')}`;

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** An answer, header names in lower case; lines of the same name are joined by commas. */
export interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  /** Added to `Host` and `Authorization`; null removes one of them. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string | Buffer;
  readonly version?: string;
}

/** An SRT viewer. */
const SRT_LINK = {
  ...{ session: '7', peer: '127.0.0.1:5000', vhost: 'default', app: 'app', stream: 'café', rtt: 25, malformed: 0 },
  ...{ sender: newSenderStatistics(), receiver: newReceiverStatistics() },
};
/** Capabilities of a transcoder process without hardware. */
const HELLO = {
  version: '8.1',
  encoders: ENCODERS.filter(({ hardware }) => !hardware).map(({ name }) => name),
  decoders: ['h264', 'aac'],
};

export const anyOrigin = { urls: ['*'], headers: [] };

/** A certificate for localhost. */
export const TLS_FILES = { cert: fixture('tls/cert.pem'), key: fixture('tls/key.pem') };

const SERVER_XML = new URL('../fixtures/config/server.xml', import.meta.url);

/**
 * Starts a server with the declarations of the fixture `server.xml`; later objects are kept in memory. Requests that are not examined must
 * use `in-own-folder`. `now`: initial time of its clock.
 */
export async function startApi(
  overrides: Partial<ApiServerOptions> = {},
  writes: 'anywhere' | 'in-own-folder' = 'anywhere',
  now?: number,
): Promise<ApiHarness> {
  const clock = new ManualClock(now);
  const store = new MemoryStore();
  const logger = new RecordingLogger();
  const folder = mkdtempSync(join(tmpdir(), 'millrace-contract-'));
  const secrets = new KnownSecrets();
  const notices = new NoticeBoard({ clock, secrets });
  const live: EventFeed = new LiveFeed({ board: notices, logger });
  const tail = new LogTail({ clock, secrets });
  const logs: LogFeed = new LiveFeed({ board: tail, logger, maxFollowers: 2 });
  const writing = {
    clock,
    logger,
    notices,
    stateFolder: folder,
    allowed: new AllowedFolders(writes === 'anywhere' ? null : [folder], 'the test'),
  };
  const recordings = new FilePublisher(writing);
  await recordings.load();
  recordings.recover();
  const dumps = new Dumper(writing);
  const llhls = new LlhlsPublisher(new FakeDelivery((settings, context) => new LlhlsView(settings as LlhlsViewSettings, context)), dumps);
  const queues = new QueueRegistry(clock);
  const pushes = new PushPublisher({ clock, logger, queues, notices, stateFolder: folder, open: openFakeDestination });
  await pushes.start();
  const hostChanges: ReadonlyMap<string, HostKeys | undefined>[] = [];
  const keyUses: ApiHarness['keyUses'] = { usedAt: () => undefined };
  const orchestrator = new Orchestrator({
    clock,
    logger,
    queues,
    notices,
    store,
    publishers: new Map<PublisherKind, Publisher>([
      [llhls.kind, llhls],
      [recordings.kind, recordings],
      [pushes.kind, pushes],
    ]),
    onHostsChanged: (hosts) => hostChanges.push(new Map(hosts.map((host) => [host.name, hostKeysOf(host)]))),
    onApplication: (application) => {
      scheduled.schedules.follow(application);
      followed.push(multiplex.follow(application));
    },
  });
  const scheduled = new FakeSchedules({ orchestrator, folder, clock, logger, allowed: writing.allowed });
  const followed: unknown[] = [];
  const multiplex = new MultiplexChannels({
    applications: orchestrator,
    allowed: new AllowedFolders([folder], 'the test'),
    lineage: new StreamLineage(),
    logger,
  });
  multiplex.start();
  for (const host of loadServerConfig(fileURLToPath(SERVER_XML)).virtualHosts) {
    const applications = host.applications.map(({ typed, echo }) => {
      // The fixture names a folder that exists only on another machine.
      if (typed.publishers.file?.rootPath !== undefined) typed.publishers.file.rootPath = join(folder, 'root');
      if (typed.providers.multiplex !== undefined) typed.providers.multiplex.muxFilesDir = join(folder, 'mux');
      return { name: typed.name, config: typed, echo };
    });
    orchestrator.restore({ name: host.typed.name, config: host.typed, echo: host.echo }, applications, { readOnly: true });
  }
  await Promise.all(followed);
  const pullStore = new MemoryPullStore();
  const plays = (url: string): boolean => url.endsWith('/app/stream');
  const rtsp = new FakePullSource({
    schemes: ['rtsp', 'rtspc'],
    provider: ProviderKind.RTSP_PULL,
    sourceType: SourceType.RTSP_PULL,
    plays,
  });
  const ovt = new FakePullSource({ schemes: ['ovt'], provider: ProviderKind.OVT, sourceType: SourceType.OVT, plays });
  const pulls = new PullRegistry({
    sources: [rtsp, ovt],
    store: pullStore,
    clock,
    logger,
    application: (vhost, app) => orchestrator.application(vhost, app),
  });
  let logLevel: LogLevel = 'info';
  const certificates = new RecordingCertificates();
  const history = new FigureHistory(clock, orchestrator.meter);
  const streamHistory = new StreamHistory(clock, orchestrator);
  const control = new ControlPlane({
    orchestrator,
    recordings,
    dumps,
    pushes,
    schedules: scheduled.schedules,
    multiplex,
    pulls,
    writing: writing.allowed,
    reloadCertificates: (hosts) => certificates.reload(hosts),
    metrics: new MetricsCollector(
      [
        newcomerMetrics({ size: 3, refused: 17 }),
        streamMetrics(orchestrator),
        srtMetrics([{ direction: 'playback', statistics: () => [SRT_LINK] }]),
        admissionMetrics(() => []),
        new RefusalCounts(),
        liveMetrics(live),
      ],
      500,
    ),
    history,
    streamHistory,
    codecModules: async () => codecModules(HELLO, []),
    logLevel: {
      get: () => logLevel,
      set: (level) => {
        logLevel = level;
      },
    },
    keyUsedAt: (grant) => keyUses.usedAt(grant),
    live,
    logs,
  });
  const health = new Health(new Conditions());
  health.phase = 'running';
  const server = new ApiServer({
    control,
    health,
    version: '0.1.0',
    revision: '4ff91095c0ff',
    accessToken: TOKEN,
    hostNames: ['*'],
    crossDomains: new CrossDomainPolicy({ defaults: anyOrigin, own: anyOrigin, methods: ALL_METHODS }),
    logger,
    addresses: ['127.0.0.1'],
    port: 0,
    tls: null,
    ...overrides,
  });
  await server.listen();
  return new ApiHarness({
    ...{ server, orchestrator, recordings, dumps, pushes, scheduled, multiplex, folder, pulls, pullStore, rtsp },
    ...{ store, certificates, clock, logger, health, hostChanges, keyUses, notices, live, tail, secrets, history, streamHistory },
  });
}

/** Stores documents in memory; the test can make it refuse. */
export class MemoryStore implements VirtualHostStore {
  readonly documents = new Map<string, Parameters<VirtualHostStore['save']>[0]>();
  full = false;

  async save(document: Parameters<VirtualHostStore['save']>[0]): Promise<void> {
    if (this.full) throw new Error('no space left on device');
    this.documents.set(document.name, document);
  }

  async remove(name: string): Promise<void> {
    if (this.full) throw new Error('no space left on device');
    this.documents.delete(name);
  }
}

/** Records the hosts whose certificates were reloaded; the test can make it fail. */
export class RecordingCertificates {
  readonly reloaded: string[][] = [];
  broken = false;

  async reload(hosts: readonly { readonly name: string }[]): Promise<void> {
    if (this.broken) throw new Error('certificate file cannot be read, not even by café\r\n');
    this.reloaded.push(hosts.map(({ name }) => name));
  }
}

export class ApiHarness {
  readonly server: ApiServer;
  readonly orchestrator: Orchestrator;
  readonly recordings: FilePublisher;
  readonly dumps: Dumper;
  readonly pushes: PushPublisher;
  /** Scheduled channels with their programs. */
  readonly scheduled: FakeSchedules;
  readonly multiplex: MultiplexChannels;
  /** State and recordings; removed by `close`. */
  readonly folder: string;
  readonly pulls: PullRegistry;
  readonly pullStore: MemoryPullStore;
  readonly rtsp: FakePullSource;
  readonly store: MemoryStore;
  readonly certificates: RecordingCertificates;
  readonly clock: ManualClock;
  readonly logger: RecordingLogger;
  readonly health: Health;
  /** Keys of the virtual hosts after each change. */
  readonly hostChanges: readonly ReadonlyMap<string, HostKeys | undefined>[];
  /** Returns the time of a key's last successful use. */
  readonly keyUses: { usedAt: (grant: string) => number | undefined };
  readonly notices: NoticeBoard;
  readonly live: EventFeed;
  readonly tail: LogTail;
  readonly secrets: KnownSecrets;
  /** Takes samples only when the test asks. */
  readonly history: FigureHistory;
  readonly streamHistory: StreamHistory;

  readonly #ingests = new Map<string, { readonly ingest: IngestStream; frames: number }>();

  constructor(
    parts: Pick<
      ApiHarness,
      | 'server'
      | 'orchestrator'
      | 'recordings'
      | 'dumps'
      | 'pushes'
      | 'scheduled'
      | 'multiplex'
      | 'folder'
      | 'pulls'
      | 'pullStore'
      | 'rtsp'
      | 'store'
      | 'certificates'
      | 'clock'
      | 'logger'
      | 'health'
      | 'hostChanges'
      | 'keyUses'
      | 'notices'
      | 'live'
      | 'tail'
      | 'secrets'
      | 'history'
      | 'streamHistory'
    >,
  ) {
    this.server = parts.server;
    this.orchestrator = parts.orchestrator;
    this.recordings = parts.recordings;
    this.dumps = parts.dumps;
    this.pushes = parts.pushes;
    this.scheduled = parts.scheduled;
    this.multiplex = parts.multiplex;
    this.folder = parts.folder;
    this.pulls = parts.pulls;
    this.pullStore = parts.pullStore;
    this.rtsp = parts.rtsp;
    this.store = parts.store;
    this.notices = parts.notices;
    this.live = parts.live;
    this.tail = parts.tail;
    this.secrets = parts.secrets;
    this.history = parts.history;
    this.streamHistory = parts.streamHistory;
    this.certificates = parts.certificates;
    this.clock = parts.clock;
    this.logger = parts.logger;
    this.health = parts.health;
    this.hostChanges = parts.hostChanges;
    this.keyUses = parts.keyUses;
  }

  /** Connects an RTMP publisher; resolves when its stream is visible. Returns the reasons for its closing. */
  async publish(vhost: string, app: string, stream: string): Promise<CloseReason[]> {
    const closed: CloseReason[] = [];
    const application = this.orchestrator.application(vhost, app);
    if (application === undefined) throw new Error(`there is no application ${vhost}/${app}`);
    const ingest = application.openIngest({
      streamName: stream,
      provider: ProviderKind.RTMP,
      sourceType: SourceType.RTMP,
      sourceUrl: 'TCP://198.51.100.7:50412',
      onClose: (reason) => closed.push(reason),
    });
    ingest.setTracks([videoTrack(), audioTrack(), { type: 'data', id: 2, timebase: MILLISECONDS, bitrateConf: 0 }]);
    for (let index = 0; index < 90; index += 1) ingest.push(videoPacket(index));
    ingest.countBytes(1000);
    this.#ingests.set(JSON.stringify([vhost, app, stream]), { ingest, frames: 90 });
    while (application.stream(stream) === undefined) await new Promise((resolve) => setImmediate(resolve));
    return closed;
  }

  /** Sends `frames` more frames of a stream made by `publish`; resolves when the publishers have them. */
  async feed(vhost: string, app: string, stream: string, frames: number): Promise<void> {
    const source = this.#ingests.get(JSON.stringify([vhost, app, stream]));
    if (source === undefined) throw new Error(`nobody publishes ${vhost}/${app}/${stream}`);
    for (let index = 0; index < frames; index += 1) {
      source.ingest.push(videoPacket(source.frames));
      source.frames += 1;
      this.clock.advance(1000 / 30);
      // The manual clock stands still while the server works.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Sends a packet from every publisher, as if none had been silent during a jump of the clock. */
  keepAlive(): void {
    for (const source of this.#ingests.values()) {
      source.ingest.push(videoPacket(source.frames));
      source.frames += 1;
    }
  }

  /** Resolves when `condition` holds; the test's own timeout is the deadline. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  get port(): number {
    return this.server.addresses[0]?.port ?? 0;
  }

  /** Sends a request on a new connection. */
  send(request: RawRequest): Promise<RawAnswer> {
    return exchange(this.port, serialize(request)).then((bytes) => parseAnswer(bytes, request.method === 'HEAD'));
  }

  /** Sends a request with an optional JSON body; resolves with the status and the parsed answer. */
  async call(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown }> {
    const answer = await this.send({ method, path, ...(body !== undefined && { body: JSON.stringify(body) }) });
    return { status: answer.status, json: JSON.parse(answer.body) };
  }

  /** Sends raw bytes; resolves with everything received until the server closed the connection. */
  raw(bytes: string | Buffer): Promise<string> {
    return exchange(this.port, bytes);
  }

  async close(): Promise<void> {
    this.pulls.close({ code: 'shutdown', detail: 'the test is over' });
    await this.server.close();
    await this.scheduled.schedules.close();
    await this.multiplex.close();
    await this.orchestrator.close({ code: 'shutdown', detail: 'the test is over' });
    await this.recordings.stop();
    await this.dumps.close();
    await this.pushes.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function serialize({ method = 'GET', path, headers = {}, body, version = '1.1' }: RawRequest): Buffer {
  const all: Record<string, string | null> = { Host: '127.0.0.1', Authorization: AUTHORIZATION, Connection: 'close', ...headers };
  if (body !== undefined && !('Content-Length' in all)) all['Content-Length'] = String(Buffer.byteLength(body));
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  const head = Buffer.from(`${method} ${path} HTTP/${version}\r\n${lines.join('\r\n')}\r\n\r\n`, 'utf8');
  return body === undefined ? head : Buffer.concat([head, typeof body === 'string' ? Buffer.from(body, 'utf8') : body]);
}

/** Sends bytes, and collects the answer until the server closes the connection. */
export function exchange(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.once('error', (error) => (chunks.length > 0 ? undefined : reject(error)));
    socket.write(bytes);
  });
}

/** Parses an answer; skips an interim answer (100) before it. */
export function parseAnswer(received: string, isHead: boolean): RawAnswer {
  const text = received.startsWith(CONTINUE) ? received.slice(CONTINUE.length) : received;
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(statusLine);
  if (match === null) throw new Error(`not an answer: ${JSON.stringify(text.slice(0, 200))}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const name = line.slice(0, line.indexOf(':')).toLowerCase();
    const value = line.slice(line.indexOf(':') + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const body = text.slice(end + 4);
  if (isHead && body !== '') throw new Error('the answer to HEAD has a body');
  return { status: Number(match[1]), reason: match[2] ?? '', headers, body };
}

function fixture(path: string): string {
  return readFileSync(new URL(`../fixtures/${path}`, import.meta.url), 'utf8');
}
