/** Rare work that would hold up the event loop, in a thread of its own. */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';

/** What the file of a thread posts for each message that it gets: the result, or why there is none. */
export type WorkAnswer<Result> = { readonly result: Result } | { readonly refused: string };

/** The thread could not be started, or ended without an answer. The work itself may be fine. */
export class WorkThreadLost extends Error {
  override readonly name = 'WorkThreadLost';
}

/** Options of a thread for one kind of work. */
export interface WorkThreadOptions {
  /** The file of the thread. It answers each message with one `WorkAnswer`. */
  readonly entry: URL;
  /** Of the thread, in tools and errors. */
  readonly name: string;
  /** For one piece of work, the start of the thread included, ms. A thread that takes longer is ended. */
  readonly deadline: number;
  /** A thread without work ends after this, ms. */
  readonly idle: number;
  /** For tests. */
  readonly start?: (entry: URL) => Worker;
}

interface Waiting<Job, Result> extends PromiseWithResolvers<Result> {
  readonly job: Job;
}

/**
 * Does one piece of work after the other, in the order of the calls. The thread is made when there is work, ends when there has been none
 * for a while, and keeps no process alive. It has no limit of its own: callers bound how much waits.
 */
export class WorkThread<Job, Result> {
  readonly #options: WorkThreadOptions;
  readonly #waiting: Waiting<Job, Result>[] = [];
  #worker: Worker | null = null;
  #running: Waiting<Job, Result> | null = null;
  /** Ends the work that runs, or the thread without work. */
  #timer: NodeJS.Timeout | null = null;

  constructor(options: WorkThreadOptions) {
    this.#options = options;
  }

  /** Rejects with the reason that the thread gave, with `WorkThreadLost`, or when the deadline has passed. */
  run(job: Job): Promise<Result> {
    const waiting = { job, ...Promise.withResolvers<Result>() };
    this.#waiting.push(waiting);
    if (this.#running === null) this.#next();
    return waiting.promise;
  }

  #next(): void {
    this.#running = this.#waiting.shift() ?? null;
    if (this.#running === null) {
      this.#setTimer(this.#options.idle, () => this.#end());
      return;
    }
    const { deadline, name } = this.#options;
    this.#setTimer(deadline, () => {
      this.#end();
      this.#settle(({ reject }) => reject(new Error(`it took longer than ${deadline / 1000} s in the thread '${name}'`)));
    });
    try {
      this.#worker ??= this.#open();
      this.#worker.postMessage(this.#running.job);
    } catch (error) {
      this.#lose(this.#worker, error);
    }
  }

  #open(): Worker {
    const { entry, start = startThread(this.#options.name) } = this.#options;
    const worker = start(entry);
    worker.on('message', (answer: WorkAnswer<Result>) => {
      if (this.#worker !== worker) return;
      this.#settle(({ resolve, reject }) => ('result' in answer ? resolve(answer.result) : reject(new Error(answer.refused))));
    });
    worker.once('error', (error: unknown) => this.#lose(worker, error));
    worker.once('exit', (code: number) => this.#lose(worker, new Error(`exit code ${code}`)));
    // Behind the listeners: they count as well.
    worker.unref();
    return worker;
  }

  #settle(settle: (waiting: Waiting<Job, Result>) => void): void {
    const done = this.#running;
    this.#running = null;
    if (done !== null) settle(done);
    this.#next();
  }

  #lose(worker: Worker | null, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#end();
    if (this.#running === null) return;
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#settle(({ reject }) => reject(new WorkThreadLost(`the thread '${this.#options.name}' ended: ${reason}`, { cause })));
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = null;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    void worker?.terminate();
  }

  #setTimer(time: number, action: () => void): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = this.#worker === null && this.#running === null ? null : setTimeout(action, time).unref();
  }
}

function startThread(name: string): (entry: URL) => Worker {
  const compiled = getCompileCacheDir();
  // Set by the environment, because the first file of the thread is compiled before it could enable the cache.
  const env = compiled === undefined ? {} : { env: { ...process.env, NODE_COMPILE_CACHE: dirname(compiled) } };
  return (entry) => new Worker(entry, { name, ...env });
}
