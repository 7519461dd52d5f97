/** The PUSH publisher: keeps push tasks and brings them together with the streams they wait for. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { PushPublisherConfig } from '../../config/index.ts';
import { PublisherKind } from '../../core/kinds.ts';
import { NO_NOTICES, type Notices } from '../../core/notices/notice.ts';
import { postTask } from '../../core/notices/task-notices.ts';
import type { PublishableStream, Publisher, PublisherStream } from '../../core/publishing.ts';
import type { QueueRegistry } from '../../core/queue-registry.ts';
import { OWN_WORK, type SharedWork, type Work, type WorkSharing } from '../../core/shared-work.ts';
import { type ApplicationAddress, addressOf, streamKey } from '../../core/stream-address.ts';
import { MapFiles } from '../../core/tasks/map-files.ts';
import { TaskRefused, TaskRegistry } from '../../core/tasks/task-registry.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import { KEYED } from '../../state/document-layout.ts';
import { LinkReporter, type LinkStatistics } from '../../transport/srt/link-reporter.ts';
import type { Clock } from '../../util/clock.ts';
import { guarded } from '../../util/guarded.ts';
import { KnownSecrets } from '../../util/known-secrets.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { MetricSource } from '../../util/metrics.ts';
import type { DestinationOptions, OpenDestination, PushTimeouts } from './destination.ts';
import { openDestination } from './open-destination.ts';
import { type PushInformation, pushInformation } from './push-information.ts';
import { type PushMapEntry, parsePushMap, pushRequestsFor } from './push-map.ts';
import { PushCounts, pushMetrics } from './push-metrics.ts';
import { type PushRequest, secretsOfPush, storedPushRequest } from './push-request.ts';
import { PushStream } from './push-stream.ts';
import { type PushContext, PushTask } from './push-task.ts';

/** Interval of the check which tasks are this node's, ms. */
const LOOK_MS = 500;
const CONFIG_ID_BYTES = 3;
const DEFAULT_TIMEOUTS: PushTimeouts = { connection: 5000, send: 2000 };

/** Tasks are kept below `stateFolder`. `open` is for tests. */
export interface PushPublisherOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly stateFolder: string;
  /** Receives notices of tasks. Default: none. */
  readonly notices?: Notices;
  /** Learns the credentials for the receivers, to hide them. Default: they are not registered. */
  readonly secrets?: KnownSecrets;
  /** Assigns tasks to nodes, and tells other nodes of them; default: all are this node's alone. */
  readonly work?: SharedWork & WorkSharing;
  /** Default: real connections. */
  readonly open?: OpenDestination;
}

/**
 * Registered in the core, which attaches streams and closes them. The server calls `start` before streams come and `stop` after they are
 * gone.
 */
export class PushPublisher implements Publisher<PushPublisherConfig> {
  readonly kind = PublisherKind.PUSH;
  readonly #options: PushPublisherOptions;
  readonly #logger: Logger;
  readonly #tasks: TaskRegistry<PushRequest, PushTask>;
  readonly #maps: MapFiles<PushMapEntry>;
  readonly #streams = new Map<string, PushStream>();
  readonly #reporter: LinkReporter;
  readonly #counts = new PushCounts();
  /** While there are tasks and work is shared: a timer wakes an idle server. */
  #looking: NodeJS.Timeout | null = null;
  #isRunning = false;

  constructor(options: PushPublisherOptions) {
    const { stateFolder, clock, queues, secrets = new KnownSecrets(), notices = NO_NOTICES } = options;
    const logger = options.logger.child({ publisher: PublisherKind.PUSH });
    this.#options = options;
    this.#logger = logger;
    this.#maps = new MapFiles(parsePushMap, logger);
    this.#reporter = new LinkReporter({ clock, logger });
    const open = options.open ?? ((wanted: DestinationOptions) => openDestination(wanted, this.#reporter));
    const context: PushContext = {
      ...{ clock, logger, queues, notices, secrets, open, random: Math.random, counts: this.#counts },
      onConnectionOver: (task) => void this.#tasks.keepTotals(task),
    };
    this.#tasks = new TaskRegistry({
      noun: 'push',
      documents: new DocumentFolder({ folder: join(stateFolder, 'pushes'), kind: 'push-task', layout: KEYED, logger }),
      logger,
      parse: storedPushRequest,
      make: (origin) => {
        secrets.learn(secretsOfPush(origin.request));
        return new PushTask(origin, context);
      },
      onRegistered: (task) => {
        postTask(notices, 'push', task);
        this.#keepLooking();
      },
      onDropped: (task) => {
        this.#keepLooking();
        this.#streams.get(streamKey({ vhost: task.vhost, app: task.app, stream: task.request.streamName }))?.leave(task);
      },
    });
  }

  /** Begins tasks assigned to this node, and ends those of other nodes; call it at least once a second where work is shared. */
  look(): void {
    for (const stream of this.#streams.values()) {
      for (const task of this.#tasks.following(stream.source)) {
        if (task.request.isConfig) continue;
        if (this.#isOurs(task)) stream.begin(task);
        else stream.rest(task);
      }
    }
  }

  /** Brings back the tasks of the last run. Call before streams come. */
  start(): Promise<void> {
    this.#isRunning = true;
    this.#reporter.start();
    return this.#tasks.load().finally(() => this.#keepLooking());
  }

  /** For `/metrics`. */
  get metrics(): readonly MetricSource[] {
    return pushMetrics(this.#counts, () => this.#tasks.all());
  }

  /** Present figures of every SRT connection, for the metrics. */
  statistics(): LinkStatistics[] {
    return this.#reporter.statistics();
  }

  /** Pushes have no playlist. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream, settings: PushPublisherConfig): PublisherStream {
    const name = streamKey(addressOf(stream));
    const attached = new PushStream(stream, timeoutsOf(settings), () => {
      if (this.#streams.get(name) === attached) this.#streams.delete(name);
      for (const task of this.#tasks.following(stream)) if (task.request.isConfig) this.#tasks.drop(task);
    });
    this.#streams.set(name, attached);
    for (const task of this.#tasks.following(stream)) if (this.#isOurs(task)) attached.begin(task);
    const { streamMap } = settings;
    if (streamMap?.enable === true && streamMap.path !== undefined) void this.#applyMap(streamMap.path, attached);
    return attached;
  }

  /**
   * Makes a task that survives a restart, and begins it when its stream is present. Returns its information from before the begin. Throws
   * `TaskRefused`.
   */
  startPush(owner: ApplicationAddress, request: PushRequest): Promise<PushInformation> {
    return this.#work.change(workOf(owner, request.id), async (tell) => {
      // The check and the registration are one step: the id is taken before anything is awaited.
      const task = this.#tasks.register(owner, request, this.#options.clock.now());
      const information = pushInformation(task);
      await this.#keep(task);
      if (this.#tasks.has(task)) tell(sharedTask(task));
      return information;
    });
  }

  /** Ends a task; it takes leave of its receiver behind the scenes. False when there is none of this id. Throws `TaskRefused`. */
  stopPush(owner: ApplicationAddress, id: string): Promise<boolean> {
    return this.#work.change(workOf(owner, id), async (tell) => {
      const task = await this.#stop(owner, id);
      if (task?.request.isConfig === false) tell(null);
      return task !== null;
    });
  }

  /** Tasks of a virtual host that the API made, with what other nodes need to do them. */
  *kept(vhost: string): Generator<{ readonly task: PushTask; readonly shared: object }, void> {
    for (const task of this.#tasks.all()) if (task.vhost === vhost && !task.request.isConfig) yield { task, shared: sharedTask(task) };
  }

  /** Whether the API made such a task. */
  keeps(owner: ApplicationAddress, id: string): boolean {
    return this.#tasks.find(owner, id)?.request.isConfig === false;
  }

  /** Makes the task of another node here as well, in place of one of its id. Rejects with `TaskRefused`. */
  async adopt(owner: ApplicationAddress, request: PushRequest, createdAt: number): Promise<void> {
    const present = this.#tasks.find(owner, request.id);
    if (isDeepStrictEqual(present?.request, request)) return;
    if (present?.request.isConfig === true) throw new TaskRefused('duplicate', `a map file has a push '${request.id}'`);
    await this.#stop(owner, request.id);
    await this.#keep(this.#tasks.register(owner, request, createdAt));
  }

  /** Ends a task that was stopped at another node. Rejects with `TaskRefused`. */
  async drop(owner: ApplicationAddress, id: string): Promise<void> {
    await this.#stop(owner, id);
  }

  /** Tasks of an application by the byte order of their ids; with `id`, that task or none. */
  pushes(owner: ApplicationAddress, id: string | null = null): PushInformation[] {
    return this.#tasks.list(owner, id).map(pushInformation);
  }

  /** The application is gone for good, and its tasks with it. */
  forgetApplication(vhost: string, app: string): void {
    this.#tasks.forgetApplication({ vhost, app });
  }

  /** Resolves when every connection has ended and every total is saved. Call after the streams are closed. */
  stop(): Promise<void> {
    this.#isRunning = false;
    this.#keepLooking();
    this.#reporter.stop();
    return this.#tasks.settle();
  }

  #keepLooking(): void {
    const isWanted = this.#isRunning && this.#options.work !== undefined && !this.#tasks.isEmpty;
    if (isWanted) {
      const look = guarded(this.#logger, 'the watch over shared pushes', () => this.look());
      this.#looking ??= setInterval(look, LOOK_MS).unref();
    } else if (this.#looking !== null) {
      clearInterval(this.#looking);
      this.#looking = null;
    }
  }

  /** Tasks of a map file follow their stream wherever it is. */
  #isOurs(task: PushTask): boolean {
    return task.request.isConfig || this.#work.stateOf(workOf(task, task.request.id)) === 'ours';
  }

  get #work(): SharedWork & WorkSharing {
    return this.#options.work ?? OWN_WORK;
  }

  /** Makes a registered task survive a restart, and begins it. */
  async #keep(task: PushTask): Promise<void> {
    try {
      await this.#tasks.persist(task);
    } catch (error) {
      this.#tasks.drop(task);
      throw error;
    }
    const { vhost, app, request } = task;
    // It may have been stopped meanwhile.
    if (this.#tasks.has(task) && this.#isOurs(task)) this.#streams.get(streamKey({ vhost, app, stream: request.streamName }))?.begin(task);
  }

  async #stop(owner: ApplicationAddress, id: string): Promise<PushTask | null> {
    const task = await this.#tasks.release(owner, id);
    if (task !== null) this.#tasks.drop(task);
    return task;
  }

  async #applyMap(path: string, stream: PushStream): Promise<void> {
    stream.hold();
    try {
      const entries = await this.#maps.entries(path);
      const nextId = (): string => randomBytes(CONFIG_ID_BYTES).toString('hex');
      for (const request of pushRequestsFor(entries, stream.source, nextId)) {
        if (!stream.closed) stream.begin(this.#tasks.register(stream.source, request, this.#options.clock.now()));
      }
    } catch (error) {
      this.#logger.error({ err: error, map: path }, `push map cannot be used: ${messageOf(error)}`);
    } finally {
      const missed = stream.release();
      if (missed > 0)
        this.#logger.warn({ map: path, packets: missed }, `push map was read late: its tasks begin without ${missed} packets`);
    }
  }
}

function workOf({ vhost, app }: ApplicationAddress, id: string): Work {
  return { kind: 'push', vhost, app, name: id };
}

function sharedTask({ request, createdAt }: PushTask): object {
  return { request, createdAt };
}

/** -1 means the default; 0 would expire at once. */
function timeoutsOf({ connectionTimeout, sendTimeout }: PushPublisherConfig): PushTimeouts {
  return {
    connection: connectionTimeout > 0 ? connectionTimeout : DEFAULT_TIMEOUTS.connection,
    send: sendTimeout > 0 ? sendTimeout : DEFAULT_TIMEOUTS.send,
  };
}
