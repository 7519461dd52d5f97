/** The thread's side of `WorkThread`: each piece of work is answered once. */
import { parentPort } from 'node:worker_threads';

/** A piece of work, as the thread gets it. */
export interface WorkOrder<Job> {
  readonly id: number;
  readonly job: Job;
}

/** Why there is no result. The fields of an error are separate, because not every error crosses to another thread. */
export interface WorkRefusal {
  readonly message: string;
  readonly stack?: string | undefined;
  /** Code of a system error. */
  readonly code?: string | undefined;
  readonly errno?: number | undefined;
}

/** The message of the thread for each piece of work. */
export type WorkAnswer<Result> = { readonly id: number; readonly result: Result } | { readonly id: number; readonly refused: WorkRefusal };

/** Called once by the first file of a thread. `work` may throw or reject, with a reason for the caller. */
export function answerWork<Job, Result>(work: (job: Job) => Result | Promise<Result>): void {
  parentPort?.on('message', async ({ id, job }: WorkOrder<Job>) => parentPort?.postMessage(await answerFor(id, () => work(job))));
}

async function answerFor<Result>(id: number, work: () => Result | Promise<Result>): Promise<WorkAnswer<Result>> {
  try {
    return { id, result: await work() };
  } catch (error) {
    return { id, refused: refusalOf(error) };
  }
}

function refusalOf(error: unknown): WorkRefusal {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, stack, code, errno } = error as NodeJS.ErrnoException;
  return { message, stack, ...(typeof code === 'string' && { code, errno }) };
}
