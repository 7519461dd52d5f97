/** The PUSH publisher: keeps push tasks and brings them together with the streams they wait for. */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PushPublisherConfig } from '../../config/index.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, Publisher, PublisherStream } from '../../core/publishing.ts';
import type { QueueRegistry } from '../../core/queue-registry.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { OpenDestination, PushTimeouts } from './destination.ts';
import { openDestination } from './open-destination.ts';
import { type PushInformation, pushInformation } from './push-information.ts';
import { parsePushMap, pushRequestsFor } from './push-map.ts';
import { type PushRequest, storedPushRequest } from './push-request.ts';
import { PushStream } from './push-stream.ts';
import { type PushContext, PushTask, type PushTaskOrigin, type PushTotals } from './push-task.ts';

/** Tasks that one application may have. */
export const MOST_PUSHES = 1000;
const KEY_BYTES = 12;
const CONFIG_ID_BYTES = 3;
const DEFAULT_TIMEOUTS: PushTimeouts = { connection: 5000, send: 2000 };

/** Why a push cannot be started or stopped. */
export class PushRefused extends Error {
  override readonly name = 'PushRefused';
  readonly code: 'duplicate' | 'too-many' | 'not-durable';

  constructor(code: PushRefused['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An application by its names. */
export interface PushOwner {
  readonly vhost: string;
  readonly app: string;
}

export interface PushPublisherOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly stateFolder: string;
  /** Default: real connections. */
  readonly open?: OpenDestination;
}

/** What the state folder holds of a task. */
type StoredTask = Omit<PushTaskOrigin, 'key'>;

export class PushPublisher implements Publisher<PushPublisherConfig> {
  readonly kind = PublisherKind.PUSH;
  readonly #options: PushPublisherOptions;
  readonly #logger: Logger;
  readonly #documents: DocumentFolder;
  readonly #context: PushContext;
  /** By virtual host and application, then by id. */
  readonly #tasks = new Map<string, Map<string, PushTask>>();
  readonly #streams = new Map<string, PushStream>();
  /** Tasks that take leave of their receivers. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: PushPublisherOptions) {
    const { stateFolder, clock, queues } = options;
    const logger = options.logger.child({ publisher: PublisherKind.PUSH });
    this.#options = options;
    this.#logger = logger;
    this.#documents = new DocumentFolder(join(stateFolder, 'pushes'), 'push-task', logger);
    const open = options.open ?? openDestination;
    this.#context = { clock, logger, queues, open, random: Math.random, onConnectionOver: (task) => this.#keepTotals(task) };
  }

  /** Brings back the tasks of the last run. Call before streams come. */
  async start(): Promise<void> {
    for (const { key, value } of await this.#documents.load()) {
      const stored = parseStored(value);
      if (stored === null) await this.#documents.setAside(key, 'it does not describe a push task');
      else this.#add(new PushTask({ key, ...stored }, this.#context));
    }
  }

  /** Pushes have no playlist. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream, settings: PushPublisherConfig): PublisherStream {
    const name = streamKey(stream, stream.name);
    const attached = new PushStream(stream, timeoutsOf(settings), () => {
      if (this.#streams.get(name) === attached) this.#streams.delete(name);
      for (const task of this.#waitingFor(stream)) if (task.request.isConfig) this.#drop(task);
    });
    this.#streams.set(name, attached);
    for (const task of this.#waitingFor(stream)) attached.begin(task);
    const { streamMap } = settings;
    if (streamMap?.enable === true && streamMap.path !== undefined) void this.#applyMap(streamMap.path, attached);
    return attached;
  }

  /** Makes a task that survives a restart, and lets it begin when its stream is there. Tells it as it was before that. Throws `PushRefused`. */
  async startPush(owner: PushOwner, request: PushRequest): Promise<PushInformation> {
    // The check and the registration are one step: the id is taken before anything is awaited.
    const task = this.#register(owner, request);
    const information = pushInformation(task);
    try {
      await this.#durably(this.#documents.save(task.key, storedOf(task)));
    } catch (error) {
      this.#drop(task);
      throw error;
    }
    // It may have been stopped meanwhile.
    if (this.#find(owner, request.id) === task) this.#streams.get(streamKey(owner, request.streamName))?.begin(task);
    return information;
  }

  /** Ends a task; it takes leave of its receiver behind the scenes. False when there is none of this id. Throws `PushRefused`. */
  async stopPush(owner: PushOwner, id: string): Promise<boolean> {
    const task = this.#find(owner, id);
    if (task === null) return false;
    // Out of the list first: a connection that ends meanwhile must not save the task again.
    this.#forgetTask(task);
    try {
      if (!task.request.isConfig) await this.#durably(this.#documents.remove(task.key));
    } catch (error) {
      this.#add(task);
      throw error;
    }
    this.#drop(task);
    return true;
  }

  /** Tasks of an application by the byte order of their ids; with `id`, that one or none. */
  pushes(owner: PushOwner, id: string | null = null): PushInformation[] {
    return this.#tasksOf(owner)
      .filter(({ request }) => id === null || request.id === id)
      .sort((a, b) => Buffer.compare(Buffer.from(a.request.id), Buffer.from(b.request.id)))
      .map(pushInformation);
  }

  /** The application is gone for good, and its tasks with it. */
  forgetApplication(vhost: string, app: string): void {
    for (const task of this.#tasksOf({ vhost, app })) {
      this.#drop(task);
      this.#documents.remove(task.key).catch((error: unknown) => {
        this.#logger.error({ err: error, push: task.request.id }, 'push task of a deleted application stays in the state folder');
      });
    }
  }

  /** Resolves when every connection has ended and every total is saved. Call after the streams are closed. */
  async stop(): Promise<void> {
    await Promise.all(this.#ending);
    for (const tasks of this.#tasks.values()) for (const task of tasks.values()) await task.settled();
    await this.#documents.settle();
  }

  #tasksOf(owner: PushOwner): PushTask[] {
    return [...(this.#tasks.get(appKey(owner))?.values() ?? [])];
  }

  #waitingFor(stream: PublishableStream): PushTask[] {
    return this.#tasksOf(stream).filter(({ request }) => request.streamName === stream.name);
  }

  #find(owner: PushOwner, id: string): PushTask | null {
    return this.#tasks.get(appKey(owner))?.get(id) ?? null;
  }

  #register(owner: PushOwner, request: PushRequest): PushTask {
    if (this.#find(owner, request.id) !== null) throw new PushRefused('duplicate', `the application has a push '${request.id}'`);
    if (this.#tasksOf(owner).length >= MOST_PUSHES) throw new PushRefused('too-many', `the application has ${MOST_PUSHES} pushes`);
    const { vhost, app } = owner;
    const key = randomBytes(KEY_BYTES).toString('hex');
    const task = new PushTask({ key, vhost, app, request, createdAt: this.#options.clock.now() }, this.#context);
    this.#add(task);
    return task;
  }

  #add(task: PushTask): void {
    const key = appKey(task);
    const tasks = this.#tasks.get(key) ?? new Map<string, PushTask>();
    tasks.set(task.request.id, task);
    this.#tasks.set(key, tasks);
  }

  #forgetTask(task: PushTask): void {
    const key = appKey(task);
    const tasks = this.#tasks.get(key);
    if (tasks?.get(task.request.id) !== task) return;
    tasks.delete(task.request.id);
    if (tasks.size === 0) this.#tasks.delete(key);
  }

  /** Takes the task out of the lists and lets it take leave. */
  #drop(task: PushTask): void {
    this.#forgetTask(task);
    this.#streams.get(streamKey(task, task.request.streamName))?.leave(task);
    const ending = task.stop();
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }

  async #applyMap(path: string, stream: PushStream): Promise<void> {
    try {
      const entries = parsePushMap(await readFile(path, 'utf8'), path);
      const nextId = (): string => randomBytes(CONFIG_ID_BYTES).toString('hex');
      for (const request of pushRequestsFor(entries, stream.source, nextId)) {
        if (!stream.closed) stream.begin(this.#register(stream.source, request));
      }
    } catch (error) {
      this.#logger.error({ err: error, map: path }, `push map cannot be used: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Sequence numbers and totals go on after a restart. */
  #keepTotals(task: PushTask): void {
    if (task.request.isConfig || this.#find(task, task.request.id) !== task) return;
    this.#documents.save(task.key, storedOf(task)).catch((error: unknown) => {
      this.#logger.warn({ err: error, push: task.request.id }, 'totals of the push could not be saved');
    });
  }

  async #durably(write: Promise<void>): Promise<void> {
    try {
      await write;
    } catch (error) {
      throw new PushRefused('not-durable', 'the push task could not be saved', { cause: error });
    }
  }
}

function storedOf({ vhost, app, request, createdAt, totals }: PushTask): StoredTask {
  return { vhost, app, request, createdAt, totals };
}

function parseStored(value: unknown): StoredTask | null {
  if (typeof value !== 'object' || value === null) return null;
  const { vhost, app, request, createdAt, totals } = value as Record<string, unknown>;
  const stored = storedPushRequest(request);
  if (typeof vhost !== 'string' || typeof app !== 'string' || stored === null || typeof createdAt !== 'number') return null;
  return { vhost, app, request: stored, createdAt, ...(isTotals(totals) && { totals }) };
}

function isTotals(value: unknown): value is PushTotals {
  if (typeof value !== 'object' || value === null) return false;
  const { sequence, bytes, time } = value as Record<string, unknown>;
  return [sequence, bytes, time].every((figure) => typeof figure === 'number' && Number.isFinite(figure) && figure >= 0);
}

/** -1 stands for the default; 0 would never let anything happen. */
function timeoutsOf({ connectionTimeout, sendTimeout }: PushPublisherConfig): PushTimeouts {
  return {
    connection: connectionTimeout > 0 ? connectionTimeout : DEFAULT_TIMEOUTS.connection,
    send: sendTimeout > 0 ? sendTimeout : DEFAULT_TIMEOUTS.send,
  };
}

function appKey({ vhost, app }: PushOwner): string {
  return JSON.stringify([vhost, app]);
}

function streamKey({ vhost, app }: PushOwner, stream: string): string {
  return JSON.stringify([vhost, app, stream]);
}
