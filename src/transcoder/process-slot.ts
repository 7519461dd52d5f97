import type { Clock } from '../util/clock.ts';
import { counted } from '../util/counted.ts';
import { growingPause } from '../util/growing-pause.ts';
import { forEachGiven, guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { FrameWriter } from './frame-writer.ts';
import type { HelloMessage, StatusMessage } from './messages.ts';
import { type FrameHeader, FrameType } from './process-frames.ts';
import { FULL_WEIGHT, type SupervisedJob } from './supervised-job.ts';
import { type ProcessOptions, TranscoderProcess, WATCH_INTERVAL_MS } from './transcoder-process.ts';

const FIRST_RESTART_DELAY_MS = 100;
const MAX_RESTART_DELAY_MS = 10_000;
/** A process that ran this long has recovered: should it die again, the next one starts at once. */
const HEALTHY_AFTER_MS = 5_000;
/** Jobs that die together twice within this time may have a killer among them. */
const SUSPICIOUS_MS = 60_000;
/** A process without jobs is kept this long for the next one. */
const IDLE_MS = 10_000;
/** A job whose process takes none of its packets in this many rounds of the watch hangs in a codec. */
const STUCK_ROUNDS = 10;
/** A job that its process has not closed after this many rounds hangs as well. */
const CLOSE_ROUNDS = 5;
/** A process that hangs with a job, and has sent nothing for more than this many rounds, hangs with all of them. */
const SILENT_ROUNDS = 5;
/** After this many exits without a message the waiting jobs fail; later jobs try again. */
const HOPELESS_AFTER = 4;

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
  /** The process hangs with this job and goes on with others: takes the job to another slot; false: there is none. */
  readonly onStuck: (job: SupervisedJob) => boolean;
  /** A job hangs in a process that goes on with others. */
  readonly onHung?: () => void;
  /** The slot has neither jobs nor a process. */
  readonly onEmpty: (slot: ProcessSlot) => void;
  /** A process died that was needed. */
  readonly onDied?: () => void;
}

/** A place for one transcoder process: starts it, starts it again when it dies, gives it jobs. */
export class ProcessSlot {
  readonly #options: ProcessSlotOptions;
  readonly #jobs = new Map<number, SupervisedJob>();
  /** Ids of jobs that the process still has to close, with the rounds of the watch that this has taken. */
  readonly #closing = new Map<number, number>();
  /** Ids of jobs that hang in the process: it is left to its other jobs, takes no new ones, and is ended with the last of them. */
  readonly #hung = new Set<number>();
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
    if (this.#closed || !recovered || this.#hung.size > 0 || this.#jobs.size >= maxJobs) return false;
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
    if (this.#tellClose(job)) this.#closing.set(job.id, 0);
    this.#endHung();
    this.#rest();
  }

  /** Ends the process. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watch);
    if (this.#restart !== null) clearTimeout(this.#restart);
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#process?.kill('it is not needed any more');
  }

  /** False if the process does not know of the job. */
  #tellClose({ id: job }: SupervisedJob): boolean {
    if (this.#process?.greeted !== true) return false;
    this.#process.writer.write({ type: FrameType.CLOSE, flags: 0, job, id: 0, pts: 0, dts: 0, duration: 0 });
    return true;
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
    const delay = this.#failures <= 1 ? 0 : growingPause(this.#failures - 2, FIRST_RESTART_DELAY_MS, MAX_RESTART_DELAY_MS);
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
      // For example, without memory for another process.
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
      this.#closing.delete(header.job);
      this.#hung.delete(header.job);
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
    this.#closing.clear();
    this.#hung.clear();
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

  /** A round of the watch. */
  #look(): void {
    for (const [id, rounds] of this.#closing) {
      if (rounds < CLOSE_ROUNDS) this.#closing.set(id, rounds + 1);
      else this.#leave(id);
    }
    let longest = 0;
    const stuck: SupervisedJob[] = [];
    for (const job of this.#jobs.values()) {
      const rounds = job.look();
      longest = Math.max(longest, rounds);
      if (rounds > STUCK_ROUNDS) stuck.push(job);
    }
    if (stuck.length === 0) return;
    const silentRounds = this.#process?.silentRounds ?? 0;
    const isWhole = stuck.length === this.#jobs.size || silentRounds > SILENT_ROUNDS;
    if (isWhole || !stuck.every((job) => this.#moveAway(job))) this.#kill(`it took no packet for ${seconds(longest)} s`);
  }

  /** The process does not close a job: its others keep it. */
  #leave(id: number): void {
    this.#closing.delete(id);
    this.#hung.add(id);
    this.#options.onHung?.();
    this.#tellHung(`did not end a job within ${seconds(CLOSE_ROUNDS)} s`);
    this.#endHung();
  }

  /** The process hangs with one of its jobs: that continues elsewhere, and the others keep the process. False: there is no other place. */
  #moveAway(job: SupervisedJob): boolean {
    this.#hung.add(job.id);
    job.restart();
    if (!this.#options.onStuck(job)) return false;
    this.#jobs.delete(job.id);
    this.#tellClose(job);
    this.#options.onHung?.();
    this.#tellHung(`took no packet of a job for ${seconds(STUCK_ROUNDS)} s`);
    return true;
  }

  #tellHung(what: string): void {
    const { pid } = this;
    const { size: jobs } = this.#jobs;
    const rest = `it keeps ${counted(jobs, 'other job')}, takes no new ones and is ended after them`;
    this.#options.logger.warn({ pid, jobs }, `transcoder process ${pid} ${what}: ${rest}`);
  }

  /** Ends a process that has only hung jobs. */
  #endHung(): void {
    if (this.#hung.size > 0 && this.#jobs.size === 0) this.#kill('the job with which it hung was its last one');
  }

  #kill(reason: string): void {
    this.#process?.kill(reason);
  }
}

function seconds(rounds: number): number {
  return (rounds * WATCH_INTERVAL_MS) / 1000;
}
