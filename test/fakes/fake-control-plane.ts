import { type ApplicationView, ChangeRefused, type ControlPlane, type StreamView, type VirtualHostView } from '../../src/api/control.ts';
import { isJsonObject, type JsonObject, type JsonValue, memberOf } from '../../src/api/json/json-value.ts';
import { ProviderKind, PublisherKind, SourceType } from '../../src/core/kinds.ts';
import type { Track } from '../../src/media/track.ts';
import type { OutputFigures } from '../../src/monitoring/stream-info.ts';
import type { ByteFigures, TrafficFigures } from '../../src/monitoring/traffic-figures.ts';
import type { QueueStatus } from '../../src/util/bounded-queue.ts';

const VHOST_MEMBERS = ['name', 'distribution', 'host', 'signedPolicy', 'admissionWebhooks', 'origins', 'originMapStore', 'applications'];
const APP_MEMBERS = ['name', 'type', 'outputProfiles', 'providers', 'publishers'];

/** A control plane in memory that knows just enough rules to refuse what the tests send. */
export class FakeControlPlane implements ControlPlane {
  readonly meter: TrafficFigures = fakeTraffic();
  readonly hosts = new Map<string, FakeVirtualHost>();
  queues: QueueStatus[] = [];
  /** Names of virtual hosts whose certificate was loaded again; `*` for all. */
  readonly reloads: string[] = [];
  failReloads = false;
  /** Applications with this name cannot be started. */
  unstartable = 'unstartable';

  get virtualHosts(): Iterable<VirtualHostView> {
    return this.hosts.values();
  }

  findVirtualHost(name: string): FakeVirtualHost | undefined {
    return this.hosts.get(name);
  }

  queueStatuses(): Iterable<QueueStatus> {
    return this.queues;
  }

  /** Adds a virtual host as the configuration file would. */
  declare(definition: JsonObject, applications: readonly JsonObject[]): FakeVirtualHost {
    const vhost = new FakeVirtualHost(definition, true);
    for (const application of applications) vhost.add(application);
    this.hosts.set(vhost.name, vhost);
    return vhost;
  }

  async createVirtualHost(definition: JsonObject): Promise<VirtualHostView> {
    const { applications, ...echo } = definition;
    const name = requireName(definition, 'virtualHost', VHOST_MEMBERS);
    if (!isJsonObject(memberOf(definition, 'host'))) throw new ChangeRefused('config', 'virtualHost.host is not optional');
    if (this.hosts.has(name)) throw new ChangeRefused('exists', name);
    const vhost = new FakeVirtualHost(echo, false);
    for (const application of Array.isArray(applications) ? applications : []) {
      if (!isJsonObject(application)) continue;
      if (application['name'] === this.unstartable) throw new ChangeRefused('failed', name);
      vhost.add(application);
    }
    this.hosts.set(name, vhost);
    return vhost;
  }

  async deleteVirtualHost(vhost: string): Promise<void> {
    this.hosts.delete(vhost);
  }

  async createApplication(vhost: string, definition: JsonObject): Promise<ApplicationView> {
    const owner = this.#vhost(vhost);
    validateApplication(definition);
    const name = nameOf(definition);
    if (owner.apps.has(name)) throw new ChangeRefused('exists', name);
    if (name === this.unstartable) throw new ChangeRefused('failed', name);
    return owner.add(definition);
  }

  async replaceApplication(vhost: string, app: string, definition: JsonObject): Promise<ApplicationView> {
    validateApplication(definition);
    const owner = this.#vhost(vhost);
    owner.apps.get(app)?.streamMap.clear();
    owner.apps.delete(app);
    return owner.add(definition);
  }

  async deleteApplication(vhost: string, app: string): Promise<void> {
    this.#vhost(vhost).apps.delete(app);
  }

  async deleteStream(vhost: string, app: string, stream: string): Promise<void> {
    this.#vhost(vhost).apps.get(app)?.streamMap.delete(stream);
  }

  async reloadCertificates(vhost = '*'): Promise<void> {
    if (this.failReloads) throw new ChangeRefused('failed', vhost);
    this.reloads.push(vhost);
  }

  #vhost(name: string): FakeVirtualHost {
    const vhost = this.hosts.get(name);
    if (vhost === undefined) throw new ChangeRefused('failed', name);
    return vhost;
  }
}

export class FakeVirtualHost implements VirtualHostView {
  readonly name: string;
  readonly readOnly: boolean;
  readonly definition: JsonObject;
  readonly meter: TrafficFigures = fakeTraffic();
  readonly apps = new Map<string, FakeApplication>();

  constructor(definition: JsonObject, readOnly: boolean) {
    this.name = nameOf(definition);
    this.definition = definition;
    this.readOnly = readOnly;
  }

  get applications(): Iterable<ApplicationView> {
    return this.apps.values();
  }

  findApplication(name: string): FakeApplication | undefined {
    return this.apps.get(name);
  }

  add(definition: JsonObject): FakeApplication {
    const app = new FakeApplication(this.name, definition);
    this.apps.set(app.name, app);
    return app;
  }
}

export class FakeApplication implements ApplicationView {
  readonly name: string;
  readonly internalName: string;
  readonly dynamic = false;
  readonly definition: JsonObject;
  readonly meter: TrafficFigures = fakeTraffic();
  readonly streamMap = new Map<string, StreamView>();

  constructor(vhost: string, definition: JsonObject) {
    this.name = nameOf(definition);
    this.internalName = `#${vhost}#${this.name}`;
    this.definition = withoutNulls(definition);
  }

  get streams(): Iterable<StreamView> {
    return this.streamMap.values();
  }

  findStream(name: string): StreamView | undefined {
    return this.streamMap.get(name);
  }

  /** Lets a stream come in. */
  publish(name: string): StreamView {
    const stream = fakeStream(name);
    this.streamMap.set(name, stream);
    return stream;
  }
}

/** An RTMP stream with video, audio and data, and one output. */
export function fakeStream(name: string): StreamView {
  return {
    name,
    createdAt: Date.UTC(2026, 1, 1, 10, 0, 0, 120),
    sourceType: SourceType.RTMP,
    sourceUrl: 'TCP://198.51.100.7:50412',
    meter: fakeTraffic(),
    tracks: fakeTracks('', ''),
    outputs: [fakeOutput(name)],
    figures: fakeFigures,
  };
}

function fakeOutput(name: string): OutputFigures {
  const rendition = { name: 'default', videoVariantName: 'bypass_video', audioVariantName: 'aac', videoIndexHint: -1, audioIndexHint: -1 };
  const options = { webrtcAutoAbr: false, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true };
  return {
    name,
    tracks: fakeTracks('bypass_video', 'aac'),
    playlists: [
      { name: 'llhls_default', fileName: 'llhls', options, renditions: [rendition] },
      { name: 'abr', fileName: 'abr', options, renditions: [{ ...rendition, audioVariantName: '' }] },
    ],
    figures: fakeFigures,
  };
}

function fakeTracks(video: string, audio: string): Track[] {
  const common = { timebase: { num: 1, den: 1000 }, language: '', characteristics: '', bypass: video !== '', config: null };
  return [
    { ...common, type: 'data', id: 2, publicName: 'Data_2', variantName: '', bitrateConf: 0 },
    {
      ...common,
      type: 'video',
      id: 0,
      publicName: 'Video_0',
      variantName: video,
      bitrateConf: 2_500_000,
      codec: 'H264',
      width: 1280,
      height: 720,
      framerateConf: 0,
      codecString: 'avc1.64001f',
    },
    {
      ...common,
      type: 'audio',
      id: 1,
      publicName: 'Audio_1',
      variantName: audio,
      bitrateConf: 0,
      codec: 'AAC',
      sampleRate: 48_000,
      channels: 2,
      codecString: 'mp4a.40.2',
    },
  ];
}

function fakeFigures() {
  return {
    bitrateAvg: 2_391_000,
    bitrateLatest: 2_410_000,
    framerateAvg: 30,
    framerateLatest: 29.97,
    keyFrameIntervalAvg: 60,
    keyFrameIntervalLatest: 60,
    deltaFramesSinceLastKeyFrame: 12,
    hasBframes: false,
    maxWidth: 1280,
    maxHeight: 720,
  };
}

/** Counters that differ from each other, so that a swapped member shows. */
export function fakeTraffic(): TrafficFigures {
  const at = Date.UTC(2026, 1, 1, 10, 0, 0, 0);
  const bytes = (base: number): ByteFigures => ({ total: base + 1, lastAt: at + base, last: base + 2, avg: base + 3, max: base + 4 });
  return {
    createdAt: at,
    updatedAt: at + 999,
    in: bytes(100),
    out: bytes(200),
    ingests: countsOf(Object.values(ProviderKind)),
    sessions: countsOf(Object.values(PublisherKind)),
    totalSessions: 28,
    maxTotalSessions: 30,
    maxTotalSessionsAt: at + 500,
  };
}

function countsOf<K extends string>(kinds: readonly K[]): Record<K, number> {
  return Object.fromEntries(kinds.map((kind, index) => [kind, index])) as Record<K, number>;
}

function nameOf(definition: JsonObject): string {
  return String(definition['name']);
}

function validateApplication(definition: JsonObject): void {
  requireName(definition, 'application', APP_MEMBERS);
  const type = memberOf(definition, 'type');
  if (type === undefined) throw new ChangeRefused('config', 'application.type is not optional');
  if (type !== 'live' && type !== 'vod') throw new ChangeRefused('config', `Unknown type: ${String(type)}`);
}

function requireName(definition: JsonObject, root: string, members: readonly string[]): string {
  const name = memberOf(definition, 'name');
  if (name === undefined) throw new ChangeRefused('config', `${root}.name is not optional`);
  if (typeof name !== 'string') throw new ChangeRefused('config', `${root}.name must be a string`);
  const unknown = Object.keys(definition).find((key) => !members.includes(key));
  if (unknown !== undefined) throw new ChangeRefused('config', `Unknown item found: ${root}.${unknown}`);
  return name;
}

function withoutNulls(definition: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(definition).filter(([, value]: [string, JsonValue]) => value !== null));
}
