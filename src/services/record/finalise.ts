/** Finishes MP4 recordings without holding up the event loop. */
import { stat } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { type Finalised, finaliseMp4 } from './mp4-finaliser.ts';

/** Sample tables of a larger file take more than a few milliseconds to write at once (measured: 8 ms for an hour of 30 fps). */
const LARGE = 64 * 1024 * 1024;
/** Also after a build. */
const ENTRY = new URL(import.meta.url.endsWith('.ts') ? './mp4-finaliser-worker.ts' : './mp4-finaliser-worker.js', import.meta.url);

/** A recording to finish, as the thread gets it. */
export interface FinaliserJob {
  readonly id: number;
  readonly path: string;
}

/** The result. A system error's code and number are separate, because they do not cross with the error. */
export type FinaliserAnswer =
  | { readonly id: number; readonly finalised: Finalised }
  | { readonly id: number; readonly error: unknown; readonly code: unknown; readonly errno: unknown };

/** One thread for all large recordings: made with the first, and made again should it end. It does not keep the process alive. */
export class FinaliserThread {
  readonly #start: () => Worker;
  #worker: Worker | null = null;
  readonly #jobs = new Map<number, PromiseWithResolvers<Finalised>>();
  #nextId = 0;

  /** `start` is for tests. */
  constructor(start: () => Worker = () => new Worker(ENTRY, { name: 'finaliser' })) {
    this.#start = start;
  }

  /** Like `finaliseMp4`. Rejects as well when the thread ends meanwhile. */
  finish(path: string): Promise<Finalised> {
    const job = Promise.withResolvers<Finalised>();
    const id = this.#nextId++;
    this.#worker ??= this.#open();
    this.#jobs.set(id, job);
    this.#worker.postMessage({ id, path } satisfies FinaliserJob);
    return job.promise;
  }

  #open(): Worker {
    const worker = this.#start();
    worker.on('message', (answer: FinaliserAnswer) => this.#settle(answer));
    worker.once('error', (error) => this.#lose(worker, error));
    worker.once('exit', (code) => this.#lose(worker, new Error(`the thread that finishes recordings ended with ${code}`)));
    // Behind the listeners: they count as well.
    worker.unref();
    return worker;
  }

  #settle(answer: FinaliserAnswer): void {
    const job = this.#jobs.get(answer.id);
    this.#jobs.delete(answer.id);
    if ('finalised' in answer) job?.resolve(answer.finalised);
    else job?.reject(Object.assign(answer.error as Error, { code: answer.code, errno: answer.errno }));
  }

  #lose(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    for (const job of this.#jobs.values()) job.reject(error);
    this.#jobs.clear();
  }
}

const thread = new FinaliserThread();

/** Like `finaliseMp4`; large files are finished in a thread of their own. */
export async function finalise(path: string, large = LARGE): Promise<Finalised> {
  const { size } = await stat(path);
  return size < large ? finaliseMp4(path) : thread.finish(path);
}
