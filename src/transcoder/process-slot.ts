import type { Clock } from '../util/clock.ts';
import { forEachGiven, guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { FrameWriter } from './frame-writer.ts';
import type { HelloMessage, StatusMessage } from './messages.ts';
import { type FrameHeader, FrameType } from './process-frames.ts';
import { FULL_WEIGHT, type SupervisedJob } from './supervised-job.ts';
import { type ProcessOptions, TranscoderProcess } from './transcoder-process.ts';

const FIRST_RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 10_000;
/** A process that ran this long has recovered: should it die again, the next one starts at once. */
const HEALTHY_AFTER_MS = 5_000;
/** Jobs that die together twice within this time may have a killer among them. */
const SUSPICIOUS_MS = 60_000;
/** A process without jobs is kept this long for the next one. */
const IDLE_MS = 10_000;
/** A process that takes no packet for this long hangs in a codec. */
const STUCK_MS = 10_000;
/** A job must be closed after this long. */
const CLOSE_DEADLINE_MS = 5_000;
/** After this many exits without a message the waiting jobs fail; later jobs try again. */
const HOPELESS_AFTER = 4;
const WATCH_INTERVAL_MS = 1000;

const start = (job: SupervisedJob, writer: FrameWriter): void => job.start(writer);
const restart = (job: SupervisedJob): void => job.restart();
const showQueues = (job: SupervisedJob, queues: StatusMessage['queues']): void =>
  job.showQueues(queues.filter((queue) => queue.job === job.id));

/** Settings of the slot's process, and callbacks for its supervisor. */
export interface ProcessSlotOptions {
  readonly process: ProcessOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onHello: (hello: HelloMessage) => void;
  /** The process died repeatedly with these jobs: one of them may be the cause. */
  readonly onSuspects: (slot: ProcessSlot, jobs: readonly SupervisedJob[]) => void;
  /** The slot has neither jobs nor a process. */
  readonly onEmpty: (slot: ProcessSlot) => void;
  /** A process died that was needed. */
  readonly onDied?: () => void;
}

/** A place for one transcoder process: starts it, starts it again when it dies, gives it jobs. */
export class ProcessSlot {
  readonly #options: ProcessSlotOptions;
  readonly #jobs = new Map<number, SupervisedJob>();
  /** Jobs the process still has to close. */
  readonly #closing = new Map<number, NodeJS.Timeout>();
  readonly #watch: NodeJS.Timeout;
  #process: TranscoderProcess | null = null;
  #startedAt = 0;
  #diedAt = Number.NEGATIVE_INFINITY;
  #failures: number;
  #restart: NodeJS.Timeout | null = null;
  #idle: NodeJS.Timeout | null = null;
  #status: StatusMessage | null = null;
  #everGreeted = false;
  #closed = false;

  /** `failures` of the process from which its first job was moved. */
  constructor(options: ProcessSlotOptions, failures = 0) {
    this.#options = options;
    this.#failures = failures;
    this.#watch = setInterval(
      guarded(options.logger, 'the watch over transcode jobs', () => this.#look()),
      WATCH_INTERVAL_MS,
    ).unref();
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  get failures(): number {
    return this.#failures;
  }

  /** The last report of the process; null when none runs. */
  get status(): StatusMessage | null {
    return this.#status;
  }

  /** Whether a job of this weight fits beside the present jobs. */
  fits(weight: number, maxJobs: number): boolean {
    const recovered = this.#failures === 0 || this.#options.clock.monotonic() - this.#startedAt >= HEALTHY_AFTER_MS;
    if (this.#closed || !recovered || this.#jobs.size >= maxJobs) return false;
    let filled = 0;
    for (const job of this.#jobs.values()) filled += job.weight;
    return filled === 0 || filled + weight <= FULL_WEIGHT;
  }

  /** Takes a job for good; it starts as soon as a process is there. */
  add(job: SupervisedJob): void {
    this.#jobs.set(job.id, job);
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    if (this.#process === null) this.#scheduleStart();
    else if (this.#process.greeted) this.#forJobs([job], this.#process.writer, start);
  }

  /** Starts the process without a job, to learn its abilities. */
  warm(): void {
    if (this.#process === null && this.#restart === null) this.#start();
    this.#rest();
  }

  /** Ends a job; the process must let go of it in time. */
  remove(job: SupervisedJob): void {
    if (!this.#jobs.delete(job.id)) return;
    const process = this.#process;
    if (process?.greeted === true) {
      process.writer.write({ type: FrameType.CLOSE, flags: 0, job: job.id, id: 0, pts: 0, dts: 0, duration: 0 });
      const late = setTimeout(() => process.kill(`it did not end a job within ${CLOSE_DEADLINE_MS / 1000} s`), CLOSE_DEADLINE_MS);
      this.#closing.set(job.id, late.unref());
    }
    this.#rest();
  }

  /** Ends the process. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watch);
    if (this.#restart !== null) clearTimeout(this.#restart);
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#forgetClosing();
    this.#process?.kill('it is not needed any more');
  }

  #rest(): void {
    if (this.#jobs.size > 0 || this.#idle !== null) return;
    this.#idle = setTimeout(() => {
      this.close();
      if (this.#process === null) this.#options.onEmpty(this);
    }, IDLE_MS).unref();
  }

  #scheduleStart(): void {
    if (this.#restart !== null || this.#process !== null || this.#closed) return;
    // The first death is followed by an immediate restart, for the viewers.
    const delay = this.#failures <= 1 ? 0 : Math.min(FIRST_RESTART_DELAY_MS * 2 ** (this.#failures - 2), MAX_RESTART_DELAY_MS);
    if (delay === 0) {
      this.#start();
      return;
    }
    const begin = guarded(this.#options.logger, 'the start of a transcoder process', () => {
      this.#restart = null;
      this.#start();
    });
    this.#restart = setTimeout(begin, delay);
  }

  #start(): void {
    this.#startedAt = this.#options.clock.monotonic();
    const onExit = guarded(this.#options.logger, 'the end of a transcoder process', (reason: string) => this.#onExit(reason));
    try {
      this.#process = new TranscoderProcess(this.#options.process, {
        onHello: (hello) => this.#onHello(hello),
        onFrame: (header, payload) => this.#onFrame(header, payload),
        onExit,
      });
    } catch (error) {
      // Without memory for another process, for one.
      onExit(`it could not be started: ${messageOf(error)}`);
    }
  }

  #onHello(hello: HelloMessage): void {
    const process = this.#process;
    if (process === null) return;
    this.#everGreeted = true;
    this.#options.logger.info({ pid: process.pid }, `transcoder process ${process.pid} runs`);
    this.#options.onHello(hello);
    this.#forJobs(this.#jobs.values(), process.writer, start);
  }

  #onFrame(header: FrameHeader, payload: Buffer): void {
    if (header.type === FrameType.STATUS) {
      this.#onStatus(JSON.parse(payload.toString()) as StatusMessage);
      return;
    }
    if (header.type === FrameType.CLOSED) {
      clearTimeout(this.#closing.get(header.job));
      this.#closing.delete(header.job);
      return;
    }
    const job = this.#jobs.get(header.job);
    if (job === undefined) return;
    // An internal error with the output of one job must not end the process, which serves other jobs.
    try {
      job.onFrame(header, payload);
    } catch (error) {
      this.#fault(job, error);
    }
  }

  /** An internal error with one job must not affect the process and the others. */
  #forJobs<Value>(jobs: Iterable<SupervisedJob>, value: Value, action: (job: SupervisedJob, value: Value) => void): void {
    forEachGiven(jobs, value, action, (job, error) => this.#fault(job, error));
  }

  #fault(job: SupervisedJob, error: unknown): void {
    this.#options.logger.error({ err: error, job: job.id }, 'a transcode job failed inside the server');
    job.fail('internal error');
  }

  #onStatus(status: StatusMessage): void {
    this.#status = status;
    this.#forJobs(this.#jobs.values(), status.queues, showQueues);
  }

  #onExit(reason: string): void {
    const { clock, logger } = this.#options;
    const pid = this.#process?.pid;
    this.#process = null;
    this.#status = null;
    this.#forgetClosing();
    if (this.#closed) {
      logger.info({ pid }, `transcoder process ${pid} ended: ${reason}`);
      this.#options.onEmpty(this);
      return;
    }
    const now = clock.monotonic();
    const suspicious = now - this.#diedAt < SUSPICIOUS_MS;
    this.#diedAt = now;
    if (now - this.#startedAt >= HEALTHY_AFTER_MS) this.#failures = 0;
    this.#failures += 1;
    this.#options.onDied?.();
    logger.warn({ pid, jobs: this.#jobs.size, failures: this.#failures }, `transcoder process ${pid} died: ${reason}`);
    const jobs = [...this.#jobs.values()];
    this.#forJobs(jobs, null, restart);
    if (!this.#everGreeted && this.#failures >= HOPELESS_AFTER)
      for (const job of jobs) job.fail(`no transcoder process comes up: ${reason}`);
    if (jobs.length > 1 && suspicious) {
      this.#jobs.clear();
      this.#options.onSuspects(this, jobs);
    }
    if (this.#jobs.size > 0) this.#scheduleStart();
    else this.#rest();
  }

  #look(): void {
    const now = this.#options.clock.monotonic();
    for (const job of this.#jobs.values()) {
      const stuck = job.stuckFor(now);
      if (stuck > STUCK_MS) this.#process?.kill(`it took no packet for ${Math.round(stuck / 1000)} s`);
    }
  }

  #forgetClosing(): void {
    for (const late of this.#closing.values()) clearTimeout(late);
    this.#closing.clear();
  }
}
