/** A core with two applications that have multiplex channels, and encoders that publish to it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readApplication } from '../../src/config/index.ts';
import type { Application } from '../../src/core/application.ts';
import type { IngestStream, SourceTrack } from '../../src/core/ingest.ts';
import { ProviderKind, PublisherKind, SourceType } from '../../src/core/kinds.ts';
import { Orchestrator } from '../../src/core/orchestrator.ts';
import type { Publisher } from '../../src/core/publishing.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import type { SharedWork, WorkSharing } from '../../src/core/shared-work.ts';
import { StreamLineage } from '../../src/core/stream-lineage.ts';
import { Urgency } from '../../src/core/urgency.ts';
import type { Packet } from '../../src/media/packet.ts';
import { toMilliseconds } from '../../src/media/timebase.ts';
import type { Track } from '../../src/media/track.ts';
import { readDefinition } from '../../src/services/multiplex/channel-definition.ts';
import { MultiplexChannels } from '../../src/services/multiplex/multiplex-service.ts';
import type { FileMarks } from '../../src/state/file-marks.ts';
import { AllowedFolders } from '../../src/util/allowed-folders.ts';
import { ManualClock } from './manual-clock.ts';
import { RecordingLogger } from './recording-logger.ts';
import { accessUnit, audioPacket, audioTrack, videoTrack } from './source.ts';

export const LEFT = { code: 'peer-left', detail: 'the test unplugged it' } as const;
const PROFILE = {
  name: 'p',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] },
};

/** Everything that publishers received of one output stream. */
export interface Served {
  tracks: readonly Track[];
  playlists: readonly string[];
  readonly packets: Packet[];
  closed: boolean;
  urgency: Urgency;
}

const ends: (() => Promise<void> | void)[] = [];

/** Closes everything that `setUp` made; for `afterEach`. */
export async function tearDown(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** All messages of the log, as one text. */
export function told(logger: RecordingLogger): string {
  return logger.lines.map(({ message }) => message).join('\n');
}

/** Two virtual hosts with an application each; `providers` are further members of the multiplex provider. */
export async function setUp(
  options: {
    readonly providers?: object;
    readonly more?: object;
    readonly allowed?: AllowedFolders;
    readonly work?: SharedWork & WorkSharing;
    readonly marks?: FileMarks;
  } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-mux-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const served = new Map<string, Served>();
  const publisher: Publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: (stream) => {
      const one: Served = { tracks: [], playlists: [], packets: [], closed: false, urgency: Urgency.NONE };
      served.set(`${stream.app}/${stream.name}`, one);
      return {
        get urgency() {
          return one.urgency;
        },
        onTracks: (tracks) => {
          one.tracks = tracks;
          one.playlists = stream.playlists.map(({ fileName, renditions }) => `${fileName}: ${renditions.map(({ name }) => name).join()}`);
        },
        onPacket: (packet) => one.packets.push(packet),
        close: () => {
          one.closed = true;
        },
      };
    },
  };
  const orchestrator = new Orchestrator({
    ...{ clock, logger, queues: new QueueRegistry(clock), publishers: new Map([[publisher.kind, publisher]]) },
    store: { save: async () => undefined, remove: async () => undefined },
    onHostsChanged: () => undefined,
  });
  const definition = (name: string) => {
    const { typed, echo } = readApplication({
      ...{ name, type: 'live', publishers: { llhls: {} }, outputProfiles: { outputProfile: [PROFILE] } },
      providers: { rtmp: {}, multiplex: { muxFilesDir: join(folder, name), ...options.providers } },
      ...options.more,
    });
    return { name, config: typed, echo };
  };
  for (const [vhost, app] of [
    ['default', 'app'],
    ['other', 'second'],
  ] as const) {
    const config = { name: vhost, distribution: '', host: { names: [vhost] } };
    orchestrator.restore({ name: vhost, config: config as never, echo: config }, [definition(app)], { readOnly: false, order: 1 });
  }
  const allowed = options.allowed ?? new AllowedFolders([folder], 'the test');
  const lineage = new StreamLineage();
  const channels = new MultiplexChannels({
    applications: orchestrator,
    allowed,
    lineage,
    logger,
    ...(options.work !== undefined && { work: options.work }),
    ...(options.marks !== undefined && { marks: options.marks }),
  });
  ends.push(() => channels.close());
  const app = orchestrator.application('default', 'app') as Application;
  const second = orchestrator.application('other', 'second') as Application;
  await channels.follow(app);
  await channels.follow(second);
  const of = (application: Application) => {
    const found = channels.of(application);
    if (found === null) throw new Error('the application has no channels');
    return found;
  };
  const stream = (name: string): Served => {
    const found = served.get(name);
    if (found === undefined) throw new Error(`there is no output stream ${name}`);
    return found;
  };
  const channel = (name: string) => {
    const found = of(app).get(name);
    if (found === undefined) throw new Error(`there is no channel ${name}`);
    return found;
  };
  return {
    folder,
    clock,
    logger,
    lineage,
    channels,
    orchestrator,
    app,
    second,
    of,
    stream,
    served,
    channel,
    encoder: (name: string, tracks?: SourceTrack[]) => new Encoder(app, clock, name, tracks),
  };
}

/** Publishes a stream of 10 frames a second. */
export class Encoder {
  /** Tracks of requested keyframes. */
  readonly wanted: number[] = [];
  /** Number of `onWatched` calls. */
  watched = 0;
  readonly ingest: IngestStream;
  readonly #clock: ManualClock;
  #frames = 0;

  constructor(app: Application, clock: ManualClock, name: string, tracks: SourceTrack[] = [videoTrack(), audioTrack()]) {
    this.#clock = clock;
    this.ingest = app.openIngest({
      ...{ streamName: name, provider: ProviderKind.RTMP, sourceType: SourceType.RTMP, sourceUrl: 'TCP://encoder' },
      onClose: () => undefined,
      onKeyframeWanted: (id) => this.wanted.push(id),
      onWatched: () => {
        this.watched += 1;
      },
    });
    this.ingest.setTracks(tracks);
  }

  /** Sends a frame, with audio on request; resolves when everything has passed the server. */
  async frame(options: { readonly keyframe?: boolean; readonly audio?: boolean; readonly skipMs?: number } = {}): Promise<void> {
    const { keyframe = true, audio = false, skipMs = 0 } = options;
    this.#frames += skipMs / 100;
    const at = this.#frames * 100;
    this.ingest.push({ trackId: 0, pts: at, dts: at, keyframe, data: accessUnit(keyframe) });
    if (audio) this.ingest.push({ ...audioPacket(0), pts: at, dts: at });
    this.#frames += 1;
    await settled();
  }

  /** Frames in real time for `count` tenths of a second. */
  async run(count: number, others: readonly Encoder[] = []): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      for (const encoder of [this, ...others]) await encoder.frame();
      this.#clock.advance(100);
    }
  }
}

/** Resolves when everything handed over has passed the server. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export function source(stream: string, video = `${stream}_video`, more: readonly object[] = []): object {
  return { name: stream, url: `stream://default/app/${stream}`, trackMap: [{ sourceTrackName: 'video', newTrackName: video }, ...more] };
}

export function ladder(name: string, ...streams: readonly string[]) {
  const renditions = streams.map((stream) => ({ name: stream, video: `${stream}_video` }));
  return readDefinition({
    outputStream: { name },
    sourceStreams: streams.map((stream) => source(stream)),
    playlists: [{ name: 'abr', fileName: 'abr', renditions }],
  });
}

export const seconds = ({ pts, track }: Packet): number => toMilliseconds(pts, track.timebase) / 1000;
export const named = ({ tracks }: Served): string[] =>
  tracks.filter(({ type }) => type !== 'data').map(({ id, variantName }) => `${id} ${variantName}`);
