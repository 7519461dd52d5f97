/**
 * Multiplex channels as a service: streams made of tracks of other output streams of this server, defined by `.mux` files, which the API
 * writes as well.
 *
 * `ApplicationChannels` follows the folder of an application; a `MultiplexChannel` has a `SourceTap` on each of its sources and one inbound
 * stream, and `ChannelTime` brings the timelines of the sources together by the wall clock.
 *
 * Threads: the main one; packets cross by calls. A timer looks for missing sources twice a second.
 * Limits: 100 sources, 100 tracks of each, 100 playlists, 100 renditions of each, 1000 tracks and 1000 renditions in all; 1000 files of 2
 * MiB in a folder (`DefinitionFolder`).
 * Specifications: none; `docs/guide/channels.md`, *Multiplex channels*, documents files and requests.
 */
import { resolve } from 'node:path';
import type { Application } from '../../core/application.ts';
import type { OutboundStream } from '../../core/outbound-stream.ts';
import { type ChannelApplications, channelKeeper } from '../../core/shared-channels.ts';
import { OWN_WORK, type SharedWork, type WorkSharing } from '../../core/shared-work.ts';
import { type StreamAddress, streamKey } from '../../core/stream-address.ts';
import type { StreamLineage } from '../../core/stream-lineage.ts';
import { FileMarks } from '../../state/file-marks.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import type { Service, ServiceContext } from '../service.ts';
import { ApplicationChannels } from './application-channels.ts';
import type { ChannelDefinition } from './channel-definition.ts';
import { loopOf, type NamedChannel } from './channel-loops.ts';
import type { MultiplexChannel } from './multiplex-channel.ts';
import { multiplexMetrics } from './multiplex-metrics.ts';

const LOOK_MS = 500;

/** How applications and their streams are found. */
interface Applications {
  application(vhost: string, app: string): Application | undefined;
}

/** With the channels, which the API controls. */
export function startMultiplex({
  orchestrator,
  definitions,
  lineage,
  originMaps,
  fileMarks,
  logger,
}: ServiceContext): Service & { readonly multiplex: MultiplexChannels } {
  const multiplex = new MultiplexChannels({
    applications: orchestrator,
    allowed: definitions,
    lineage,
    work: originMaps,
    marks: fileMarks,
    logger: logger.child({ part: 'multiplex' }),
  });
  originMaps.addKeeper(channelKeeper('multiplex', 'Multiplex', multiplex));
  multiplex.start();
  return {
    multiplex,
    metrics: [multiplexMetrics(() => multiplex.channels)],
    applicationStarted: (application) => multiplex.follow(application),
    close: () => multiplex.close(),
  };
}

/** The channels of all applications. Its maker calls `start`, `follow` for each application, and `close`. */
export class MultiplexChannels implements ChannelApplications {
  readonly #applications: Applications;
  readonly #allowed: AllowedFolders;
  readonly #lineage: StreamLineage;
  readonly #work: SharedWork & WorkSharing;
  readonly #marks: FileMarks;
  readonly #logger: Logger;
  readonly #followed = new Map<Application, ApplicationChannels>();
  /** Counts changes of definitions, by which loops come and go. */
  #version = 0;
  /** Makers of output streams, by `streamKey`, as of a version: every waiting channel asks for all of its sources. */
  #producers: { readonly version: number; readonly byOutput: ReadonlyMap<string, NamedChannel> } | null = null;
  #isStarted = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: {
    readonly applications: Applications;
    readonly allowed: AllowedFolders;
    readonly lineage: StreamLineage;
    /** Which node's channels are played; default: all are ours. */
    readonly work?: SharedWork & WorkSharing;
    /** Which files the API wrote; default: those of this object. */
    readonly marks?: FileMarks;
    readonly logger: Logger;
  }) {
    this.#work = options.work ?? OWN_WORK;
    this.#marks = options.marks ?? new FileMarks(null, options.logger);
    this.#applications = options.applications;
    this.#allowed = options.allowed;
    this.#lineage = options.lineage;
    this.#logger = options.logger;
  }

  /** Looks for sources twice a second from now on, while an application has channels. */
  start(): void {
    this.#isStarted = true;
    this.#keepLooking();
  }

  /** Looks for sources, and leaves applications that have ended. */
  look(): void {
    for (const [application, channels] of this.#followed) {
      const { vhost, name } = application;
      if (this.#applications.application(vhost, name) === application) channels.look();
      else this.#leave(application, channels);
    }
  }

  /** Channels of all applications. */
  get channels(): MultiplexChannel[] {
    return [...this.#followed.values()].flatMap(({ channels }) => channels);
  }

  /** The channels of an application; null where it has no multiplex provider. */
  of(application: Application): ApplicationChannels | null {
    return this.#followed.get(application) ?? null;
  }

  /** Channels as other nodes know them. */
  sharedIn(vhost: string): ApplicationChannels['shared'][] {
    return [...this.#followed].flatMap(([application, { shared }]) => (application.vhost === vhost ? [shared] : []));
  }

  /** Those of an application; null where it is not there or does not have the provider. */
  sharedOf(vhost: string, app: string): ApplicationChannels['shared'] | null {
    const application = this.#applications.application(vhost, app);
    return (application === undefined ? null : this.of(application))?.shared ?? null;
  }

  /** Plays the channels of an application while it runs. Resolves when its folder has been read; never rejects. */
  follow(application: Application): Promise<void> | undefined {
    const folder = application.definition.config.providers?.multiplex?.muxFilesDir;
    if (folder === undefined || this.#followed.has(application)) return undefined;
    const channels = new ApplicationChannels({
      application,
      folder: resolve(folder),
      allowed: this.#allowed,
      find: (address) => this.#find(address),
      loopFinder: (definition) => this.#loopFinder(application, definition),
      lineage: this.#lineage,
      work: this.#work,
      marks: this.#marks,
      onChanged: () => {
        this.#version += 1;
      },
      logger: this.#logger.child({ vhost: application.vhost, app: application.name }),
    });
    this.#followed.set(application, channels);
    this.#keepLooking();
    this.#version += 1;
    return channels.start();
  }

  /** In words, how a channel of `application` would be made of itself; null: it is not. */
  loopOf(application: Application, definition: ChannelDefinition): string | null {
    const start = namedChannel(application, definition);
    return loopOf(start, (output) => {
      if (outputsOf(application, definition).some((name) => isOutput(application, name, output))) return start;
      return this.#producerOf(output);
    });
  }

  /** Ends all channels. Idempotent. */
  async close(): Promise<void> {
    const all = [...this.#followed.values()];
    this.#followed.clear();
    this.#keepLooking();
    this.#producers = null;
    await Promise.all(all.map((channels) => channels.close({ code: 'shutdown', detail: 'the server stops' })));
  }

  /** `loopOf` for a channel that asks again and again. */
  #loopFinder(application: Application, definition: ChannelDefinition): () => string | null {
    let version = -1;
    let loop: string | null = null;
    return () => {
      if (version !== this.#version) loop = this.loopOf(application, definition);
      version = this.#version;
      return loop;
    };
  }

  /** Only while there is something to look at: a timer wakes an idle server. */
  #keepLooking(): void {
    if (this.#isStarted && this.#followed.size > 0) {
      const look = guarded(this.#logger, 'the watch over multiplex channels', () => this.look());
      this.#timer ??= setInterval(look, LOOK_MS).unref();
    } else if (this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }

  #leave(application: Application, channels: ApplicationChannels): void {
    this.#followed.delete(application);
    this.#keepLooking();
    this.#version += 1;
    channels.close({ code: 'deleted', detail: 'the application has ended' }).catch((error: unknown) => {
      this.#logger.error({ err: error }, 'the channels of an application that ended could not be closed');
    });
  }

  #find({ vhost, app, stream }: StreamAddress): OutboundStream | undefined {
    const outbound = this.#applications.application(vhost, app)?.outbound(stream);
    return outbound !== undefined && outbound.tracks.length > 0 ? outbound : undefined;
  }

  #producerOf(output: StreamAddress): NamedChannel | null {
    if (this.#producers?.version !== this.#version) this.#producers = { version: this.#version, byOutput: this.#mapProducers() };
    return this.#producers.byOutput.get(streamKey(output)) ?? null;
  }

  #mapProducers(): Map<string, NamedChannel> {
    const producers = new Map<string, NamedChannel>();
    for (const [application, channels] of this.#followed) {
      if (application.closed) continue;
      const { vhost, name: app } = application;
      for (const { definition } of channels.channels) {
        const channel = namedChannel(application, definition);
        for (const stream of outputsOf(application, definition)) {
          const key = streamKey({ vhost, app, stream });
          if (!producers.has(key)) producers.set(key, channel);
        }
      }
    }
    return producers;
  }
}

function namedChannel({ vhost, name: app }: Application, definition: ChannelDefinition): NamedChannel {
  return { address: { vhost, app, stream: definition.outputStream.name }, definition };
}

/** Names of the output streams of a channel. */
function outputsOf(application: Application, { outputStream: { name, bypassTranscoder } }: ChannelDefinition): string[] {
  if (bypassTranscoder) return [name];
  const profiles = application.definition.config.outputProfiles?.outputProfile ?? [];
  return profiles.map(({ outputStreamName }) => outputStreamName.replaceAll('${OriginStreamName}', name));
}

function isOutput({ vhost, name }: Application, output: string, address: StreamAddress): boolean {
  return address.vhost === vhost && address.app === name && address.stream === output;
}
