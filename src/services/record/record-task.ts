/** One recording task: waits for its stream, records it into one file after the other, and knows its figures. */
import { dirname } from 'node:path';
import { PublisherKind } from '../../core/kinds.ts';
import type { Notices } from '../../core/notices/notice.ts';
import { postTask } from '../../core/notices/task-notices.ts';
import type { PublishableStream } from '../../core/publishing.ts';
import type { QueueRegistry } from '../../core/queue-registry.ts';
import { DiskRetry } from '../../core/tasks/disk-retry.ts';
import { FollowingTask, NO_TOTALS, type TaskOrigin, type TaskTotals } from '../../core/tasks/following-task.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import type { Clock } from '../../util/clock.ts';
import type { Conditions } from '../../util/conditions.ts';
import { diskFault } from '../../util/disk-fault.ts';
import { hasRoom } from '../../util/disk-space.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import type { QueueGauge } from '../../util/queue-gauge.ts';
import { MAX_UNWRITTEN_BYTES } from './file-sink.ts';
import type { Attachment, Waiting } from './record-attachment.ts';
import { presentedAt, presentedAt90k, RecordFile } from './record-file.ts';
import type { RecordJournal } from './record-journal.ts';
import type { RecordCounts } from './record-metrics.ts';
import { containerOf, expandPath, type PathValues, randomName, temporaryPath } from './record-path.ts';
import type { RecordPlace } from './record-place.ts';
import { type RecordRequest, SegmentationRule } from './record-request.ts';
import { atTimes, DailySchedule, everyInterval, NEVER, type SplitRule } from './split-schedule.ts';
import { hasSameParameters } from './track-parameters.ts';
import { recordedTracks } from './track-selection.ts';

/** The words of the API. */
export const RecordState = {
  READY: 'ready',
  RECORDING: 'recording',
  STOPPING: 'stopping',
  STOPPED: 'stopped',
  ERROR: 'error',
} as const;
/** Any of these words. */
export type RecordState = (typeof RecordState)[keyof typeof RecordState];

const KIB = 1024;
const KEY_LENGTH = 32;
const TRANSACTION_ID_LENGTH = 16;
/** A file that ended waits this long, in media time, for packets of other tracks that still belong to it. */
const LINGER_MS = 5000;

/** Dependencies shared by tasks. */
export interface RecordContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: RecordJournal;
  readonly queues: QueueRegistry;
  /** Raised while a disk refuses recordings. */
  readonly conditions: Conditions;
  readonly notices: Notices;
  readonly counts: RecordCounts;
  /** The totals have changed: resolves when they are on disk, or with false when they cannot be. Never rejects. */
  readonly keepTotals: (task: RecordTask) => Promise<boolean>;
}

/** Owned by the registry of the publisher, which stops it. Each stream of its name is recorded to new files. */
export class RecordTask extends FollowingTask<RecordRequest> {
  readonly #context: RecordContext;
  readonly #logger: Logger;
  #state: RecordState = RecordState.READY;
  #reason: string | null = null;
  #attachment: Attachment | null = null;
  /** Never beside an attachment. */
  #waiting: Waiting | null = null;
  readonly #retry: DiskRetry;
  /** Settles when the file that ended last has its name; the files get theirs in order. */
  #finishing: Promise<void> = Promise.resolve();
  /** The file that ended when recording did. */
  #lastFile: RecordFile | null = null;
  /** Totals of files that have their names. */
  #finished: { readonly bytes: number; readonly time: number };
  /** Keys of files in `#finished` whose notes may still be there: they are not counted again. */
  readonly #counted: Set<string>;
  /** Files that could not be finished, by key, until they are: see `count`. */
  readonly #left = new Map<string, { readonly bytes: number; readonly durationMs: number }>();
  /** Files that have ended and are being finished. */
  readonly #unfinished = new Set<RecordFile>();
  /** Number of the next file. */
  #sequence: number;
  #startTime: number | null = null;
  #finishTime: number | null = null;
  /** The file of `#outputFile`, and its place. */
  #shown: { readonly file: RecordFile; readonly place: RecordPlace } | null = null;
  #outputFile: string | null = null;
  #outputInfo: string | null = null;

  constructor(origin: TaskOrigin<RecordRequest>, context: RecordContext) {
    super(origin);
    const { sequence, bytes, time, counted = [] } = origin.totals ?? NO_TOTALS;
    this.#counted = new Set(counted);
    this.#sequence = sequence;
    this.#finished = { bytes, time };
    this.#context = context;
    this.#retry = new DiskRetry(context.clock);
    this.#logger = context.logger.child({ vhost: this.vhost, app: this.app, stream: this.request.streamName, recording: this.request.id });
  }

  get state(): RecordState {
    return this.#state;
  }

  #become(state: RecordState): void {
    const before = this.#state;
    this.#state = state;
    if (state !== before) postTask(this.#context.notices, 'recording', this);
  }

  /** Stopped or stopping: it takes no more packets. */
  get isOver(): boolean {
    return this.#state === RecordState.STOPPING || this.#state === RecordState.STOPPED;
  }

  /** Why the state is `error`. */
  get reason(): string | null {
    return this.#reason;
  }

  /** Bytes of the current file. */
  get recordBytes(): number {
    return (this.#attachment?.file ?? this.#lastFile)?.bytes ?? 0;
  }

  /** Media in the current file, ms. */
  get recordTime(): number {
    return (this.#attachment?.file ?? this.#lastFile)?.durationMs ?? 0;
  }

  /** Figures that survive a restart: bytes and ms of files that have their names. */
  override get totals(): TaskTotals {
    return { sequence: this.#sequence, ...this.#finished, counted: [...this.#counted] };
  }

  /** Totals of all files, the current one included. */
  get totalRecordBytes(): number {
    return this.#total(this.#finished.bytes, ({ bytes }) => bytes);
  }

  /** ms. */
  get totalRecordTime(): number {
    return this.#total(this.#finished.time, ({ durationMs }) => durationMs);
  }

  /** Start of the current file, ms since the epoch. */
  get startTime(): number | null {
    return this.#startTime;
  }

  get finishTime(): number | null {
    return this.#finishTime;
  }

  /**
   * Path of the current or last file below the `RootPath`, macros replaced; null before there was one. The macro of the end time stays
   * until the end is known; the number that a taken name gets comes with the name itself.
   */
  get outputFilePath(): string | null {
    return this.#outputFile;
  }

  get outputInfoPath(): string | null {
    return this.#outputInfo;
  }

  /** The last run left file `sequence` open: its number is taken. */
  skipSequence(sequence: number): void {
    this.#sequence = Math.max(this.#sequence, sequence + 1);
  }

  /** The file with this journal key has its name: see `CountFile`. Counted once, whatever the last run counted. */
  count(key: string, { bytes, durationMs }: { readonly bytes: number; readonly durationMs: number }): Promise<boolean> {
    this.#left.delete(key);
    for (const known of this.#counted) if (!this.#context.journal.isOpen(known)) this.#counted.delete(known);
    if (!this.#counted.has(key)) {
      this.#counted.add(key);
      this.#finished = { bytes: this.#finished.bytes + bytes, time: this.#finished.time + durationMs };
    }
    return this.#context.keepTotals(this);
  }

  /** Settles when every file that has ended has its name. */
  override settled(): Promise<void> {
    return this.#finishing;
  }

  /** The stream is present: recording begins with its next keyframe. Exceptions of this, `setTracks` and `push` go to `fail`. */
  begin(stream: PublishableStream, place: RecordPlace): void {
    if (this.#attachment !== null || this.isOver) return;
    this.#stopWaiting();
    // A repeated failure is logged again.
    this.#state = RecordState.READY;
    this.#reason = null;
    this.#lastFile = null;
    this.#finishTime = null;
    this.#startTime = this.#context.clock.now();
    const paths = place.pathsOf(this.request);
    const transactionId = randomName(TRANSACTION_ID_LENGTH);
    this.#attachment = {
      ...{ stream, place, paths, transactionId, split: this.#splitRule() },
      ...{ tracks: new Map(), mainTrackId: -1, file: null, ending: null, changed: false, origin: null },
    };
    this.#showPaths(this.#attachment, this.#startTime);
    this.#become(RecordState.RECORDING);
    stream.meter.connect(PublisherKind.FILE);
    this.setTracks(stream.tracks);
  }

  /** The tracks of the stream, as they are from now on. */
  setTracks(tracks: readonly Track[]): void {
    const attachment = this.#attachment;
    if (attachment === null || this.#state !== RecordState.RECORDING) return;
    const container = containerOf(this.#outputFile ?? attachment.paths.file);
    const { recorded, left, missing } = recordedTracks(this.request, container, tracks);
    if (left !== '')
      this.#logger.warn({ container, tracks: left }, `${container.toUpperCase()} cannot hold ${left}: left out of the recording`);
    // The missing tracks may come later or have failed: the present ones are worth recording.
    if (missing !== '') this.#logger.warn({ missing }, `the stream has no track ${missing}: recorded without it`);
    const isSame = recorded.length === attachment.tracks.size && recorded.every(({ id }) => attachment.tracks.has(id));
    if (isSame) return;
    attachment.tracks.clear();
    for (const track of recorded) attachment.tracks.set(track.id, track);
    attachment.mainTrackId = (recorded.find(({ type }) => type === 'video') ?? recorded[0])?.id ?? -1;
    attachment.changed = attachment.file !== null;
  }

  push(packet: Packet): void {
    if (this.#waiting !== null && packet.keyframe) this.#tryAgain(this.#waiting, packet);
    const attachment = this.#attachment;
    if (attachment === null || this.#state !== RecordState.RECORDING) return;
    const { track } = packet;
    const known = attachment.tracks.get(track.id);
    if (known === undefined) return;
    if (known !== track) {
      attachment.tracks.set(track.id, track);
      const inFile = attachment.file?.tracks.get(track.id);
      if (inFile !== undefined && !hasSameParameters(inFile, track)) attachment.changed = true;
    }
    if (track.id === attachment.mainTrackId && packet.keyframe && this.#beginsFile(attachment, packet)) this.#startFile(attachment, packet);
    if (this.#belongsBefore(attachment, packet)) return;
    const inFile = attachment.file?.tracks.get(track.id);
    // A file cannot change the parameters of a track: until the next one begins, the packet has no place.
    if (inFile !== undefined && (inFile === track || hasSameParameters(inFile, track))) attachment.file?.push(packet);
  }

  /** The stream has ended: the file is finished, and the task waits for the next one. */
  streamEnded(): void {
    const wasRecording = this.#state === RecordState.RECORDING;
    this.#stopWaiting();
    this.#detach(true);
    if (wasRecording) this.#become(RecordState.READY);
  }

  /** Nothing more is recorded; the figures stay as they are until `stop`. */
  markStopping(): void {
    if (this.#state === RecordState.STOPPED) return;
    this.#become(RecordState.STOPPING);
    if (this.#attachment?.file != null) this.#showPaths(this.#attachment, this.#startTime ?? 0, this.#context.clock.now());
  }

  /** Ends the task. Resolves when its last file has its name. Idempotent. */
  override async stop(): Promise<void> {
    this.markStopping();
    this.#stopWaiting();
    this.#detach(true);
    await this.settled();
    this.#become(RecordState.STOPPED);
  }

  #splitRule(): SplitRule {
    const { interval, schedule } = this.request;
    if (interval > 0) return everyInterval(interval);
    const times = schedule === '' ? null : DailySchedule.parse(schedule);
    return times === null ? NEVER : atTimes(times);
  }

  #beginsFile(attachment: Attachment, packet: Packet): boolean {
    if (attachment.file === null || attachment.changed) return true;
    return attachment.split.splitsAt(presentedAt(packet), this.#context.clock.now());
  }

  /** The gauge of a file's bytes that wait for the disk. */
  #gaugeFor({ stream }: Attachment): QueueGauge {
    return this.#context.queues.gauge({
      urn: `mngq:v=${this.vhost}#${this.app}:s=/${stream.name}:p=pub:r=streamworker_[file]_${this.request.id}`,
      type: 'KiB',
      threshold: MAX_UNWRITTEN_BYTES / KIB,
      unit: KIB,
    });
  }

  #startFile(attachment: Attachment, first: Packet): void {
    const now = this.#context.clock.now();
    const startAt90k = presentedAt90k(first);
    attachment.origin ??= startAt90k;
    attachment.changed = false;
    this.#cut(attachment, presentedAt(first), now);
    const values = this.#values(attachment, now);
    const { paths, place } = attachment;
    const target = place.expand(paths, { ...values, endTime: 0 });
    const temporary = temporaryPath(paths.file, values);
    const continues = this.request.segmentationRule === SegmentationRule.CONTINUITY;
    this.#startTime = now;
    this.#showPaths(attachment, now);
    attachment.split.begin(presentedAt(first), now);
    const file = new RecordFile({
      tracks: [...attachment.tracks.values()],
      first,
      container: containerOf(target),
      startAt: continues ? startAt90k - attachment.origin : 0,
      key: randomName(KEY_LENGTH),
      note: {
        ...{ task: this.key, temporary, root: place.root, filePath: paths.file, infoPath: paths.info, values, moved: null },
        mediaStart: attachment.stream.startedAt + presentedAt(first),
        ...{ metadata: this.request.metadata, createdTime: this.createdAt },
      },
      journal: this.#context.journal,
      folders: place.folders,
      logger: this.#logger,
      count: (key, finished) => {
        // From here on the totals of the finished files include it.
        this.#unfinished.delete(file);
        return this.count(key, finished);
      },
      onBytes: (bytes) => {
        this.#context.counts.bytes += bytes;
        attachment.stream.meter.countBytes(bytes);
      },
      onError: (error) => this.fail(error),
      makeGauge: () => this.#gaugeFor(attachment),
      onWritten: (gauge) => this.#context.queues.remove(gauge),
    });
    attachment.file = file;
    this.#shown = { file, place };
    // Not as the API shows it: below the folder of the publisher it would read like a path of this machine that is not there.
    const whole = expandPath(paths.file, { ...values, endTime: null });
    this.#logger.info({ file: whole, sequence: values.sequence }, `recording to ${whole}`);
  }

  /** Ends the present file at `endMs` for its main track: see `#belongsBefore`. */
  #cut(attachment: Attachment, endMs: number, finishTime: number): void {
    this.#finishEnding(attachment);
    const { file } = attachment;
    if (file === null) return;
    const waiting = new Set([...file.tracks.keys()].filter((id) => id !== attachment.mainTrackId));
    this.#sequence += 1;
    this.#unfinished.add(file);
    attachment.file = null;
    attachment.ending = { file, endMs, finishTime, waiting };
    // The next file holds back its own run.
    file.flush();
    if (waiting.size === 0) this.#finishEnding(attachment);
  }

  /**
   * True if the packet belongs to the previous file, which takes every other track until that can begin in the new file: audio at the cut,
   * a further video track at its own first keyframe after it.
   */
  #belongsBefore(attachment: Attachment, packet: Packet): boolean {
    const { ending } = attachment;
    if (ending === null) return false;
    const { track } = packet;
    const at = presentedAt(packet);
    if (track.id === attachment.mainTrackId) {
      if (at >= ending.endMs + LINGER_MS) this.#finishEnding(attachment);
      return false;
    }
    if (!ending.waiting.has(track.id)) return false;
    if (at < ending.endMs || !packet.keyframe) {
      const inFile = ending.file.tracks.get(track.id);
      if (inFile !== undefined && hasSameParameters(inFile, track)) ending.file.push(packet);
      return true;
    }
    ending.waiting.delete(track.id);
    if (ending.waiting.size === 0) this.#finishEnding(attachment);
    return false;
  }

  #finishEnding(attachment: Attachment): void {
    const { ending } = attachment;
    if (ending === null) return;
    attachment.ending = null;
    this.#finish(ending.file, ending.finishTime, false);
  }

  #finish(file: RecordFile, finishTime: number, isLast: boolean): void {
    const told = file.finish(finishTime, isLast, this.#finishing).then(({ outcome, path, bytes }) => {
      this.#unfinished.delete(file);
      if (path !== null) this.#context.counts.files += 1;
      if (path !== null && this.#shown?.file === file) this.#outputFile = this.#shown.place.shown(path);
      if (outcome === 'left') this.#left.set(file.key, { bytes: file.bytes, durationMs: file.durationMs });
      this.#logger.info({ file: path, bytes }, path === null ? 'recording was empty and was removed' : `recorded ${path}`);
      // Its number is taken all the same.
      if (outcome !== 'finished') void this.#context.keepTotals(this);
    });
    // The result may not be awaited.
    this.#finishing = told.catch((error: unknown) => this.#logger.error({ err: error }, 'the end of a recording failed inside the server'));
  }

  #total(ended: number, figureOf: (file: Pick<RecordFile, 'bytes' | 'durationMs'>) => number): number {
    let sum = ended;
    for (const file of this.#left.values()) sum += figureOf(file);
    for (const file of this.#unfinished) sum += figureOf(file);
    const current = this.#attachment?.file ?? null;
    return current === null ? sum : sum + figureOf(current);
  }

  /** Leaves the stream and ends the open file. */
  #detach(isLast: boolean): void {
    const attachment = this.#attachment;
    if (attachment === null) return;
    this.#attachment = null;
    attachment.stream.meter.disconnect(PublisherKind.FILE);
    this.#finishEnding(attachment);
    if (attachment.file === null) return;
    this.#lastFile = attachment.file;
    this.#finishTime = this.#context.clock.now();
    this.#sequence += 1;
    this.#unfinished.add(attachment.file);
    this.#finish(attachment.file, this.#finishTime, isLast);
  }

  /** Handles an error; written media is kept. After a disk error recording restarts when there is room; otherwise with the next stream. */
  fail(error: unknown): void {
    const attachment = this.#attachment;
    if (this.#state === RecordState.ERROR || this.#state === RecordState.STOPPED) return;
    this.#reason = messageOf(error);
    this.#context.counts.failures += 1;
    this.#logger.error({ err: error }, `recording failed: ${this.#reason}`);
    const why = diskFault(error);
    const waits = this.#state !== RecordState.STOPPING && attachment !== null && why !== null;
    if (this.#state !== RecordState.STOPPING) this.#become(RecordState.ERROR);
    const folder = waits ? dirname(temporaryPath(attachment.paths.file, this.#values(attachment, 0))) : '';
    this.#detach(true);
    if (!waits) return;
    const { stream, place, mainTrackId } = attachment;
    this.#waiting = { stream, place, folder, trackId: mainTrackId };
    this.#retry.failed();
    // It still wants the stream.
    stream.meter.connect(PublisherKind.FILE);
    this.#context.conditions.raise(this.#condition, `a recording cannot be written: ${why}`);
  }

  get #condition(): string {
    return `recording ${this.key}`;
  }

  /** Restarts with a keyframe when there is room. */
  #tryAgain({ stream, place, folder, trackId }: Waiting, packet: Packet): void {
    if (trackId !== -1 && packet.track.id !== trackId) return;
    const look = async (): Promise<boolean> => {
      try {
        await place.folders.makeFolder(folder);
      } catch {
        return false;
      }
      return hasRoom(folder);
    };
    if (!this.#retry.isDue(look)) return;
    this.#logger.info({}, 'recording restarted: the disk can be written again');
    this.begin(stream, place);
  }

  #stopWaiting(): void {
    if (this.#waiting === null) return;
    this.#waiting.stream.meter.disconnect(PublisherKind.FILE);
    this.#waiting = null;
    this.#context.conditions.clear(this.#condition);
  }

  #values(attachment: Attachment, startTime: number): Omit<PathValues, 'endTime'> {
    const { vhost, app } = this;
    const { id, streamName } = this.request;
    const { transactionId, stream } = attachment;
    return {
      transactionId,
      id,
      vhost,
      app,
      sourceStream: stream.sourceName,
      stream: streamName,
      sequence: this.#sequence,
      startTime,
    };
  }

  #showPaths(attachment: Attachment, startTime: number, endTime: number | null = null): void {
    const values = { ...this.#values(attachment, startTime), endTime };
    const { paths, place } = attachment;
    this.#outputFile = place.shown(expandPath(paths.file, values));
    this.#outputInfo = place.shown(expandPath(paths.info, values));
  }
}
