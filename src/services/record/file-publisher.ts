/** The FILE publisher: keeps recording tasks and brings them together with the streams they wait for. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PublisherKind } from '../../core/kinds.ts';
import { NO_NOTICES, type Notices } from '../../core/notices/notice.ts';
import { postTask } from '../../core/notices/task-notices.ts';
import type { PublishableStream, Publisher, PublisherStream } from '../../core/publishing.ts';
import { QueueRegistry } from '../../core/queue-registry.ts';
import { type ApplicationAddress, addressOf, streamKey } from '../../core/stream-address.ts';
import { MapFiles } from '../../core/tasks/map-files.ts';
import { TaskRegistry } from '../../core/tasks/task-registry.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import { KEYED } from '../../state/document-layout.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Clock } from '../../util/clock.ts';
import { Conditions } from '../../util/conditions.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { MetricSource } from '../../util/metrics.ts';
import { RecordInfoFiles } from './record-info-file.ts';
import { type RecordInformation, recordInformation } from './record-information.ts';
import { type FinishedRecording, type OpenRecording, RecordJournal } from './record-journal.ts';
import { parseRecordMap, type RecordMapEntry, requestsFor } from './record-map.ts';
import { RecordCounts, recordMetrics } from './record-metrics.ts';
import { containerOf } from './record-path.ts';
import { type FilePublisherSettings, foldersBelow, RecordPlace } from './record-place.ts';
import { type RecordRequest, storedRequest } from './record-request.ts';
import { type RecordContext, RecordTask } from './record-task.ts';
import { RecordedStream } from './recorded-stream.ts';
import { RecordingIndex } from './recording-index.ts';
import { RecordingLibrary, type RecordingLibraryOptions } from './recording-library.ts';
import type { RecordingNote } from './recording-note.ts';

/** How long a stop may take, ms; the server cuts everything short at 3.9 s. */
const STOP_DEADLINE_MS = 3500;

/** An application, and its part of the configuration that is about recordings. */
export interface RecordOwner extends ApplicationAddress {
  readonly settings: FilePublisherSettings;
}

/** Tasks, their journal and recordings without a path are kept below `stateFolder`. */
export interface FilePublisherOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Lists the writes that wait for a disk. Default: they are not listed. */
  readonly queues?: QueueRegistry;
  readonly stateFolder: string;
  /** Where recordings may be written. */
  readonly allowed: AllowedFolders;
  /** Raised while a disk refuses recordings. Default: none. */
  readonly conditions?: Conditions;
  /** Receives notices of tasks. Default: none. */
  readonly notices?: Notices;
  /** Retention of an application's recordings. Default: unlimited. */
  readonly retentionOf?: RecordingLibraryOptions['retentionOf'];
}

/**
 * Registered in the core, which attaches streams and closes them. The server calls `load` before streams come, `recover` once it has
 * started, and `stop` after the streams are gone.
 */
export class FilePublisher implements Publisher<FilePublisherSettings> {
  readonly kind = PublisherKind.FILE;
  readonly #options: FilePublisherOptions;
  readonly #logger: Logger;
  readonly #journal: RecordJournal;
  readonly #counts = new RecordCounts();
  readonly #index: RecordingIndex;
  /** Recorded files, to be watched and to be removed in time. */
  readonly library: RecordingLibrary;
  readonly #tasks: TaskRegistry<RecordRequest, RecordTask>;
  readonly #maps: MapFiles<RecordMapEntry>;
  readonly #streams = new Map<string, RecordedStream>();
  /** Files that the last run left unfinished. */
  #left: OpenRecording[] = [];
  #recovering: Promise<void> = Promise.resolve();

  constructor(options: FilePublisherOptions) {
    const { stateFolder, clock, queues = new QueueRegistry(clock), conditions = new Conditions(), notices = NO_NOTICES } = options;
    const logger = options.logger.child({ publisher: PublisherKind.FILE });
    this.#options = options;
    this.#logger = logger;
    this.#maps = new MapFiles(parseRecordMap, logger);
    const notes = new DocumentFolder({ folder: join(stateFolder, 'records/open'), kind: 'open-recording', layout: KEYED, logger });
    const journal = new RecordJournal(notes, new RecordInfoFiles(), logger);
    this.#journal = journal;
    this.#index = new RecordingIndex(join(stateFolder, 'records/finished.jsonl'), logger);
    this.library = new RecordingLibrary({
      ...{ index: this.#index, allowed: options.allowed, clock, logger },
      retentionOf: options.retentionOf ?? (() => null),
    });
    journal.list = (key, file, note) => this.#list(key, file, note);
    const shared = { clock, logger, journal, queues, conditions, notices, counts: this.#counts };
    const context: RecordContext = { ...shared, keepTotals: (task) => this.#tasks.keepTotals(task) };
    this.#tasks = new TaskRegistry({
      noun: 'recording',
      documents: new DocumentFolder({ folder: join(stateFolder, 'records/tasks'), kind: 'recording-task', layout: KEYED, logger }),
      logger,
      parse: storedRequest,
      make: (origin) => new RecordTask(origin, context),
      onRegistered: (task) => postTask(notices, 'recording', task),
    });
  }

  /** For `/metrics`. */
  get metrics(): readonly MetricSource[] {
    return recordMetrics(this.#counts, () => this.#tasks.all(), this.library);
  }

  /** Settles when the files of the last run are finished. */
  get recovered(): Promise<void> {
    return this.#recovering;
  }

  /** Restores the tasks, and the files of the last run. Call before the first stream. */
  async load(): Promise<void> {
    await this.#index.load();
    await this.#tasks.load();
    this.#left = await this.#journal.load();
    for (const { note } of this.#left) this.#tasks.byKey(note.task)?.skipSequence(note.values.sequence);
  }

  /** Begins to finish the files of the last run, behind the scenes. Call once, after `load`. */
  recover(): void {
    this.library.start();
    const left = this.#left.splice(0);
    const foldersOf = ({ root }: RecordingNote): AllowedFolders => foldersBelow(root ?? null, this.#options.allowed);
    this.#recovering = this.#journal.recover(left, foldersOf, async (key, file, note) => {
      const task = this.#tasks.byKey(note.task);
      return task === null || (await task.count(key, file));
    });
  }

  /** Recordings have no playlist. */
  defaultPlaylist(): null {
    return null;
  }

  attach(stream: PublishableStream, settings: FilePublisherSettings): PublisherStream {
    const owner = { vhost: stream.vhost, app: stream.app, settings };
    const name = streamKey(addressOf(stream));
    const attached = new RecordedStream(stream, this.#placeOf(owner), {
      tasks: () => this.#tasks.following(stream),
      onClose: () => {
        if (this.#streams.get(name) === attached) this.#streams.delete(name);
        for (const task of this.#tasks.following(stream)) if (task.request.isConfig) this.#tasks.drop(task);
      },
    });
    this.#streams.set(name, attached);
    const { streamMap } = settings;
    if (streamMap?.enable === true && streamMap.path !== undefined) void this.#applyMap(streamMap.path, attached, owner);
    return attached;
  }

  /**
   * Makes a task that survives a restart, and lets it begin when its stream is there. Throws `TaskRefused`, and
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
      await this.#tasks.persist(task);
    } catch (error) {
      this.#tasks.drop(task);
      throw error;
    }
    // It may have been stopped meanwhile.
    if (this.#tasks.has(task))
      this.#streams.get(streamKey({ vhost: owner.vhost, app: owner.app, stream: request.streamName }))?.begin(task);
    return recordInformation(task);
  }

  /** Ends a task; its file is finished behind the scenes. Null when there is none of this id. Throws `TaskRefused`. */
  async stopRecord(owner: RecordOwner, id: string): Promise<RecordInformation | null> {
    const task = await this.#tasks.release(owner, id);
    if (task === null) return null;
    task.markStopping();
    const information = recordInformation(task);
    this.#tasks.drop(task);
    return information;
  }

  /** Tasks of an application by the byte order of their ids; with `id`, that task or none. */
  records(owner: RecordOwner, id: string | null = null): RecordInformation[] {
    return this.#tasks.list(owner, id).map(recordInformation);
  }

  /** The application is gone for good, and its tasks with it. */
  forgetApplication(vhost: string, app: string): void {
    this.#tasks.forgetApplication({ vhost, app });
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
    await this.#recovering;
    await this.#tasks.settle();
    await this.#journal.close();
    await this.library.stop();
  }

  #placeOf({ settings }: RecordOwner): RecordPlace {
    return new RecordPlace(settings, this.#options.stateFolder, this.#options.allowed);
  }

  #register(owner: ApplicationAddress, request: RecordRequest): RecordTask {
    return this.#tasks.register(owner, request, this.#options.clock.now());
  }

  async #list(
    key: string,
    { path, bytes, durationMs }: FinishedRecording,
    { values, mediaStart, root = null }: RecordingNote,
  ): Promise<void> {
    if (path === null) return;
    try {
      const { ino, mtimeMs } = await stat(path, { bigint: true });
      const { vhost, app, stream, id: task } = values;
      const startTime = mediaStart ?? values.startTime;
      const file = { path, root, container: containerOf(path), bytes, inode: String(ino), writtenAt: Number(mtimeMs) };
      await this.#index.add({ key, vhost, app, stream, task, startTime, durationMs, ...file });
    } catch (error) {
      this.#logger.warn({ err: error, file: path }, 'recording is not listed: its file cannot be looked at');
    }
  }

  async #applyMap(path: string, stream: RecordedStream, owner: RecordOwner): Promise<void> {
    stream.hold();
    try {
      for (const request of requestsFor(await this.#maps.entries(path), stream.source)) {
        if (!stream.closed) stream.begin(this.#register(owner, request));
      }
    } catch (error) {
      this.#logger.error({ err: error, map: path }, `record map cannot be used: ${messageOf(error)}`);
    } finally {
      const missed = stream.release();
      if (missed > 0)
        this.#logger.warn({ map: path, packets: missed }, `record map was read late: its tasks begin without ${missed} packets`);
    }
  }
}
