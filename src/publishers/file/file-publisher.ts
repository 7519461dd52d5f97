/** The FILE publisher: keeps recording tasks and brings them together with the streams they wait for. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloseReason } from '../../core/ingest.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { PublishableStream, Publisher, PublisherStream } from '../../core/publishing.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { RecordInfoFiles } from './record-info-file.ts';
import { type RecordInformation, recordInformation } from './record-information.ts';
import { RecordJournal } from './record-journal.ts';
import { parseRecordMap, requestsFor } from './record-map.ts';
import { randomName } from './record-path.ts';
import { type FileSettings, RecordPlace } from './record-place.ts';
import { type RecordRequest, storedRequest } from './record-request.ts';
import { type RecordContext, RecordTask } from './record-task.ts';

/** Tasks that one application may have. */
export const MOST_TASKS = 1000;
const KEY_LENGTH = 24;
/** How long a stop may take, ms; the server allows five seconds for everything. */
const STOP_DEADLINE_MS = 3500;

/** Why a recording cannot be started. */
export class RecordRefused extends Error {
  override readonly name = 'RecordRefused';
  readonly code: 'duplicate' | 'too-many' | 'not-durable';

  constructor(code: RecordRefused['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An application, and its part of the configuration that is about recordings. */
export interface RecordOwner {
  readonly vhost: string;
  readonly app: string;
  readonly settings: FileSettings;
}

export interface FilePublisherOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly stateFolder: string;
  /** Where recordings may be written. */
  readonly allowed: AllowedFolders;
}

/** What the state folder holds of a task. */
interface StoredTask {
  readonly vhost: string;
  readonly app: string;
  readonly request: RecordRequest;
  readonly createdAt: number;
  readonly totals: { readonly sequence: number; readonly bytes: number; readonly time: number };
}

export class FilePublisher implements Publisher<FileSettings> {
  readonly kind = PublisherKind.FILE;
  readonly #options: FilePublisherOptions;
  readonly #logger: Logger;
  readonly #documents: DocumentFolder;
  readonly #journal: RecordJournal;
  readonly #context: RecordContext;
  /** By virtual host and application, then by id. */
  readonly #tasks = new Map<string, Map<string, RecordTask>>();
  readonly #streams = new Map<string, FileStream>();
  /** Tasks that were stopped and whose files are not finished yet. */
  readonly #ending = new Set<Promise<void>>();
  #recovering: Promise<void> = Promise.resolve();

  constructor(options: FilePublisherOptions) {
    const { stateFolder, clock } = options;
    const logger = options.logger.child({ publisher: PublisherKind.FILE });
    this.#options = options;
    this.#logger = logger;
    this.#documents = new DocumentFolder(join(stateFolder, 'records/tasks'), 'recording-task', logger);
    const notes = new DocumentFolder(join(stateFolder, 'records/open'), 'open-recording', logger);
    this.#journal = new RecordJournal(notes, new RecordInfoFiles(), logger);
    this.#context = { clock, logger, journal: this.#journal, onFileFinished: (task) => this.#keepTotals(task) };
  }

  /** Settles when the files of the last run are finished. */
  get recovered(): Promise<void> {
    return this.#recovering;
  }

  /** Brings back the tasks and begins to finish the files of the last run, behind the scenes. Call before streams come. */
  async start(): Promise<void> {
    this.#recovering = this.#journal.recover(await this.#journal.load(), this.#options.allowed);
    for (const { key, value } of await this.#documents.load()) {
      const stored = parseStored(value);
      if (stored === null) await this.#documents.setAside(key, 'it does not describe a recording task');
      else this.#add(new RecordTask({ key, ...stored }, this.#context));
    }
  }

  /** Recordings have no playlist. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream, settings: FileSettings): PublisherStream {
    const owner = { vhost: stream.vhost, app: stream.app, settings };
    const name = streamKey(stream.vhost, stream.app, stream.name);
    const attached = new FileStream(stream, this.#placeOf(owner), {
      tasks: () => this.#tasksOf(owner).filter(({ request }) => request.streamName === stream.name),
      onClose: () => {
        if (this.#streams.get(name) === attached) this.#streams.delete(name);
        for (const task of this.#tasksOf(owner)) if (task.request.isConfig && task.request.streamName === stream.name) this.#drop(task);
      },
    });
    this.#streams.set(name, attached);
    const { streamMap } = settings;
    if (streamMap?.enable === true && streamMap.path !== undefined) void this.#applyMap(streamMap.path, attached, owner);
    return attached;
  }

  /**
   * Makes a task that survives a restart, and lets it begin when its stream is there. Throws `RecordRefused`, and
   * `PathRefused` for a path that is not allowed.
   */
  async startRecord(owner: RecordOwner, request: RecordRequest): Promise<RecordInformation> {
    const place = this.#placeOf(owner);
    const { file, info } = place.pathsOf(request);
    // The check and the registration are one step: the id is taken before anything is awaited.
    const task = this.#register(owner, request);
    try {
      await place.folders.checkLinks(file);
      await place.folders.checkLinks(info);
      await this.#durably(this.#documents.save(task.key, this.#storedOf(task)));
    } catch (error) {
      this.#drop(task);
      throw error;
    }
    // It may have been stopped meanwhile.
    if (this.#find(owner, request.id) === task) this.#streams.get(streamKey(owner.vhost, owner.app, request.streamName))?.begin(task);
    return recordInformation(task);
  }

  /** Ends a task; its file is finished behind the scenes. Null when there is none of this id. Throws `RecordRefused`. */
  async stopRecord(owner: RecordOwner, id: string): Promise<RecordInformation | null> {
    const task = this.#find(owner, id);
    if (task === null) return null;
    // Out of the list first: a file that ends meanwhile must not save the task again.
    this.#forgetTask(task);
    try {
      if (!task.request.isConfig) await this.#durably(this.#documents.remove(task.key));
    } catch (error) {
      this.#add(task);
      throw error;
    }
    task.markStopping();
    const information = recordInformation(task);
    this.#drop(task);
    return information;
  }

  /** Tasks of an application by the byte order of their ids; with `id`, that one or none. */
  records(owner: RecordOwner, id: string | null = null): RecordInformation[] {
    return this.#tasksOf(owner)
      .filter(({ request }) => id === null || request.id === id)
      .sort((a, b) => Buffer.compare(Buffer.from(a.request.id), Buffer.from(b.request.id)))
      .map(recordInformation);
  }

  /** The application is gone for good, and its tasks with it. */
  forgetApplication(vhost: string, app: string): void {
    for (const task of this.#tasksOf({ vhost, app })) {
      this.#drop(task);
      this.#documents.remove(task.key).catch((error: unknown) => {
        this.#logger.error({ err: error, recording: task.request.id }, 'recording task of a deleted application stays in the state folder');
      });
    }
  }

  /** Resolves when every file that has ended is finished, or is left to the next start. Call after the streams are closed. */
  async stop(): Promise<void> {
    const deadline = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => deadline.resolve(false), STOP_DEADLINE_MS);
    const isDone = await Promise.race([this.#settle().then(() => true), deadline.promise]);
    clearTimeout(timer);
    if (!isDone) this.#logger.warn({}, 'recordings are not finished yet: the next start does that');
  }

  async #settle(): Promise<void> {
    await Promise.all([this.#recovering, ...this.#ending]);
    for (const tasks of this.#tasks.values()) for (const task of tasks.values()) await task.settled();
    await this.#documents.settle();
  }

  #placeOf({ settings }: RecordOwner): RecordPlace {
    return new RecordPlace(settings, this.#options.stateFolder, this.#options.allowed);
  }

  #tasksOf({ vhost, app }: { readonly vhost: string; readonly app: string }): RecordTask[] {
    return [...(this.#tasks.get(appKey(vhost, app))?.values() ?? [])];
  }

  #find({ vhost, app }: RecordOwner, id: string): RecordTask | null {
    return this.#tasks.get(appKey(vhost, app))?.get(id) ?? null;
  }

  #register({ vhost, app, settings }: RecordOwner, request: RecordRequest): RecordTask {
    if (this.#find({ vhost, app, settings }, request.id) !== null) {
      throw new RecordRefused('duplicate', `the application has a recording '${request.id}'`);
    }
    if (this.#tasksOf({ vhost, app }).length >= MOST_TASKS) {
      throw new RecordRefused('too-many', `the application has ${MOST_TASKS} recordings`);
    }
    const key = randomName(KEY_LENGTH);
    const task = new RecordTask({ key, vhost, app, request, createdAt: this.#options.clock.now() }, this.#context);
    this.#add(task);
    return task;
  }

  #add(task: RecordTask): void {
    const key = appKey(task.vhost, task.app);
    const tasks = this.#tasks.get(key) ?? new Map<string, RecordTask>();
    tasks.set(task.request.id, task);
    this.#tasks.set(key, tasks);
  }

  #forgetTask(task: RecordTask): void {
    const key = appKey(task.vhost, task.app);
    const tasks = this.#tasks.get(key);
    if (tasks?.get(task.request.id) !== task) return;
    tasks.delete(task.request.id);
    if (tasks.size === 0) this.#tasks.delete(key);
  }

  /** Takes the task out of the lists and lets it finish. */
  #drop(task: RecordTask): void {
    this.#forgetTask(task);
    const ending = task.stop();
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }

  async #applyMap(path: string, stream: FileStream, owner: RecordOwner): Promise<void> {
    try {
      for (const request of requestsFor(parseRecordMap(await readFile(path, 'utf8'), path), stream.source)) {
        if (!stream.closed) stream.begin(this.#register(owner, request));
      }
    } catch (error) {
      this.#logger.error({ err: error, map: path }, `record map cannot be used: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Sequence numbers and totals go on after a restart. */
  #keepTotals(task: RecordTask): void {
    if (task.request.isConfig || this.#tasks.get(appKey(task.vhost, task.app))?.get(task.request.id) !== task) return;
    this.#documents.save(task.key, this.#storedOf(task)).catch((error: unknown) => {
      this.#logger.warn({ err: error, recording: task.request.id }, 'totals of the recording could not be saved');
    });
  }

  #storedOf({ vhost, app, request, createdAt, totals }: RecordTask): StoredTask {
    return { vhost, app, request, createdAt, totals };
  }

  async #durably(write: Promise<void>): Promise<void> {
    try {
      await write;
    } catch (error) {
      throw new RecordRefused('not-durable', 'the recording task could not be saved', { cause: error });
    }
  }
}

/** One outbound stream and the tasks that record it. */
class FileStream implements PublisherStream {
  readonly source: PublishableStream;
  readonly #place: RecordPlace;
  readonly #waiting: () => RecordTask[];
  readonly #onClose: () => void;
  readonly #active = new Set<RecordTask>();
  #started = false;
  #closed = false;

  constructor(source: PublishableStream, place: RecordPlace, owner: { readonly tasks: () => RecordTask[]; readonly onClose: () => void }) {
    this.source = source;
    this.#place = place;
    this.#waiting = owner.tasks;
    this.#onClose = owner.onClose;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Lets a task record this stream, at once or as soon as its tracks are known. */
  begin(task: RecordTask): void {
    if (!this.#started || this.#closed) return;
    this.#active.add(task);
    task.begin(this.source, this.#place);
  }

  onTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    if (this.#started) {
      for (const task of this.#active) task.setTracks(tracks);
      return;
    }
    this.#started = true;
    for (const task of this.#waiting()) this.begin(task);
  }

  onPacket(packet: Packet): void {
    for (const task of this.#active) task.push(packet);
  }

  /** Stopped tasks are let go of here, so that packets do not look for them. */
  onDrained(): void {
    for (const task of this.#active) if (task.isOver) this.#active.delete(task);
  }

  close(_reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const task of this.#active) task.streamEnded();
    this.#active.clear();
    this.#onClose();
  }
}

function appKey(vhost: string, app: string): string {
  return JSON.stringify([vhost, app]);
}

function streamKey(vhost: string, app: string, stream: string): string {
  return JSON.stringify([vhost, app, stream]);
}

function parseStored(value: unknown): StoredTask | null {
  if (typeof value !== 'object' || value === null) return null;
  const { vhost, app, request, createdAt, totals } = value as Record<string, unknown>;
  const stored = storedRequest(request);
  if (typeof vhost !== 'string' || typeof app !== 'string' || stored === null || typeof createdAt !== 'number') return null;
  if (typeof totals !== 'object' || totals === null) return null;
  const { sequence, bytes, time } = totals as Record<string, unknown>;
  if (typeof sequence !== 'number' || typeof bytes !== 'number' || typeof time !== 'number') return null;
  return { vhost, app, request: stored, createdAt, totals: { sequence, bytes, time } };
}
