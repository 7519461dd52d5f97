/** Rare work that would hold up the event loop, in a thread of its own. */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { LogLines } from './logger.ts';
import { messageOf } from './message-of.ts';
import type { WorkAnswer, WorkOrder, WorkRefusal } from './work-answer.ts';

/** The thread could not be started, or ended without an answer. The work itself may be fine. */
export class WorkThreadLost extends Error {
  override readonly name = 'WorkThreadLost';
}

/** Options of a thread for one kind of work. */
export interface WorkThreadOptions {
  /** The file of the thread. It calls `answerWork`. */
  readonly entry: URL;
  /** Name of the thread, in tools and errors. */
  readonly name: string;
  /** Pieces of work that the thread has at once. Default: 1. */
  readonly most?: number;
  /** For one piece of work, the start of the thread included, ms. A thread that takes longer is ended. Default: as long as it takes. */
  readonly deadline?: number;
  /** A thread without work ends after this, ms. */
  readonly idle: number;
  /** For tests. */
  readonly start?: ((entry: URL) => Worker) | undefined;
}

interface Piece<Job, Result> extends PromiseWithResolvers<Result> {
  readonly job: Job;
}

interface RunningPiece<Job, Result> extends Piece<Job, Result> {
  /** Ends the thread. */
  readonly deadline: NodeJS.Timeout | null;
}

/**
 * Gives pieces of work to the thread in the order of the calls. The thread is made when there is work, ends when there has been none for a
 * while, and keeps no process alive. What waits has no limit of its own: callers bound it.
 */
export class WorkThread<Job, Result> {
  readonly #options: WorkThreadOptions;
  readonly #waiting: Piece<Job, Result>[] = [];
  readonly #running = new Map<number, RunningPiece<Job, Result>>();
  #worker: Worker | null = null;
  /** Ends the thread without work. */
  #idle: NodeJS.Timeout | null = null;
  #nextId = 0;

  constructor(options: WorkThreadOptions) {
    this.#options = options;
  }

  /**
   * Rejects with the reason that the thread gave (a system error keeps its code), with `WorkThreadLost`, or when the deadline has passed.
   */
  run(job: Job): Promise<Result> {
    const piece = { job, ...Promise.withResolvers<Result>() };
    this.#waiting.push(piece);
    this.#give();
    return piece.promise;
  }

  /** Gives the thread as much as it may have. */
  #give(): void {
    const { most = 1, idle } = this.#options;
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    while (this.#running.size < most) {
      const piece = this.#waiting.shift();
      if (piece === undefined) break;
      this.#begin(piece);
    }
    if (this.#running.size === 0 && this.#worker !== null) this.#idle = setTimeout(() => this.#end(), idle).unref();
  }

  #begin(piece: Piece<Job, Result>): void {
    const id = this.#nextId++;
    const { deadline } = this.#options;
    const timer = deadline === undefined ? null : setTimeout(() => this.#expire(id, deadline), deadline).unref();
    this.#running.set(id, { ...piece, deadline: timer });
    try {
      this.#worker ??= this.#open();
      this.#worker.postMessage({ id, job: piece.job } satisfies WorkOrder<Job>);
    } catch (error) {
      this.#lose(error);
    }
  }

  #open(): Worker {
    const { entry, start = startThread(this.#options.name) } = this.#options;
    const worker = start(entry);
    worker.on('message', (answer: WorkAnswer<Result>) => {
      if (this.#worker !== worker) return;
      const piece = this.#take(answer.id);
      if ('result' in answer) piece?.resolve(answer.result);
      else piece?.reject(errorOf(answer.refused));
      this.#give();
    });
    const lose = (cause: unknown): void => {
      if (this.#worker !== worker) return;
      this.#lose(cause);
      this.#give();
    };
    worker.once('error', lose);
    worker.once('exit', (code: number) => lose(new Error(`exit code ${code}`)));
    // Behind the listeners: they count as well.
    worker.unref();
    return worker;
  }

  #take(id: number): RunningPiece<Job, Result> | undefined {
    const piece = this.#running.get(id);
    this.#running.delete(id);
    if (piece !== undefined && piece.deadline !== null) clearTimeout(piece.deadline);
    return piece;
  }

  #expire(id: number, deadline: number): void {
    const reason = `it took longer than ${deadline / 1000} s in the thread '${this.#options.name}'`;
    this.#take(id)?.reject(new Error(reason));
    this.#lose(new Error('another piece of work took too long'));
    this.#give();
  }

  /** Everything that runs is lost with the thread; the waiting pieces get a new one. */
  #lose(cause: unknown): void {
    this.#end();
    const reason = `the thread '${this.#options.name}' ended: ${messageOf(cause)}`;
    for (const id of [...this.#running.keys()]) this.#take(id)?.reject(new WorkThreadLost(reason, { cause }));
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = null;
    void worker?.terminate();
  }
}

/**
 * The work of the thread on `file`. If the thread is lost, the log says so and the result is that of `here`, which does the work in this
 * thread. Rejects as `run` does, and with the exception of `here`.
 */
export async function workOrHere<Job, Result, Own>(
  thread: Pick<WorkThread<Job, Result>, 'run'>,
  job: Job,
  { file, here, logger }: { readonly file: string; readonly here: () => Own; readonly logger: Pick<LogLines, 'warn'> },
): Promise<Result | Own> {
  try {
    return await thread.run(job);
  } catch (error) {
    if (!(error instanceof WorkThreadLost)) throw error;
    logger.warn({ file, err: error }, `${error.message}: ${file} is read beside everything else`);
    return here();
  }
}

function errorOf({ message, stack, code, errno }: WorkRefusal): Error {
  return Object.assign(new Error(message), {
    ...(stack !== undefined && { stack }),
    ...(code !== undefined && { code }),
    ...(errno !== undefined && { errno }),
  });
}

function startThread(name: string): (entry: URL) => Worker {
  const compiled = getCompileCacheDir();
  // Set by the environment, because the first file of the thread is compiled before it could enable the cache.
  const env = compiled === undefined ? {} : { env: { ...process.env, NODE_COMPILE_CACHE: dirname(compiled) } };
  return (entry) => new Worker(entry, { name, ...env });
}
