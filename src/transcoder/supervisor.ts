/** The server's interface to transcoding: assigns jobs to processes, and keeps them running when a process dies. */

import { availableParallelism } from 'node:os';
import type { QueueRegistry } from '../core/queue-registry.ts';
import type { TranscodeListener, Transcoder, TranscodeSession } from '../core/transcoding.ts';
import type { Clock } from '../util/clock.ts';
import { counted } from '../util/counted.ts';
import type { Logger } from '../util/logger.ts';
import type { MetricSource } from '../util/metrics.ts';
import { busIds } from './bus-ids.ts';
import { type CodecModuleItem, codecModules } from './codec-modules.ts';
import { FfmpegFile, type OpenedFile } from './ffmpeg-file.ts';
import type { HelloMessage } from './messages.ts';
import { ProcessSlot } from './process-slot.ts';
import { type JobOptions, SupervisedJob } from './supervised-job.ts';
import { TranscoderCounts, transcoderMetrics } from './transcoder-metrics.ts';
import { CHILD_ENTRY, FILE_CHILD_ENTRY, SILENCE_DEADLINE_MS } from './transcoder-process.ts';

const DEFAULT_JOBS_PER_PROCESS = 8;
const MAX_PROCESSES_PER_CORE = 4;
const MIN_PROCESSES = 8;
const HELLO_DEADLINE_MS = 20_000;
/** Limit of a file process's data: 8K frames in a decoder with a few threads fit, and a forged header cannot take more. */
const MAX_FILE_MEMORY = 3 * 1024 * 1024 * 1024;

/** Times in ms. `entry`, `fileEntry`, `fileHangMs` and `silenceDeadlineMs` are for tests. */
export interface SupervisorOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  /** Limit of jobs that share a process, if their weights allow it; 1 gives every job its own. Default: 8. */
  readonly jobsPerProcess?: number;
  /** Processes at once; jobs for which there is no room fail. 0, the default: four for each core, at least eight. */
  readonly maxProcesses?: number;
  /** The program processes run; the default is the transcoder. */
  readonly entry?: URL;
  /** A process silent for this long is killed; it reports every second. */
  readonly silenceDeadlineMs?: number;
  /** The program of processes that read files, and how long one may hang, ms. */
  readonly fileEntry?: URL;
  readonly fileHangMs?: number;
}

/** Owns jobs and processes until `close`. Starts no process before the first job or the first request for the codecs. */
export class TranscoderSupervisor implements Transcoder {
  readonly #options: SupervisorOptions;
  readonly #slots = new Set<ProcessSlot>();
  /** Open files, each with a process of its own. */
  readonly #files = new Set<FfmpegFile>();
  readonly #bySession = new Map<SupervisedJob, ProcessSlot>();
  #nextJob = 1;
  #hello: HelloMessage | null = null;
  #waiting: ((hello: HelloMessage) => void)[] = [];
  #closed = false;
  readonly #maxProcesses: number;
  readonly #counts = new TranscoderCounts();
  /** For `/metrics`. */
  readonly metrics: MetricSource = transcoderMetrics(this.#counts, () => ({
    processes: this.pids.length,
    maxProcesses: this.#maxProcesses,
    jobs: this.#bySession.size,
  }));

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#maxProcesses = options.maxProcesses || Math.max(MIN_PROCESSES, MAX_PROCESSES_PER_CORE * availableParallelism());
  }

  /** Ids of the processes that run or start now. */
  get pids(): readonly number[] {
    return [...[...this.#slots].flatMap(({ pid }) => (pid === null ? [] : [pid])), ...[...this.#files].map(({ pid }) => pid)];
  }

  /** Throws TypeError after `close`. */
  open(job: JobOptions, listener: TranscodeListener): TranscodeSession {
    if (this.#closed) throw new TypeError('the transcoder is closed');
    const { clock, queues } = this.#options;
    const { vhost, app, stream } = job;
    const session = new SupervisedJob({
      id: this.#nextJob,
      job,
      listener,
      queues,
      clock,
      counts: this.#counts,
      logger: this.#options.logger.limited.child({ vhost, app, stream }),
      onClose: (closed) => this.#onClose(closed),
    });
    this.#nextJob += 1;
    const maxJobs = Math.max(1, this.#options.jobsPerProcess ?? DEFAULT_JOBS_PER_PROCESS);
    const slot = [...this.#slots].find((candidate) => candidate.fits(session.weight, maxJobs)) ?? this.#openSlotIfAllowed();
    if (slot === null) this.#refuse(session);
    else {
      session.logger.info({ encodes: job.encodes.length }, `transcoding of '${stream}' starts: ${counted(job.encodes.length, 'encode')}`);
      this.#assign(session, slot);
    }
    return session;
  }

  /**
   * The codec modules of this machine with the codecs at work now, for `/v2/internals/codecs`. Starts a process when none has told yet;
   * rejects when that does not come up.
   */
  async codecModules(): Promise<CodecModuleItem[]> {
    const hello = this.#hello ?? (await this.#greeting());
    return codecModules(
      hello,
      [...this.#slots].flatMap(({ status }) => (status === null ? [] : [status])),
      await busIds(),
    );
  }

  /** Version of the codec library; null before a process has told it. */
  get libraryVersion(): string | null {
    return this.#hello?.version ?? null;
  }

  /**
   * Reads a media file of any container and codec that FFmpeg supports, in a process that ends when the file is closed. Rejects if there is
   * no playable media, or no room for another process.
   */
  async openFile(file: OpenedFile, logger: Logger): Promise<FfmpegFile> {
    if (this.#closed) throw new TypeError('the transcoder is closed');
    if (this.#room === 0) throw new Error(this.#fullReason);
    const { clock, fileEntry: entry = FILE_CHILD_ENTRY, fileHangMs, silenceDeadlineMs = SILENCE_DEADLINE_MS } = this.#options;
    const opened = new FfmpegFile(file, {
      process: { entry, silenceDeadlineMs, memory: MAX_FILE_MEMORY },
      ...{ clock, logger, onEnd: (ended) => this.#files.delete(ended) },
      ...(fileHangMs !== undefined && { hangMs: fileHangMs }),
    });
    this.#files.add(opened);
    await opened.opened();
    return opened;
  }

  /** Ends all jobs and processes. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const session of [...this.#bySession.keys()]) session.close();
    for (const slot of [...this.#slots]) slot.close();
    for (const file of [...this.#files]) file.close('the server stops');
  }

  get #room(): number {
    return Math.max(0, this.#maxProcesses - this.#slots.size - this.#files.size);
  }

  get #fullReason(): string {
    return `all ${this.#maxProcesses} transcoder processes are taken (Modules/Transcoder/MaxProcesses)`;
  }

  #openSlotIfAllowed(): ProcessSlot | null {
    return this.#room > 0 ? this.#openSlot() : null;
  }

  /** Earlier jobs keep their processes: the encodes of this job fail, and its stream continues with its bypassed tracks. */
  #refuse(session: SupervisedJob): void {
    const reason = this.#fullReason;
    this.#counts.refused += 1;
    // The caller does not have the session yet.
    queueMicrotask(() => {
      session.fail(reason);
      session.close();
    });
  }

  #assign(session: SupervisedJob, slot: ProcessSlot): void {
    this.#bySession.set(session, slot);
    slot.add(session);
  }

  #openSlot(failures = 0): ProcessSlot {
    const { clock, logger, entry = CHILD_ENTRY, silenceDeadlineMs = SILENCE_DEADLINE_MS } = this.#options;
    const slot = new ProcessSlot(
      {
        process: { entry, silenceDeadlineMs },
        clock,
        logger,
        onHello: (hello) => this.#onHello(hello),
        onSuspects: (from, jobs) => this.#separate(from, jobs),
        onStuck: (job) => this.#moveAlone(job),
        onHung: () => {
          this.#counts.hung += 1;
        },
        onEmpty: (empty) => this.#slots.delete(empty),
        onDied: () => {
          this.#counts.deaths += 1;
        },
      },
      failures,
    );
    this.#slots.add(slot);
    return slot;
  }

  /** One of these jobs may be killing the process: separated, it kills only its own. */
  #separate(from: ProcessSlot, jobs: readonly SupervisedJob[]): void {
    const apart = Math.min(jobs.length, this.#room);
    this.#options.logger.warn({ jobs: jobs.length, apart }, `${apart} of ${jobs.length} jobs that died together get a process each`);
    jobs.forEach((job, index) => {
      this.#assign(job, index < apart ? this.#openSlot(from.failures) : from);
    });
  }

  /** A job that may hang again gets a process of its own; false where there is no room for one. */
  #moveAlone(job: SupervisedJob): boolean {
    if (this.#room === 0) return false;
    this.#assign(job, this.#openSlot());
    return true;
  }

  #onClose(session: SupervisedJob): void {
    const slot = this.#bySession.get(session);
    this.#bySession.delete(session);
    if (slot === undefined) return;
    slot.remove(session);
    session.logger.info({}, 'transcoding ends');
  }

  #onHello(hello: HelloMessage): void {
    this.#hello = hello;
    for (const resolve of this.#waiting.splice(0)) resolve(hello);
  }

  #greeting(): Promise<HelloMessage> {
    if (this.#slots.size === 0) this.#openSlot().warm();
    const { promise, resolve, reject } = Promise.withResolvers<HelloMessage>();
    const late = setTimeout(() => reject(new Error('no transcoder process came up')), HELLO_DEADLINE_MS);
    this.#waiting.push((hello) => {
      clearTimeout(late);
      resolve(hello);
    });
    return promise;
  }
}
